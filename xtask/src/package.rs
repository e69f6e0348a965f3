//! `package`: every library builds from its own tarball, outside the workspace, and its example runs.
//!
//! What only the workspace supplies does not show in it: a file beside the crate's folder, or a
//! feature that another crate switches on. So each crate is checked by itself, with nothing but its
//! own dependencies, ours among them being the other tarballs.

use crate::command::{Failure, program, run as run_command, shown};
use crate::floors::{FLOORS, floor_of};
use crate::scratch::Scratch;
use crate::workspace::{Package, Workspace, read};
use camino::Utf8Path;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::{Command, Stdio};
use toml::{Table, Value};

/// Packs, unpacks and builds every library that may be published.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let mut published: Vec<&Package> = workspace.packages.iter().collect();
    published.retain(|package| package.published_library().is_some());
    if published.is_empty() {
        return Err(Failure::nothing_shown("package: no library may be published"));
    }
    // The lowest first, so that the crate that is to blame is the one that is named.
    published.sort_by_key(|package| floor_of(&package.name, FLOORS));
    pack(workspace, &published)?;
    let scratch = unpack(workspace, &published)?;
    let cargo = |arguments: &str| {
        let mut cargo = program("cargo");
        cargo.args(arguments.split(' ')).current_dir(scratch.path());
        cargo.env("CARGO_TARGET_DIR", &workspace.target_directory);
        cargo
    };
    for package in &published {
        println!("package: {}", package.name);
        run_command(&mut cargo(&format!("check --quiet --package {}", package.name)))
            .map_err(|failure| does_not_build(package, &failure))?;
    }
    run_command(&mut cargo("check --quiet --workspace --examples"))?;
    run_examples(&mut cargo("test --doc --workspace"), &published)?;
    println!("package: {} libraries built alone, and their examples ran", published.len());
    Ok(())
}

fn does_not_build(package: &Package, failure: &Failure) -> Failure {
    Failure::new(format!("package: {} does not build from its tarball: {failure}", package.name))
}

/// Lets cargo make the tarballs, as they are published but for the lock file, which nobody reads.
fn pack(workspace: &Workspace, published: &[&Package]) -> Result<(), Failure> {
    let mut cargo = program("cargo");
    cargo.args(["package", "--quiet", "--no-verify", "--allow-dirty", "--exclude-lockfile"]);
    cargo.args(published.iter().flat_map(|package| ["--package", &package.name]));
    run_command(cargo.current_dir(&workspace.root))
        .map_err(|failure| Failure::new(format!("package: {failure}")))
}

/// Unpacks them side by side into a workspace of their own.
///
/// It lies at one place for one target directory, so that what is built is built over and does not
/// pile up there; two runs at once with one target directory disturb each other.
fn unpack(workspace: &Workspace, published: &[&Package]) -> Result<Scratch, Failure> {
    let mut hasher = DefaultHasher::new();
    workspace.target_directory.as_str().hash(&mut hasher);
    let scratch = Scratch::make(&format!("placement-package-{:016x}", hasher.finish()))?;
    for package in published {
        let name = folder_of(package);
        let tarball = workspace.target_directory.join("package").join(format!("{name}.crate"));
        // Packed files bear one old date for ever; by it cargo would take what has changed for built.
        let mut tar = program("tar");
        tar.args(["--touch", "-xzf", tarball.as_str()]).current_dir(scratch.path());
        run_command(&mut tar).map_err(|failure| does_not_build(package, &failure))?;
    }
    let manifest = manifest(&read(&workspace.root.join("Cargo.toml"))?, published)?;
    write(&scratch.path().join("Cargo.toml"), &manifest)?;
    // The same versions of everything else, which are built already.
    write(&scratch.path().join("Cargo.lock"), &read(&workspace.root.join("Cargo.lock"))?)?;
    Ok(scratch)
}

fn folder_of(package: &Package) -> String {
    format!("{}-{}", package.name, package.version)
}

fn write(path: &Utf8Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::io("write", path, &error))
}

