//! Each library that strangers may have says what it is, once, and its example runs.

use crate::command::Failure;
use crate::workspace::{Package, read};
use camino::Utf8Path;

/// How the first file of the library takes the README for its documentation.
const INCLUDED: &str = "#![doc = include_str!(\"../README.md\")]";

/// The headings of each README, in order.
const HEADINGS: &[&str] = &[
    "## What it owns",
    "## What it never does",
    "## Example",
    "## Limits",
    "## Reading order",
    "## Platform and licence",
];

/// How the fence of an example begins that rustdoc compiles and runs; the second one by itself, as a
/// program that starts itself again must be.
const FENCES: &[&str] = &["```rust", "```rust,standalone_crate"];

/// The slugs of crates.io that are in use here.
const CATEGORIES: &[&str] = &[
    "config",
    "data-structures",
    "database",
    "development-tools",
    "encoding",
    "filesystem",
    "network-programming",
    "os::linux-apis",
];

/// The most keywords that crates.io takes, and the most characters of one.
const KEYWORDS_MAX: usize = 5;
const KEYWORD_LENGTH_MAX: usize = 20;

/// Checks one member; nothing is asked of one that is not published.
pub(super) fn check(package: &Package) -> Result<Vec<String>, Failure> {
    let Some(library) = package.published_library() else { return Ok(Vec::new()) };
    let folder = package.manifest_path.parent().unwrap_or(Utf8Path::new("/"));
    let readme = match &package.readme {
        Some(readme) if folder.join(readme).exists() => Some(read(&folder.join(readme))?),
        Some(_) | None => None,
    };
    let found = in_manifest(package)
        .into_iter()
        .chain(in_library(&read(library)?))
        .chain(in_readme(package, readme.as_deref()));
    Ok(found.map(|finding| format!("{}: {finding}", package.name)).collect())
}

fn in_manifest(package: &Package) -> Vec<String> {
    let mut findings = Vec::new();
    if package.description.as_ref().is_none_or(String::is_empty) {
        findings.push("the manifest has no description".to_owned());
    }
    if package.keywords.is_empty() || package.keywords.len() > KEYWORDS_MAX {
        findings.push(format!("the manifest has not 1 to {KEYWORDS_MAX} keywords"));
    }
    for keyword in package.keywords.iter().filter(|keyword| !is_keyword(keyword)) {
        findings.push(format!("crates.io takes no keyword {keyword:?}"));
    }
    if package.categories.is_empty() {
        findings.push("the manifest has no category".to_owned());
    }
    for category in &package.categories {
        if !CATEGORIES.contains(&category.as_str()) {
            findings.push(format!("{category:?} is no category in tidy/published.rs"));
        }
    }
    findings
}

fn is_keyword(keyword: &str) -> bool {
    keyword.len() <= KEYWORD_LENGTH_MAX
        && keyword.starts_with(|first: char| first.is_ascii_alphanumeric())
        && keyword.chars().all(|c| c.is_ascii_alphanumeric() || "-_+".contains(c))
}

/// The README is the documentation, and nothing is said a second time beside it.
fn in_library(text: &str) -> Option<String> {
    let mut lines = text.lines();
    let first = lines.next() == Some(INCLUDED);
    let alone = !lines.any(|line| line.starts_with("//!") || line.starts_with("#![doc"));
    (!(first && alone)).then(|| format!("the documentation of the crate is not {INCLUDED} alone"))
}

