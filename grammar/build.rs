//! Turns `grammar/*.lalrpop` into the parser's tables in `OUT_DIR`.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo:rerun-if-changed=grammar");
    lalrpop::Configuration::new().set_in_dir("grammar").process()
}
