//! `docs`: writes the tables of docs/ from the contract, so that they cannot differ from it.

use crate::command::Failure;
use crate::workspace::{Workspace, read};
use camino::Utf8Path;
use placement_contract::{Code, EvidenceKind};
use std::fmt::Write as _;

/// Where the evidence kinds are declared with the sentence that explains each.
const EVIDENCE_SOURCE: &str = "crates/contract/src/evidence.rs";

/// Writes every generated document.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    for (name, text) in generated(&workspace.root)? {
        let path = workspace.root.join(name);
        let parent = path.parent().expect("a document lies in a folder");
        std::fs::create_dir_all(parent).map_err(|e| Failure::io("make", parent, &e))?;
        std::fs::write(&path, text).map_err(|e| Failure::io("write", &path, &e))?;
        println!("docs: wrote {name}");
    }
    Ok(())
}

/// Returns every generated document with its path below the root.
pub(crate) fn generated(root: &Utf8Path) -> Result<[(&'static str, String); 2], Failure> {
    let source = read(&root.join(EVIDENCE_SOURCE))?;
    let evidence = evidence_document(&source).map_err(Failure::new)?;
    Ok([("docs/evidence.md", evidence), ("docs/errors.md", errors_document())])
}

fn evidence_document(source: &str) -> Result<String, String> {
    let mut text = String::from(
        "# Evidence\n\n\
         Every change of an attempt's state is backed by a row of evidence. A row says what was seen and\n\
         by which means; a signal is not an exit. The kinds, in the order of an attempt's life:\n\n\
         | kind | meaning |\n|---|---|\n",
    );
    for kind in EvidenceKind::ALL {
        let label = kind.label();
        let meaning = meaning_of(source, label)
            .ok_or_else(|| format!("{EVIDENCE_SOURCE} has no documented kind {label}"))?;
        writeln!(text, "| `{label}` | {meaning} |").expect("writing to a string does not fail");
    }
    text.push_str("\nWritten by `cargo xtask docs`; `cargo xtask tidy` compares.\n");
    Ok(text)
}

/// Finds the doc lines right above the declaration of a label.
fn meaning_of(source: &str, label: &str) -> Option<String> {
    let declaration = format!(" = \"{label}\",");
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let declared = lines.iter().position(|line| line.ends_with(&declaration))?;
    let mut sentences: Vec<&str> = lines[..declared]
        .iter()
        .rev()
        .map_while(|line| line.strip_prefix("///"))
        .map(str::trim)
        .collect();
    sentences.reverse();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

fn errors_document() -> String {
    let mut text = String::from(
        "# Errors\n\n\
         Every refusal has one of these codes, what stood against it, and a hint. A refusal may carry a\n\
         hint that fits better than the one of its code.\n\n\
         | code | meaning | what to do | a retry may succeed |\n|---|---|---|---|\n",
    );
    for code in Code::ALL {
        let retry = if code.is_retryable() { "yes" } else { "no" };
        writeln!(text, "| `{code}` | {} | {} | {retry} |", code.meaning(), code.hint())
            .expect("writing to a string does not fail");
    }
    text.push_str("\nWritten by `cargo xtask docs`; `cargo xtask tidy` compares.\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_meaning_is_the_doc_above_the_label() {
        let source = "/// First.\nA = \"a.made\",\n/// Second\n/// half.\nB = \"b.made\",\nC = \"c.made\",\n";
        assert_eq!(meaning_of(source, "a.made").as_deref(), Some("First."));
        assert_eq!(meaning_of(source, "b.made").as_deref(), Some("Second half."));
        assert_eq!(meaning_of(source, "c.made"), None);
        assert_eq!(meaning_of(source, "d.made"), None);
    }

    #[test]
    fn a_kind_without_a_meaning_fails() {
        let refused = evidence_document("").unwrap_err();
        assert!(refused.contains("intent.recorded"), "{refused}");
    }

    #[test]
    fn every_code_has_its_row() {
        let document = errors_document();
        for code in Code::ALL {
            assert!(document.contains(&format!("| `{code}` |")), "{code}");
        }
    }
}
