//! Only `process` lifts the ban of unsafe code.

use crate::command::Failure;
use crate::workspace::read;
use camino::{Utf8Path, Utf8PathBuf};

/// The lint that bans it, in two halves so that this file does not name it.
const LINT: &str = concat!("unsafe", "_code");
/// The one file that may name it.
const HOLDER: &str = "crates/process/src/lib.rs";

/// Looks for the lint in every Rust file.
pub(super) fn check(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| file.extension() == Some("rs")) {
        findings.extend(scan(file, &read(&root.join(file))?));
    }
    Ok(findings)
}

fn scan(file: &Utf8Path, text: &str) -> Vec<String> {
    let naming = text.lines().zip(1..).filter(|(line, _)| line.contains(LINT));
    let lines: Vec<u32> = naming.map(|(_, number)| number).collect();
    let permitted = usize::from(file == HOLDER);
    lines
        .into_iter()
        .skip(permitted)
        .map(|line| format!("{file}:{line} names {LINT}: only {HOLDER} lifts it, once"))
        .collect()
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
        assert_eq!(scan(HOLDER.into(), &lifted().repeat(2)).len(), 1);
    }

    #[test]
    fn another_crate_fails() {
        let findings = scan("crates/homes/src/lib.rs".into(), &format!("\n{}", lifted()));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].starts_with("crates/homes/src/lib.rs:2 "), "{findings:?}");
    }

    #[test]
    fn an_attribute_over_several_lines_fails() {
        let text = format!("#[allow(\n    {LINT},\n)]\nfn f() {{}}\n");
        assert_eq!(scan("crates/homes/src/lib.rs".into(), &text).len(), 1);
    }
}
