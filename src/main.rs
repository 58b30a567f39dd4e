//! The `wmlrun` binary: everything is in the library.

fn main() -> std::process::ExitCode {
    wml::cli::main()
}
