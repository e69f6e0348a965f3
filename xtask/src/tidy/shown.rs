//! Every test and every fixture that docs/tests.md names is there.

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};

const DOCUMENT: &str = "docs/tests.md";
/// The head of its table.
const HEAD: &str = "| rule | what it says | shown by |";
/// Where the fixtures lie that it names.
const FIXTURES: [&str; 2] = ["fixtures/requests/accepted", "fixtures/requests/refused"];

/// What there is to be named.
#[derive(Debug, Default)]
struct Found {
    /// The tests of each source file.
    tests: BTreeMap<String, BTreeSet<String>>,
    /// The fixtures, without their folder and their extension.
    fixtures: BTreeSet<String>,
}

/// Compares the document with the sources.
pub(super) fn check(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Vec<String>, Failure> {
    let document = root.join(DOCUMENT);
    if !document.exists() {
        return Ok(vec![format!("{DOCUMENT} is missing")]);
    }
    let mut found = Found::default();
    for file in files {
        let is_fixture = file.parent().is_some_and(|folder| FIXTURES.contains(&folder.as_str()));
        if is_fixture && file.extension() == Some("json") {
            found.fixtures.extend(file.file_stem().map(str::to_owned));
        } else if file.extension() == Some("rs") && !root.join(file).is_symlink() {
            found.tests.insert(file.to_string(), tests_in(&read(&root.join(file))?));
        }
    }
    Ok(differences(&read(&document)?, &found))
}

/// Collects the functions that are marked as tests.
fn tests_in(source: &str) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("fn ")
            && is_test
        {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            tests.extend(name.map(str::to_owned));
        }
        // Other attributes and comments may stand between the mark and the function.
        is_test =
            line == "#[test]" || (is_test && (line.starts_with('#') || line.starts_with('/')));
    }
    tests
}

fn differences(document: &str, found: &Found) -> Vec<String> {
    let mut lines = document.lines().zip(1..).skip_while(|(line, _)| *line != HEAD);
    if lines.next().is_none() {
        return vec![format!("{DOCUMENT} has no table headed {HEAD}")];
    }
    let mut findings = Vec::new();
    let mut rules = BTreeSet::new();
    for (line, number) in lines.skip(1).take_while(|(line, _)| line.starts_with('|')) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let [rule, _, shown] = cells[..] else {
            findings.push(format!("{DOCUMENT}:{number} is no row of three cells"));
            continue;
        };
        if !rules.insert(rule) {
            findings.push(format!("{DOCUMENT}:{number}: {rule} is there twice"));
        }
        findings.extend(
            row(shown, found).into_iter().map(|it| format!("{DOCUMENT}:{number}: {rule}: {it}")),
        );
    }
    findings
}

/// Looks for what one row names: a file, then its tests; a name with a dot is a fixture's.
fn row(shown: &str, found: &Found) -> Vec<String> {
    let mut findings = Vec::new();
    let mut tests = None;
    let mut count = 0;
    for name in shown.split(['`', ' ', ';']).filter(|name| !name.is_empty()) {
        if Utf8Path::new(name).extension() == Some("rs") {
            tests = found.tests.get(name);
            if tests.is_none() {
                findings.push(format!("there is no {name}"));
            }
            continue;
        }
        count += 1;
        let is_there = if name.contains('.') {
            found.fixtures.contains(name)
        } else {
            tests.is_some_and(|tests| tests.contains(name))
        };
        if !is_there {
            findings.push(format!("there is no {name}"));
        }
    }
    if count == 0 {
        findings.push("nothing shows it".to_owned());
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "#[test]\nfn first() {}\n\n    #[test]\n    #[cfg(unix)]\n    fn second(\n        a in b,\n    ) {}\n\nfn helper() {}\n";

    fn found() -> Found {
        Found {
            tests: BTreeMap::from([("a/b.rs".to_owned(), tests_in(SOURCE))]),
            fixtures: BTreeSet::from(["launch.whole".to_owned()]),
        }
    }

    fn seen(rows: &str) -> Vec<String> {
        differences(
            &format!("# X\n\n{HEAD}\n|---|---|---|\n{rows}\nMore | than | that.\n"),
            &found(),
        )
    }

    #[test]
    fn what_is_there_passes() {
        let rows = "| 1 | It is. | `a/b.rs` `first` `second`; `launch.whole` |\n| 2 | Too. | `launch.whole` |";
        assert!(seen(rows).is_empty());
    }

    #[test]
    fn a_helper_is_no_test() {
        assert_eq!(tests_in(SOURCE), BTreeSet::from(["first", "second"].map(str::to_owned)));
        let findings = seen("| 1 | It is. | `a/b.rs` `helper` |");
        assert_eq!(findings, ["docs/tests.md:5: 1: there is no helper"]);
    }

    #[test]
    fn a_missing_file_test_or_fixture_fails() {
        let findings = seen("| 1 | It is. | `a/c.rs` `first`; `a/b.rs` `third`; `launch.half` |");
        let missing = ["a/c.rs", "first", "third", "launch.half"];
        let expected = missing.map(|name| format!("docs/tests.md:5: 1: there is no {name}"));
        assert_eq!(findings, expected);
    }

    #[test]
    fn a_rule_without_a_test_twice_or_in_another_form_fails() {
        let rows = "| 1 | It is. | `a/b.rs` |\n| 1 | Too. | `launch.whole` |\n| 2 | Cut. |";
        let expected = [
            "docs/tests.md:5: 1: nothing shows it",
            "docs/tests.md:6: 1 is there twice",
            "docs/tests.md:7 is no row of three cells",
        ];
        assert_eq!(seen(rows), expected);
    }

    #[test]
    fn a_document_without_its_table_fails() {
        assert_eq!(differences("# X\n", &found()).len(), 1);
    }

    #[test]
    fn a_missing_document_fails() {
        let root = placement_testkit::TempRoot::new();
        assert_eq!(check(root.path(), &[]).unwrap(), ["docs/tests.md is missing"]);
    }
}
