//! One guard out of a copy of the code: what a campaign must find.
//!
//! The product has no switch for its guards, so nothing can be left off by mistake. Here stands how
//! each is taken out; a text that is not found exactly once fails, so none of it grows stale.

use crate::command::Failure;
use crate::workspace::{Workspace, files};
use camino::{Utf8Path, Utf8PathBuf};
use clap::ValueEnum;
use std::fs;

/// A guard that can be taken out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Guard {
    /// Of two runners one gets the claim
    Claim,
    /// A home is removed with a proof only
    Proof,
    /// Evidence and state are one transaction
    Order,
    /// A process is compared with its identity before it is signalled
    Signal,
    /// A program waits until it is recorded
    Gate,
}

/// One change of one file: a text that stands there once, and what takes its place.
#[derive(Debug)]
pub(crate) struct Change {
    pub(crate) file: &'static str,
    pub(crate) from: &'static str,
    pub(crate) to: &'static str,
}

impl Guard {
    pub(crate) const fn changes(self) -> &'static [Change] {
        match self {
            Self::Claim => &[
                Change {
                    file: "crates/store/src/record.rs",
                    from: "            check_expected(&row, change)?;\n            check_fields(&row, change.fields)?;\n",
                    to: "",
                },
                Change {
                    file: "crates/transitions/src/execution.rs",
                    from: "moves(&[Intended], Starting)",
                    to: "moves(&[Intended, Starting], Starting)",
                },
            ],
            Self::Proof => &[Change {
                file: "crates/transitions/src/scope.rs",
                from: "None => Err(Unproven { reason: missing(required, facts) }),",
                to: "None => Ok(ScopeGone { scope: required, because: missing(required, facts) }),",
            }],
            Self::Order => &[Change {
                file: "crates/store/src/record.rs",
                from: "            for draft in change.rows {\n                tail.add(transaction, draft.kind, &draft.detail, &now)?.map_err(refused)?;\n            }\n            save(transaction, &tail, change.attempt_id, change.fields, &now)?;\n",
                to: "            let sql = |sql| transaction.execute_batch(sql).expect(\"sabotage\");
            sql(\"SAVEPOINT evidence\");
            for draft in change.rows {
                tail.add(transaction, draft.kind, &draft.detail, &now)?.map_err(refused)?;
            }
            sql(\"ROLLBACK TO evidence\");
            save(transaction, &tail, change.attempt_id, change.fields, &now)?;
            sql(\"COMMIT; BEGIN IMMEDIATE\");
            let mut tail = Tail::of(&row);
            for draft in change.rows {
                tail.add(transaction, draft.kind, &draft.detail, &now)?.map_err(refused)?;
            }
",
            }],
            Self::Signal => &[Change {
                file: "crates/identity/src/process.rs",
                from: "        let same = self.compare(inode, read_stat(self.pid));\n",
                to: "        let same = self.compare(inode, read_stat(self.pid)).map(|_| true);\n",
            }],
            Self::Gate => &[Change {
                file: "crates/process/src/child.rs",
                from: "    if !released(plan.gate) {",
                to: "    if false && !released(plan.gate) {",
            }],
        }
    }

    /// Makes a copy of the tree without this guard and returns where it lies.
    pub(crate) fn copy(self, workspace: &Workspace) -> Result<Utf8PathBuf, Failure> {
        copy(workspace, self.changes())
    }
}

/// Makes a copy of the tree with these changes and returns where it lies.
pub(crate) fn copy(workspace: &Workspace, changes: &[Change]) -> Result<Utf8PathBuf, Failure> {
    let to = workspace.target_directory.join("crash-sabotaged/tree");
    for file in files(&workspace.root)? {
        let source = workspace.root.join(&file);
        if source.is_symlink() {
            link(&source, &to.join(&file))?;
            continue;
        }
        let bytes = fs::read(&source).map_err(|error| Failure::io("read", &source, &error))?;
        let mut changes = changes.iter().filter(|change| change.file == file.as_str());
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => changes.try_fold(text, |text, change| change.apply(&text))?.into_bytes(),
            Err(other) => other.into_bytes(),
        };
        put(&to.join(&file), &bytes)?;
    }
    Ok(to)
}

impl Change {
    pub(crate) fn apply(&self, text: &str) -> Result<String, Failure> {
        match text.matches(self.from).count() {
            1 => Ok(text.replace(self.from, self.to)),
            count => {
                let Self { file, from, .. } = self;
                Err(Failure::new(format!(
                    "{file} has {count} times what is to be sabotaged: {from}"
                )))
            }
        }
    }
}

/// Writes a file where it differs, so that what is unchanged is not compiled again.
fn put(path: &Utf8Path, bytes: &[u8]) -> Result<(), Failure> {
    if fs::read(path).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    let parent = path.parent().expect("a file lies in a folder");
    fs::create_dir_all(parent)
        .and_then(|()| fs::write(path, bytes))
        .map_err(|error| Failure::io("write", path, &error))
}

fn link(source: &Utf8Path, to: &Utf8Path) -> Result<(), Failure> {
    if to.is_symlink() {
        return Ok(());
    }
    let parent = to.parent().expect("a link lies in a folder");
    let target = source.read_link_utf8().map_err(|e| Failure::io("read link", source, &e))?;
    fs::create_dir_all(parent)
        .and_then(|()| std::os::unix::fs::symlink(target, to))
        .map_err(|error| Failure::io("link", to, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::read;

    #[test]
    fn everything_that_is_taken_out_stands_in_the_code_once() {
        let root = Utf8Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        for guard in Guard::value_variants() {
            for change in guard.changes() {
                let text = read(&root.join(change.file)).unwrap();
                assert_ne!(change.apply(&text).unwrap(), text, "{guard:?}");
            }
        }
    }
}
