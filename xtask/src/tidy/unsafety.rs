//! Only `process` lifts the ban of unsafe code.

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};

/// The lint that bans it, in two halves so that this file does not name it.
const LINT: &str = concat!("unsafe", "_code");
/// The levels that lift it.
const LIFTING: &[&str] = &["allow", "expect", "warn"];
/// The one file of what ships that may lift it.
const HOLDER: &str = "crates/process/src/lib.rs";
/// That crate's own tests, which are crates of their own; each file may lift it once.
const HOLDER_TESTS: &str = "crates/process/tests";

/// Looks for the lint in every Rust file.
pub(super) fn check(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == Some("rs")) {
        findings.extend(scan(file, &read(&root.join(file))?));
    }
    Ok(findings)
}

fn scan(file: &Utf8Path, text: &str) -> Vec<String> {
    let lifted = text.match_indices(LINT).filter(|(at, _)| LIFTING.contains(&level(&text[..*at])));
    let permitted = usize::from(file == HOLDER || file.starts_with(HOLDER_TESTS));
    lifted
        .skip(permitted)
        .map(|(at, _)| {
            let line = text[..at].matches('\n').count() + 1;
            format!("{file}:{line} lifts {LINT}: only {HOLDER} does, once")
        })
        .collect()
}

/// Returns the word before the last opening parenthesis: the level of a lint that follows.
fn level(before: &str) -> &str {
    let (before, _) = before.rsplit_once('(').unwrap_or_default();
    before.rsplit(|character: char| !character.is_ascii_alphanumeric()).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lifted() -> String {
        format!("#![expect({LINT}, reason = \"x\")]\n")
    }

    #[test]
    fn process_lifts_it_once() {
        assert!(scan(HOLDER.into(), &lifted()).is_empty());
        assert!(scan("crates/process/tests/real/x.rs".into(), &lifted()).is_empty());
        assert_eq!(scan(HOLDER.into(), &lifted().repeat(2)).len(), 1);
    }

    #[test]
    fn another_crate_fails() {
        let findings = scan("crates/homes/src/lib.rs".into(), &format!("\n{}", lifted()));
        assert_eq!(findings.len(), 1);
        assert_eq!(scan("crates/process/src/spawn.rs".into(), &lifted()).len(), 1);
        assert!(findings[0].starts_with("crates/homes/src/lib.rs:2 "), "{findings:?}");
    }

    #[test]
    fn a_stricter_level_and_a_mention_pass() {
        for text in [format!("#![forbid({LINT})]"), format!("//! `{LINT}` (denied)"), String::new()]
        {
            assert!(scan("crates/homes/src/lib.rs".into(), &text).is_empty(), "{text}");
        }
    }

    #[test]
    fn an_attribute_over_several_lines_fails() {
        let text = format!("#[allow(\n    {LINT},\n)]\nfn f() {{}}\n");
        assert_eq!(scan("crates/homes/src/lib.rs".into(), &text).len(), 1);
    }
}
