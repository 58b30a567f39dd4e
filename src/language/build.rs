//! Generates the parser from `grammar/wml.lalrpop`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=../../grammar/wml.lalrpop");
    lalrpop::Configuration::new().set_in_dir("../../grammar").process()
}
