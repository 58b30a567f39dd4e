//! Generates, in `OUT_DIR`, the parser from `grammar/*.lalrpop` and the list of shipped personalities from
//! `personalities/*.wml`.

use std::fmt::Write as _;
use std::{env, error::Error, fs, path::Path};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=grammar");
    println!("cargo:rerun-if-changed=personalities");
    lalrpop::Configuration::new().set_in_dir("grammar").process()?;
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut names: Vec<String> = fs::read_dir(Path::new(&root).join("personalities"))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_suffix(".wml").map(str::to_owned))
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        writeln!(list, "    ({name:?}, include_str!({:?})),", format!("{root}/personalities/{name}.wml"))?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join("personalities.rs"), list)?;
    Ok(())
}