/// Makes the manifest of that workspace: its members, each in the place of its namesake on the
/// registry, and the profiles of ours, by which what is built already serves again.
fn manifest(ours: &str, published: &[&Package]) -> Result<String, Failure> {
    let ours: Table = ours
        .parse()
        .map_err(|error| Failure::new(format!("Cargo.toml does not parse: {error}")))?;
    let text = |text: &str| Value::String(text.to_owned());
    let members = published.iter().map(|package| Value::String(folder_of(package))).collect();
    let workspace = Table::from_iter([
        ("resolver".to_owned(), text("3")),
        ("members".to_owned(), Value::Array(members)),
    ]);
    let patches: Table = published
        .iter()
        .map(|package| {
            let path = Table::from_iter([("path".to_owned(), Value::String(folder_of(package)))]);
            (package.name.clone(), Value::Table(path))
        })
        .collect();
    let patch = Table::from_iter([("crates-io".to_owned(), Value::Table(patches))]);
    let mut manifest = Table::from_iter([
        ("workspace".to_owned(), Value::Table(workspace)),
        ("patch".to_owned(), Value::Table(patch)),
    ]);
    if let Some(profile) = ours.get("profile") {
        manifest.insert("profile".to_owned(), profile.clone());
    }
    Ok(manifest.to_string())
}

/// Runs the examples of the READMEs; fails with what was said when one fails or did not run.
fn run_examples(cargo: &mut Command, published: &[&Package]) -> Result<(), Failure> {
    let output = cargo
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| Failure::new(format!("package: cannot run {}: {error}", shown(cargo))))?;
    let said = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        println!("{said}");
        return Err(Failure::new(format!("package: failed ({}): {}", output.status, shown(cargo))));
    }
    match published.iter().find(|package| !ran(package, &said)) {
        None => Ok(()),
        Some(package) => {
            println!("{said}");
            Err(Failure::new(format!("package: the example of {} did not run", package.name)))
        }
    }
}

/// Says whether the test runner told of a README's example that it ran.
fn ran(package: &Package, said: &str) -> bool {
    let start = format!("test {}/", folder_of(package));
    said.lines().any(|line| {
        line.starts_with(&start) && line.contains("README.md - ") && line.ends_with("... ok")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str) -> Package {
        Package { name: name.to_owned(), version: "0.1.0".to_owned(), ..Package::default() }
    }

    #[test]
    fn the_manifest_takes_members_and_patches_from_the_tarballs_and_profiles_from_ours() {
        let ours = "[workspace]\nmembers = [\"a\"]\n[profile.dev]\ndebug = \"none\"\n";
        let text = manifest(ours, &[&package("small"), &package("large")]).unwrap();
        let made: Table = text.parse().unwrap();
        let wanted: Table = "[workspace]\nresolver = \"3\"\nmembers = [\"small-0.1.0\", \"large-0.1.0\"]\n\
            [patch.crates-io]\nsmall = { path = \"small-0.1.0\" }\nlarge = { path = \"large-0.1.0\" }\n\
            [profile.dev]\ndebug = \"none\"\n"
            .parse()
            .unwrap();
        assert_eq!(made, wanted);
    }

    #[test]
    fn an_example_ran_only_when_its_own_line_says_ok() {
        let line = "test small-0.1.0/src/../README.md - (line 20) ... ok";
        assert!(ran(&package("small"), line));
        assert!(!ran(&package("smaller"), line));
        for said in
            ["", "test small-0.1.0/src/lib.rs - x (line 2) ... ok", &line.replace("ok", "ignored")]
        {
            assert!(!ran(&package("small"), said), "{said}");
        }
    }

    #[test]
    fn examples_that_fail_or_do_not_run_fail() {
        let line = "test small-0.1.0/src/../README.md - (line 20) ... ok";
        let run =
            |script: &str| run_examples(program("sh").args(["-c", script]), &[&package("small")]);
        assert!(run(&format!("echo '{line}'")).is_ok());
        let failure = run(&format!("echo '{line}'; exit 101")).unwrap_err().to_string();
        assert!(failure.starts_with("package: failed (exit status: 101)"), "{failure}");
        let failure = run("true").unwrap_err().to_string();
        assert_eq!(failure, "package: the example of small did not run");
    }
}
