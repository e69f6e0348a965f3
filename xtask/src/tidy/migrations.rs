//! Migrations are numbered from 1 without gaps.

use camino::Utf8PathBuf;
use std::collections::BTreeMap;

/// Checks the names of the files in `migrations/`.
pub(super) fn check(files: &[Utf8PathBuf]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut numbered = BTreeMap::new();
    for name in files.iter().filter_map(|file| file.strip_prefix("migrations").ok()) {
        match number(name.as_str()) {
            Some(number) => {
                if let Some(other) = numbered.insert(number, name) {
                    findings.push(format!("migrations: {other} and {name} have one number"));
                }
            }
            None => findings.push(format!("migrations: {name} is not named V1__what.sql")),
        }
    }
    for (wanted, (found, name)) in (1..).zip(&numbered) {
        if wanted != *found {
            findings.push(format!("migrations: V{wanted} is missing before {name}"));
            break;
        }
    }
    if numbered.is_empty() {
        findings.push("migrations: there is none".to_owned());
    }
    findings
}

fn number(name: &str) -> Option<u32> {
    let (number, what) = name.strip_prefix('V')?.strip_suffix(".sql")?.split_once("__")?;
    let plain = !what.is_empty() && !number.starts_with('0');
    plain.then(|| number.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(names: &[&str]) -> Vec<String> {
        check(&names.iter().map(Utf8PathBuf::from).collect::<Vec<_>>())
    }

    #[test]
    fn numbers_without_gaps_pass() {
        let names = ["migrations/V1__a.sql", "migrations/V2__b.sql", "crates/V9__x.sql"];
        assert!(found(&names).is_empty());
    }

    #[test]
    fn a_gap_fails() {
        let findings = found(&["migrations/V1__a.sql", "migrations/V3__c.sql"]);
        assert_eq!(findings, ["migrations: V2 is missing before V3__c.sql"]);
    }

    #[test]
    fn a_start_above_1_fails() {
        let findings = found(&["migrations/V2__b.sql"]);
        assert_eq!(findings, ["migrations: V1 is missing before V2__b.sql"]);
    }

    #[test]
    fn a_number_twice_fails() {
        let findings = found(&["migrations/V1__a.sql", "migrations/V1__b.sql"]);
        assert_eq!(findings, ["migrations: V1__a.sql and V1__b.sql have one number"]);
    }

    #[test]
    fn another_name_fails() {
        for name in ["migrations/1__a.sql", "migrations/V01__a.sql", "migrations/V1__.sql"] {
            assert!(found(&[name, "migrations/V1__a.sql"])[0].contains("is not named"), "{name}");
        }
    }

    #[test]
    fn no_migration_fails() {
        assert_eq!(found(&[]), ["migrations: there is none"]);
    }
}
