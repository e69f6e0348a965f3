//! Every test, fixture and campaign that docs/tests.md and docs/reliability.md name is there.

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::{BTreeMap, BTreeSet};

/// A document whose tables name tests.
#[derive(Debug)]
struct Document {
    path: &'static str,
    /// The head of each of its tables.
    head: &'static str,
    /// Which of the three cells of a row names tests.
    shown: usize,
}

const RULES: Document =
    Document { path: "docs/tests.md", head: "| rule | what it says | shown by |", shown: 2 };
const PROMISES: Document = Document {
    path: "docs/reliability.md",
    head: "| promise | what holds it | what is not promised |",
    shown: 1,
};
/// Where the fixtures lie that they name.
const FIXTURES: [&str; 2] = ["fixtures/requests/accepted", "fixtures/requests/refused"];

/// What there is to be named.
#[derive(Debug, Default)]
struct Found {
    /// The tests of each source file.
    tests: BTreeMap<String, BTreeSet<String>>,
    /// The fixtures, without their folder and their extension.
    fixtures: BTreeSet<String>,
    /// The modules of this program, most of which are a command.
    commands: BTreeSet<String>,
}

/// Compares the documents with the sources.
pub(super) fn check(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Vec<String>, Failure> {
    let found = found(root, files)?;
    let mut findings = Vec::new();
    for document in [RULES, PROMISES] {
        let path = root.join(document.path);
        if path.exists() {
            findings.extend(differences(&document, &read(&path)?, &found));
        } else {
            findings.push(format!("{} is missing", document.path));
        }
    }
    Ok(findings)
}

fn found(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Found, Failure> {
    let mut found = Found::default();
    for file in files {
        let is_fixture = file.parent().is_some_and(|folder| FIXTURES.contains(&folder.as_str()));
        if is_fixture && file.extension() == Some("json") {
            found.fixtures.extend(file.file_stem().map(str::to_owned));
        } else if file.extension() == Some("rs") && !root.join(file).is_symlink() {
            found.tests.insert(file.to_string(), tests_in(&read(&root.join(file))?));
            found.commands.extend(command(file));
        }
    }
    Ok(found)
}

/// Returns the command that a file of this program is, by the name of its module.
fn command(file: &Utf8Path) -> Option<String> {
    let inside = file.strip_prefix("xtask/src").ok()?;
    let module = inside.as_str().strip_suffix("/mod.rs").or(inside.as_str().strip_suffix(".rs"))?;
    Some(module.replace('_', "-"))
}

/// Collects the functions that are marked as tests.
fn tests_in(source: &str) -> BTreeSet<String> {
    let mut tests = BTreeSet::new();
    let mut is_test = false;
    for line in source.lines().map(str::trim) {
        // Other attributes and comments may stand between the mark and the function.
        is_test |= line == "#[test]";
        if let Some(rest) = line.strip_prefix("fn ")
            && std::mem::take(&mut is_test)
        {
            let name = rest.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next();
            tests.extend(name.map(str::to_owned));
        }
    }
    tests
}

fn differences(document: &Document, text: &str, found: &Found) -> Vec<String> {
    let Document { path, head, shown } = document;
    let mut findings = Vec::new();
    let mut names = BTreeSet::new();
    let mut lines = text.lines().zip(1..);
    let mut tables = 0;
    while lines.any(|(line, _)| line == *head) {
        tables += 1;
        for (line, number) in lines.by_ref().skip(1).take_while(|(line, _)| line.starts_with('|')) {
            let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
            let cells: Vec<&str> = inner.unwrap_or(line).split('|').map(str::trim).collect();
            let [name, _, _] = cells[..] else {
                findings.push(format!("{path}:{number} is no row of three cells"));
                continue;
            };
            if !names.insert(name) {
                findings.push(format!("{path}:{number}: {name} is there twice"));
            }
            let row = row(cells[*shown], found).into_iter();
            findings.extend(row.map(|it| format!("{path}:{number}: {name}: {it}")));
        }
    }
    if tables == 0 {
        findings.push(format!("{path} has no table headed {head}"));
    }
    findings
}

/// Looks for what one row names: a file, then its tests; a name with a dot is a fixture's.
fn row(shown: &str, found: &Found) -> Vec<String> {
    let mut findings = Vec::new();
    let mut tests = None;
    let mut count = 0;
    // What stands in backticks, and in between nothing but separators.
    for (name, is_quoted) in shown.split('`').zip([false, true].into_iter().cycle()) {
        if !is_quoted {
            let left = name.trim_matches([' ', ';']);
            if !left.is_empty() {
                findings.push(format!("\"{left}\" is no name"));
            }
            continue;
        }
        if Utf8Path::new(name).extension() == Some("rs") {
            tests = found.tests.get(name);
            if tests.is_none() {
                findings.push(format!("there is no {name}"));
            }
            continue;
        }
        count += 1;
        let is_there = if let Some(command) = name.strip_prefix("cargo xtask ") {
            found.commands.contains(command)
        } else if name.contains('.') {
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

    const SOURCE: &str = "#[test]\nfn first() {}\n\n    #[test]\n    #[expect(\n        x,\n    )]\n    fn second(\n        a in b,\n    ) {}\n\nfn helper() {}\n";

    fn found() -> Found {
        Found {
            tests: BTreeMap::from([("a/b.rs".to_owned(), tests_in(SOURCE))]),
            fixtures: BTreeSet::from(["launch.whole".to_owned()]),
            commands: ["xtask/src/race/mod.rs", "xtask/src/long_life.rs", "xtask/src/race/one.rs"]
                .into_iter()
                .filter_map(|file| command(file.into()))
                .collect(),
        }
    }

    fn seen(rows: &str) -> Vec<String> {
        let head = RULES.head;
        let text = format!("# X\n\n{head}\n|---|---|---|\n{rows}\nMore | than | that.\n");
        differences(&RULES, &text, &found())
    }

    #[test]
    fn promises_are_held_in_every_table_by_tests_and_commands_that_are_there() {
        let head = PROMISES.head;
        let table = |row: &str| format!("{head}\n|---|---|---|\n{row}\n\n");
        let rows = [
            "| It is. | `cargo xtask race` `cargo xtask long-life`; `a/b.rs` `first` | |",
            "| Too. | `cargo xtask peace`; `a/b.rs` `third` | Nothing. |",
            "| More. | by faith `launch.whole` | All. |",
            "| Less. | | All. |",
        ];
        let text: String = rows.into_iter().map(table).collect();
        let expected = [
            "docs/reliability.md:7: Too.: there is no cargo xtask peace",
            "docs/reliability.md:7: Too.: there is no third",
            "docs/reliability.md:11: More.: \"by faith\" is no name",
            "docs/reliability.md:15: Less.: nothing shows it",
        ];
        assert_eq!(differences(&PROMISES, &text, &found()), expected);
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
        assert_eq!(differences(&RULES, "# X\n", &found()).len(), 1);
    }

    #[test]
    fn missing_documents_fail() {
        let root = placement_testkit::TempRoot::new();
        let missing = ["docs/tests.md is missing", "docs/reliability.md is missing"];
        assert_eq!(check(root.path(), &[]).unwrap(), missing);
    }
}
