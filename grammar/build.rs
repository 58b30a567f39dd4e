//! Generates, in `OUT_DIR`, the list of shipped personalities from `personalities/*.wml`, and that of shipped experiment
//! files from `experiments/*.toml`, and that of published figures from `published/*.csv`. Determines the commit for the version.

#![allow(clippy::disallowed_methods, reason = "a separate program")]

use std::fmt::Write as _;
use std::{env, error::Error, fs, path::Path, process::Command};

fn main() -> Result<(), Box<dyn Error>> {
    // It distinguishes this program from those of other builds. Some linkers write none by default.
    println!("cargo:rustc-link-arg-bins=-Wl,--build-id");
    embed("personalities", "wml")?;
    embed("experiments", "toml")?;
    embed("published", "csv")?;
    version()
}

/// Generates the list of the files in a directory with this extension: the name and the text of each.
fn embed(dir: &str, extension: &str) -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed={dir}");
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let ending = format!(".{extension}");
    let mut names: Vec<String> = fs::read_dir(Path::new(&root).join(dir))?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok()?.strip_suffix(&ending).map(str::to_owned))
        .collect();
    names.sort();
    let mut list = String::from("&[\n");
    for name in names {
        writeln!(list, "    ({name:?}, include_str!({:?})),", format!("{root}/{dir}/{name}{ending}"))?;
    }
    list.push(']');
    fs::write(Path::new(&env::var("OUT_DIR")?).join(format!("{dir}.rs")), list)?;
    Ok(())
}

/// Sets `WMLRUN_VERSION` and, in a release build, `WMLRUN_COMMIT`. A debug build has no commit, since every commit would
/// then compile it again.
fn version() -> Result<(), Box<dyn Error>> {
    let version = env::var("CARGO_PKG_VERSION")?;
    let commit = if env::var("PROFILE")? == "release" { commit() } else { None };
    match commit {
        Some(commit) => {
            println!("cargo:rustc-env=WMLRUN_VERSION={version} ({commit})");
            println!("cargo:rustc-env=WMLRUN_COMMIT={commit}");
        }
        None => println!("cargo:rustc-env=WMLRUN_VERSION={version}"),
    }
    Ok(())
}

/// Returns the abbreviated commit of the source, if it is in a git repository of its own. A package from a registry is
/// not, even if it is unpacked inside one.
fn commit() -> Option<String> {
    let root = env::var("CARGO_MANIFEST_DIR").ok()?;
    if !Path::new(&root).join(".git").exists() {
        return None;
    }
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).current_dir(&root).output().ok().filter(|o| o.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // Each commit and each checkout adds a line to this file.
    println!(
        "cargo:rerun-if-changed={}",
        Path::new(&root).join(git(&["rev-parse", "--git-path", "logs/HEAD"])?).display()
    );
    git(&["rev-parse", "--short=9", "HEAD"])
}