fn in_readme(package: &Package, readme: Option<&str>) -> Vec<String> {
    let Some(readme) = readme else { return vec!["README.md is missing".to_owned()] };
    let mut findings = Vec::new();
    let mut paragraphs = readme.split("\n\n");
    if paragraphs.next() != Some(&format!("# {}", package.name)) {
        findings.push("README.md is not headed by the name".to_owned());
    }
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let said = paragraphs.next().map(words).unwrap_or_default();
    if said != package.description.as_deref().map(words).unwrap_or_default() {
        findings.push("README.md does not begin with the description of the manifest".to_owned());
    }
    let headings: Vec<&str> = readme.lines().filter(|line| line.starts_with("## ")).collect();
    if headings != HEADINGS {
        findings.push(format!("README.md has not the headings {}", HEADINGS.join(", ")));
        return findings;
    }
    if !example(readme).is_some_and(|code| code.contains("assert")) {
        let fences = FENCES.join(" or ");
        findings.push(format!("README.md has no example in {fences} that asserts something"));
    }
    let licence = package.license.as_deref().unwrap_or("a licence");
    if !readme.lines().last().is_some_and(|line| line.contains(licence)) {
        findings.push(format!("README.md does not end with {licence}"));
    }
    findings
}

/// Returns the code of the one example, if it is one that runs.
fn example(readme: &str) -> Option<&str> {
    let (_, section) = readme.split_once("\n## Example\n\n")?;
    let (fence, rest) = section.split_once('\n')?;
    FENCES.contains(&fence).then(|| rest.split_once("\n```\n").map(|(code, _)| code))?
}

#[cfg(test)]
mod tests {
    use super::*;

    const README: &str = "# small\n\nDoes little\nand well.\n\n## What it owns\n\nX.\n\n\
        ## What it never does\n\nY.\n\n## Example\n\n```rust\nassert!(true);\n```\n\n## Limits\n\nZ.\n\n\
        ## Reading order\n\n`a`.\n\n## Platform and licence\n\nLinux. MIT OR Apache-2.0.\n";

    fn small() -> Package {
        Package {
            name: "small".to_owned(),
            description: Some("Does little and well.".to_owned()),
            license: Some("MIT OR Apache-2.0".to_owned()),
            keywords: vec!["pid".to_owned()],
            categories: vec!["filesystem".to_owned()],
            ..Package::default()
        }
    }

    #[test]
    fn a_crate_that_says_it_all_passes() {
        assert!(in_manifest(&small()).is_empty());
        assert_eq!(in_library(&format!("{INCLUDED}\n#![forbid(x)]\n\nmod a;\n")), None);
        assert_eq!(in_readme(&small(), Some(README)), Vec::<String>::new());
    }

    #[test]
    fn a_manifest_that_says_nothing_fails_three_times() {
        let bare = Package { name: "small".to_owned(), ..Package::default() };
        assert_eq!(in_manifest(&bare).len(), 3, "{:?}", in_manifest(&bare));
    }

    #[test]
    fn what_crates_io_refuses_fails() {
        let keywords = |words: &[&str]| Package {
            keywords: words.iter().map(|word| (*word).to_owned()).collect(),
            ..small()
        };
        assert!(in_manifest(&keywords(&["a", "b", "c", "d", "e", "f"]))[0].contains("1 to 5"));
        for word in ["", "two words", "-x", "longer-than-twenty-chars"] {
            assert_eq!(in_manifest(&keywords(&[word])).len(), 1, "{word}");
        }
        let strange = Package { categories: vec!["processes".to_owned()], ..small() };
        assert_eq!(in_manifest(&strange), ["\"processes\" is no category in tidy/published.rs"]);
    }

    #[test]
    fn documentation_beside_the_readme_fails() {
        for text in ["//! Small.\n", "mod a;\n", &format!("{INCLUDED}\n//! More.\n")] {
            assert!(in_library(text).is_some(), "{text}");
        }
    }

    #[test]
    fn a_missing_readme_fails() {
        assert_eq!(in_readme(&small(), None), ["README.md is missing"]);
    }

    #[test]
    fn each_part_of_the_readme_is_asked_for() {
        for (part, other) in [
            ("# small\n", "# tiny\n"),
            ("and well.", "and badly."),
            ("## Limits\n", "## Bounds\n"),
            ("```rust\n", "```rust,no_run\n"),
            ("assert!", "drop"),
            ("MIT OR Apache-2.0", "Ask."),
        ] {
            let findings = in_readme(&small(), Some(&README.replacen(part, other, 1)));
            assert_eq!(findings.len(), 1, "{part}: {findings:?}");
        }
    }
}
