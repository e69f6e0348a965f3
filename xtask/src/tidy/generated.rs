//! The tables of docs/ equal the contract.

use crate::command::Failure;
use crate::docs::generated;
use crate::workspace::read;
use camino::Utf8Path;

/// Compares each generated document with the file in the repository.
pub(super) fn check(root: &Utf8Path) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for (name, wanted) in generated(root)? {
        let path = root.join(name);
        let found = if path.exists() { Some(read(&path)?) } else { None };
        findings.extend(compare(name, found.as_deref(), &wanted));
    }
    Ok(findings)
}

fn compare(name: &str, found: Option<&str>, wanted: &str) -> Option<String> {
    let repair = "`cargo xtask docs` writes it anew";
    let Some(found) = found else { return Some(format!("{name} is missing: {repair}")) };
    if found == wanted {
        return None;
    }
    let differing = found.lines().zip(wanted.lines()).position(|(found, wanted)| found != wanted);
    let line = differing.unwrap_or_else(|| found.lines().count().min(wanted.lines().count())) + 1;
    Some(format!("{name}:{line} differs from the contract: {repair}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_equal_document_passes() {
        assert_eq!(compare("d", Some("a\nb\n"), "a\nb\n"), None);
    }

    #[test]
    fn a_missing_document_fails() {
        assert!(compare("d", None, "a\n").is_some_and(|found| found.starts_with("d is missing")));
    }

    #[test]
    fn a_changed_and_a_cut_document_fail_with_their_line() {
        for (found, line) in [("a\nx\n", "d:2"), ("a\n", "d:2"), ("a\nb\nc\n", "d:3")] {
            let finding = compare("d", Some(found), "a\nb\n").unwrap();
            assert!(finding.starts_with(line), "{finding}");
        }
    }
}
