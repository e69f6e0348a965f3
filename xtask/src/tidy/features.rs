//! Tests switch no feature on that the programs are built without.
//!
//! Cargo builds a crate once for each set of features. One more feature of a crate that everything
//! imports, asked for by a dev-dependency, means that the whole workspace is compiled twice.

use crate::command::{Failure, capture, program};
use camino::Utf8Path;
use std::collections::{BTreeMap, BTreeSet};

/// Compares what cargo would build with and without the dev-dependencies.
pub(super) fn check(root: &Utf8Path) -> Result<Vec<String>, Failure> {
    Ok(differences(&tree(root, "normal,build")?, &tree(root, "normal,build,dev")?))
}

fn tree(root: &Utf8Path, edges: &str) -> Result<String, Failure> {
    let mut cargo = program("cargo");
    cargo.current_dir(root).args(["tree", "--workspace", "--prefix", "none"]);
    capture(cargo.args(["--format", "{p} [{f}]", "--edges", edges]))
}

fn differences(programs: &str, tests: &str) -> Vec<String> {
    let (programs, tests) = (features(programs), features(tests));
    let mut findings = Vec::new();
    for (package, sets) in &programs {
        // What only tests import is built once, whatever its features.
        for set in tests.get(package).into_iter().flatten().filter(|set| !sets.contains(*set)) {
            findings.push(format!("{package} is compiled once more for tests, with {set}"));
        }
    }
    findings
}

/// Maps each package to the sets of features with which it is built.
fn features(tree: &str) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut found: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (package, rest) in tree.lines().filter_map(|line| line.rsplit_once(" [")) {
        // A package that was shown before is marked behind the bracket.
        let set = rest.split_once(']').map_or(rest, |(set, _)| set);
        found.entry(package).or_default().insert(set);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAMS: &str =
        "nix v0.32.0 [signal]\nrefinery v1 [a]\nrefinery v1 [b]\nnix v0.32.0 [signal] (*)\n";

    #[test]
    fn equal_features_and_crates_of_tests_alone_pass() {
        let tests = format!("{PROGRAMS}tempfile v3.0.0 [default]\n");
        assert!(differences(PROGRAMS, &tests).is_empty());
    }

    #[test]
    fn a_feature_of_tests_alone_fails() {
        let tests = PROGRAMS.replace("[signal]", "[resource,signal]");
        let findings = differences(PROGRAMS, &tests);
        assert_eq!(findings, ["nix v0.32.0 is compiled once more for tests, with resource,signal"]);
    }
}
