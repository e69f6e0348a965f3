//! No file names a place outside the repository that only its makers have.

use crate::command::Failure;
use camino::{Utf8Path, Utf8PathBuf};

/// The forbidden words, in parts so that this file does not hold them.
const FORBIDDEN: &[&str] =
    &[concat!("../", "shared"), concat!("/work", "/shared"), concat!("/work", "/main")];

/// Looks for the words in every file.
pub(super) fn check(root: &Utf8Path, files: &[Utf8PathBuf]) -> Result<Vec<String>, Failure> {
    let mut findings = Vec::new();
    for file in files {
        let path = root.join(file);
        let bytes = if path.is_symlink() {
            let target = path.read_link_utf8().map_err(|e| Failure::io("read link", &path, &e))?;
            target.into_string().into_bytes()
        } else {
            std::fs::read(&path).map_err(|error| Failure::io("read", &path, &error))?
        };
        findings.extend(scan(file, &bytes));
    }
    Ok(findings)
}

fn scan(file: &Utf8Path, bytes: &[u8]) -> Vec<String> {
    let mut findings = Vec::new();
    for (line, number) in bytes.split(|byte| *byte == b'\n').zip(1..) {
        for word in FORBIDDEN {
            if line.windows(word.len()).any(|part| part == word.as_bytes()) {
                findings.push(format!("{file}:{number} names {word}"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_passes() {
        assert!(scan("a".into(), b"work, shared, ./work and /work/tool\n").is_empty());
    }

    #[test]
    fn each_word_fails_with_its_line() {
        for word in FORBIDDEN {
            let findings =
                scan("a".into(), format!("one\nzw\u{e9}i two {word} three\n").as_bytes());
            assert_eq!(findings, [format!("a:2 names {word}")]);
        }
    }

    #[test]
    fn a_link_to_such_a_place_fails() {
        let root = placement_testkit::TempRoot::new();
        std::os::unix::fs::symlink(format!("{}x", FORBIDDEN[1]), root.join("link")).unwrap();
        let findings = check(root.path(), &["link".into()]).unwrap();
        assert_eq!(findings, [format!("link:1 names {}", FORBIDDEN[1])]);
    }
}
