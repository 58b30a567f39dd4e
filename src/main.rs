//! The `wmlrun` binary. All code is in the library.

fn main() -> std::process::ExitCode {
    wml::cli::main()
}
