//! The crash points as they stand in the code.

use crate::command::Failure;
use crate::workspace::{files, read};
use camino::{Utf8Path, Utf8PathBuf};
use std::collections::BTreeMap;

/// The folders whose code one attempt runs through, on either side.
pub(super) const CODE: &[&str] = &[
    "crates/service/src/",
    "crates/runner/src/",
    "crates/materialize/src/",
    "crates/store/src/",
    "crates/homes/src/",
];

/// Lists the points, each once. Those of commits are not among them: every write has its own, named
/// by what it writes.
pub(super) fn listed(root: &Utf8Path) -> Result<Vec<String>, Failure> {
    let mut found: BTreeMap<String, Utf8PathBuf> = BTreeMap::new();
    for file in sources(root)? {
        for name in names(&read(&root.join(&file))?) {
            if let Some(other) = found.insert(name.clone(), file.clone()) {
                return Err(Failure::new(format!("{name} is announced in {other} and in {file}")));
            }
        }
    }
    Ok(found.into_keys().collect())
}

/// Lists the files of the code, without its tests.
pub(super) fn sources(root: &Utf8Path) -> Result<Vec<Utf8PathBuf>, Failure> {
    let ours = |file: &Utf8PathBuf| {
        let is_test = file.file_name() == Some("testing.rs") || file.as_str().contains("/tests/");
        CODE.iter().any(|folder| file.as_str().starts_with(folder))
            && file.extension() == Some("rs")
            && !is_test
    };
    Ok(files(root)?.into_iter().filter(ours).collect())
}

fn names(text: &str) -> Vec<String> {
    let calls = text.split("point(\"").skip(1);
    calls.filter_map(|rest| rest.split_once('"').map(|(name, _)| name.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root() -> &'static Utf8Path {
        Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
    }

    #[test]
    fn every_point_says_who_comes_by_and_what_has_become() {
        let points = listed(root()).unwrap();
        assert!(points.len() > 20, "{points:?}");
        for point in points {
            let words: Vec<&str> = point.split('.').collect();
            assert_eq!(words.len(), 3, "{point}");
            assert!(["service", "runner"].contains(&words[0]), "{point}");
        }
    }

    #[test]
    fn nothing_is_committed_but_where_the_commit_has_its_points() {
        let commits = sources(root()).unwrap().into_iter().filter(|file| {
            let text = read(&root().join(file)).unwrap();
            text.contains(".commit()") || text.contains("COMMIT")
        });
        assert_eq!(commits.collect::<Vec<_>>(), ["crates/store/src/write.rs"]);
        let text = read(&root().join("crates/store/src/write.rs")).unwrap();
        let (before, _) = text.split_once("transaction.commit()").unwrap();
        assert!(before.trim_end().ends_with(".{written}.uncommitted\", self.role.label()));"));
        assert!(text.contains("self.commit(written, body)?;\n        point(format_args!("));
    }
}
