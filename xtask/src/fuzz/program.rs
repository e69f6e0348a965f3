//! The fuzzer: libFuzzer around the functions of `crates/fuzz`, built with coverage.

use crate::command::{Failure, capture, program, run as run_command};
use crate::workspace::Workspace;
use camino::Utf8PathBuf;
use std::fs;
use std::process::Stdio;

/// What makes the compiler note which code runs: all of it is on the stable toolchain.
const COVERAGE: &[&str] = &[
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
];

/// The built fuzzer, which feeds the target that its file is named after.
#[derive(Debug)]
pub(super) struct Program {
    built: Utf8PathBuf,
    /// Where files named after targets go.
    named: Utf8PathBuf,
    /// Where inputs go that a fault was found by.
    pub(super) findings: Utf8PathBuf,
}

impl Program {
    /// Builds the fuzzer; without a C++ compiler nothing can be shown.
    pub(super) fn build(workspace: &Workspace) -> Result<Self, Failure> {
        if !has_compiler() {
            return Err(Failure::nothing_shown(
                "fuzz: libFuzzer needs a C++ compiler, and there is no c++ on PATH (Debian: g++)",
            ));
        }
        let triple = host_triple()?;
        let mut cargo = program("cargo");
        cargo.current_dir(&workspace.root).env("RUSTFLAGS", COVERAGE.join(" "));
        // With a target of its own the flags are not those of build scripts.
        cargo.args(["build", "--package", "placement-fuzz", "--bin", "placement-fuzz"]);
        cargo.args(["--features", "libfuzzer", "--profile", "fuzz", "--target", &triple]);
        run_command(&mut cargo)?;
        let directory = workspace.target_directory.join("fuzzing");
        let found = Self {
            built: workspace.target_directory.join(triple).join("fuzz/placement-fuzz"),
            named: directory.join("programs"),
            findings: directory.join("findings"),
        };
        for directory in [&found.named, &found.findings] {
            fs::create_dir_all(directory).map_err(|e| Failure::io("make", directory, &e))?;
        }
        Ok(found)
    }

    /// Returns the program for a target.
    pub(super) fn for_target(&self, name: &str) -> Result<Utf8PathBuf, Failure> {
        let path = self.named.join(name);
        // One of an earlier build has other code.
        fs::remove_file(&path).ok();
        fs::hard_link(&self.built, &path).map_err(|error| Failure::io("link", &path, &error))?;
        Ok(path)
    }
}

/// Says whether there is a C++ compiler where the build looks for it first.
pub(crate) fn has_compiler() -> bool {
    let mut compiler = program("c++");
    compiler.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    compiler.status().is_ok_and(|status| status.success())
}

fn host_triple() -> Result<String, Failure> {
    let told = capture(program("rustc").arg("-vV"))?;
    let host = told.lines().find_map(|line| line.strip_prefix("host: "));
    host.map(str::to_owned).ok_or_else(|| Failure::new("fuzz: rustc does not tell its host"))
}
