//! What a crate that is meant to be used alone pulls in, down to the last one.

use crate::command::{Failure, capture, program};
use camino::Utf8Path;
use std::collections::BTreeSet;

/// The crates that a stranger takes without the rest, each with everything that it may pull in.
///
/// A new line here is a decision: no database, and none of ours but those named.
const ALONE: &[(&str, &[&str])] = &[
    (
        "placement-identity",
        &[
            "bitflags",
            "cfg-if",
            "cfg_aliases",
            "hex",
            "libc",
            "linux-raw-sys",
            "nix",
            "proc-macro2",
            "procfs",
            "procfs-core",
            "quote",
            "rustix",
            "serde",
            "serde_core",
            "serde_derive",
            "syn",
            "thiserror",
            "thiserror-impl",
            "unicode-ident",
        ],
    ),
    (
        "placement-paths",
        &[
            "bitflags",
            "camino",
            "cfg-if",
            "getrandom",
            "libc",
            "linux-raw-sys",
            "proc-macro2",
            "quote",
            "rustix",
            "serde_core",
            "syn",
            "thiserror",
            "thiserror-impl",
            "unicode-ident",
        ],
    ),
];

/// The platform that the table describes, so that it reads the same on every machine.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

/// Compares what cargo would build of each with the table.
pub(super) fn check(root: &Utf8Path) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for (name, allowed) in ALONE {
        let mut cargo = program("cargo");
        cargo.current_dir(root).args(["tree", "--package", name, "--edges", "normal,build"]);
        let tree = capture(cargo.args(["--prefix", "none", "--target", PLATFORM]))?;
        findings.extend(compare(name, &tree, allowed));
    }
    Ok(findings)
}

fn compare(name: &str, tree: &str, allowed: &[&str]) -> Vec<String> {
    let pulled: BTreeSet<&str> = tree.lines().filter_map(|line| line.split(' ').next()).collect();
    let more = pulled.iter().filter(|pulled| **pulled != name && !allowed.contains(pulled));
    let less = allowed.iter().filter(|allowed| !pulled.contains(**allowed));
    more.map(|more| format!("{name} pulls in {more}, which floors/alone.rs does not allow"))
        .chain(less.map(|less| format!("{name} no longer pulls in {less}: see floors/alone.rs")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TREE: &str =
        "small v0.1.0 (/w/crates/small)\nserde v1.0.0\nserde_core v1.0.0\nserde v1.0.0 (*)\n";

    #[test]
    fn what_is_allowed_passes() {
        assert!(compare("small", TREE, &["serde", "serde_core"]).is_empty());
    }

    #[test]
    fn one_more_fails_and_is_named() {
        let findings = compare("small", TREE, &["serde"]);
        assert_eq!(findings, ["small pulls in serde_core, which floors/alone.rs does not allow"]);
    }

    #[test]
    fn one_that_is_gone_fails() {
        let findings = compare("small", TREE, &["serde", "serde_core", "libsqlite3-sys"]);
        assert_eq!(findings, ["small no longer pulls in libsqlite3-sys: see floors/alone.rs"]);
    }

    #[test]
    fn nothing_of_ours_and_no_database_is_allowed() {
        for (name, allowed) in ALONE {
            let banned = |other: &&&str| other.starts_with("placement") || other.contains("sql");
            assert_eq!(allowed.iter().find(banned), None, "{name}");
        }
    }
}
