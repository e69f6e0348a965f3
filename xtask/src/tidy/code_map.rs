//! README's code map says of each crate what its manifest says.

use crate::ci::TEST_COMMAND;
use crate::floors::{FLOORS, floor_of};
use crate::workspace::Workspace;

/// The head of the code map.
const HEAD: &str = "| crate | floor | what it owns |";

/// One member as the code map should show it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Member {
    folder: String,
    floor: String,
    description: String,
}

/// Collects what the manifests and the table of floors say.
pub(super) fn members(workspace: &Workspace) -> Vec<Member> {
    workspace
        .packages
        .iter()
        .map(|package| Member {
            folder: package.folder(&workspace.root),
            floor: floor_of(&package.name, FLOORS).map_or_else(String::new, |f| f.to_string()),
            description: package.description.clone().unwrap_or_default(),
        })
        .collect()
}

/// Compares the code map of README with the members.
pub(super) fn check(readme: Option<&str>, members: &[Member]) -> Vec<String> {
    let Some(readme) = readme else { return vec!["README.md is missing".to_owned()] };
    let Some(rows) = rows(readme) else {
        return vec![format!("README.md has no code map headed {HEAD}")];
    };
    let mut findings = Vec::new();
    for member in members {
        match rows.iter().filter(|row| row.folder == member.folder).collect::<Vec<_>>()[..] {
            [] => findings.push(format!("README.md: the code map has no {}", member.folder)),
            [row] => findings.extend(differences(row, member)),
            [_, ..] => findings.push(format!("README.md: {} is there twice", member.folder)),
        }
    }
    for row in &rows {
        if !members.iter().any(|member| member.folder == row.folder) {
            findings.push(format!("README.md: {} is no member of the workspace", row.folder));
        }
    }
    findings
}

/// Checks that README names the test command that `ci` runs, alone on a line of a code block.
pub(super) fn check_test_command(readme: Option<&str>) -> Option<String> {
    let mut fenced = false;
    for line in readme?.lines().map(str::trim) {
        if line.starts_with("```") {
            fenced = !fenced;
        } else if fenced && line == TEST_COMMAND {
            return None;
        }
    }
    Some(format!("README.md: no code block has the line `{TEST_COMMAND}`"))
}

fn differences(row: &Member, member: &Member) -> Vec<String> {
    let folder = &member.folder;
    let mut findings = Vec::new();
    if row.floor != member.floor {
        let (said, is) = (&row.floor, &member.floor);
        findings.push(format!("README.md: {folder} stands on floor {said}, floors.rs says {is}"));
    }
    if row.description != member.description {
        let (said, is) = (&row.description, &member.description);
        findings.push(format!("README.md: {folder} reads \"{said}\", its manifest \"{is}\""));
    }
    findings
}

fn rows(readme: &str) -> Option<Vec<Member>> {
    let mut lines = readme.lines().map(str::trim).skip_while(|line| *line != HEAD);
    lines.next()?;
    let rows = lines.skip(1).map_while(|line| {
        let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.splitn(3, '|').map(str::trim);
        Some(Member {
            folder: named(cells.next()?).to_owned(),
            floor: cells.next()?.to_owned(),
            description: cells.next()?.to_owned(),
        })
    });
    Some(rows.collect())
}

/// Takes the folder out of a plain cell, one in backticks, or a link.
fn named(cell: &str) -> &str {
    let link = cell.strip_prefix('[').and_then(|rest| rest.split_once("]("));
    link.map_or(cell, |(text, _)| text).trim_matches('`')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(folder: &str, floor: &str, description: &str) -> Member {
        Member {
            folder: folder.to_owned(),
            floor: floor.to_owned(),
            description: description.to_owned(),
        }
    }

    fn readme(rows: &str) -> String {
        format!("# X\n\n{HEAD}\n|---|---|---|\n{rows}\n\nMore.\n")
    }

    #[test]
    fn equal_rows_pass() {
        let text = readme("| `store` | 2 | Receipts. |\n| `bins/placement` | 8 | Wiring. |");
        let members = [member("store", "2", "Receipts."), member("bins/placement", "8", "Wiring.")];
        assert!(check(Some(&text), &members).is_empty());
    }

    #[test]
    fn a_missing_readme_fails() {
        assert_eq!(check(None, &[]), ["README.md is missing"]);
    }

    #[test]
    fn a_readme_without_a_code_map_fails() {
        assert!(check(Some("# X\n"), &[])[0].contains("no code map"));
    }

    #[test]
    fn another_description_fails() {
        let text = readme("| `store` | 2 | Rows. |");
        let findings = check(Some(&text), &[member("store", "2", "Receipts.")]);
        assert_eq!(findings, ["README.md: store reads \"Rows.\", its manifest \"Receipts.\""]);
    }

    #[test]
    fn another_floor_fails() {
        let text = readme("| `store` | 3 | Receipts. |");
        let findings = check(Some(&text), &[member("store", "2", "Receipts.")]);
        assert_eq!(findings, ["README.md: store stands on floor 3, floors.rs says 2"]);
    }

    #[test]
    fn a_missing_a_stale_and_a_double_row_fail() {
        let text = readme("| `gone` | 1 | Was. |\n| `twice` | 1 | A. |\n| `twice` | 1 | A. |");
        let findings = check(Some(&text), &[member("store", "2", ""), member("twice", "1", "A.")]);
        let expected = [
            "README.md: the code map has no store",
            "README.md: twice is there twice",
            "README.md: gone is no member of the workspace",
        ];
        assert_eq!(findings, expected);
    }

    #[test]
    fn the_test_command_must_stand_in_a_code_block() {
        let fenced = format!("```sh\n{TEST_COMMAND}\n```\n");
        assert_eq!(check_test_command(Some(&fenced)), None);
        for text in [TEST_COMMAND, "```\ncargo test\n```", ""] {
            assert!(check_test_command(Some(text)).is_some(), "{text}");
        }
    }
}
