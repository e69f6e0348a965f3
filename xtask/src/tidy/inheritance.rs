//! Members inherit what the workspace decides.

use toml::{Table, Value};

/// What each member inherits, as table and key.
const INHERITED: &[(&str, &str)] = &[
    ("package", "version"),
    ("package", "edition"),
    ("package", "rust-version"),
    ("package", "license"),
];

/// The tables whose entries take their versions from the workspace.
const DEPENDENCIES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// Checks one member's manifest.
pub(super) fn check(member: &str, manifest: &str) -> Vec<String> {
    let manifest: Table = match manifest.parse() {
        Ok(table) => table,
        Err(error) => return vec![format!("{member}: the manifest does not parse: {error}")],
    };
    let mut findings = Vec::new();
    for (table, key) in INHERITED {
        if !manifest.get(*table).and_then(|table| table.get(key)).is_some_and(is_inherited) {
            findings.push(format!("{member}: {table}.{key} is not inherited from the workspace"));
        }
    }
    if !manifest.get("lints").is_some_and(is_inherited) {
        findings.push(format!("{member}: the lints are not inherited from the workspace"));
    }
    for table in tables(&manifest) {
        for (name, dependency) in table {
            if !is_inherited(dependency) {
                findings.push(format!("{member}: {name} is not inherited from the workspace"));
            }
        }
    }
    findings
}

/// Collects the dependency tables, those of single platforms too.
fn tables(manifest: &Table) -> Vec<&Table> {
    let platforms = manifest.get("target").and_then(Value::as_table).into_iter().flatten();
    let places =
        std::iter::once(manifest).chain(platforms.filter_map(|(_, platform)| platform.as_table()));
    places
        .flat_map(|place| DEPENDENCIES.iter().filter_map(|name| place.get(*name)?.as_table()))
        .collect()
}

fn is_inherited(value: &Value) -> bool {
    value.get("workspace").and_then(Value::as_bool) == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[package]\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense.workspace = true\n[lints]\nworkspace = true\n\
        [dependencies]\nserde = { workspace = true, features = [\"rc\"] }\n";

    #[test]
    fn a_member_that_inherits_passes() {
        assert!(check("m", GOOD).is_empty());
    }

    #[test]
    fn a_version_of_its_own_fails() {
        let findings =
            check("m", &GOOD.replace("version.workspace = true\ned", "version = \"1\"\ned"));
        assert_eq!(findings, ["m: package.version is not inherited from the workspace"]);
    }

    #[test]
    fn an_edition_of_its_own_fails() {
        let findings = check("m", &GOOD.replace("edition.workspace = true", "edition = \"2021\""));
        assert_eq!(findings, ["m: package.edition is not inherited from the workspace"]);
    }

    #[test]
    fn lints_of_its_own_fail() {
        let findings = check("m", &GOOD.replace("[lints]\nworkspace = true\n", ""));
        assert_eq!(findings, ["m: the lints are not inherited from the workspace"]);
    }

    #[test]
    fn a_dependency_of_its_own_version_fails() {
        let findings = check("m", &format!("{GOOD}toml = \"1\"\n"));
        assert_eq!(findings, ["m: toml is not inherited from the workspace"]);
        let platform = format!("{GOOD}[target.'cfg(unix)'.dependencies]\nnix = \"1\"\n");
        assert_eq!(check("m", &platform), ["m: nix is not inherited from the workspace"]);
    }
}
