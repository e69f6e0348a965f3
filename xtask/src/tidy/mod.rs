//! `tidy`: cheap truths that no compiler checks, one file each.

mod code_map;
mod features;
mod generated;
mod inheritance;
mod migrations;
mod published;
mod shown;
mod unsafety;
mod words;

use crate::command::{Failure, conclude};
use crate::workspace::{Workspace, files, read};

/// Checks them all and shows everything that was found.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let root = &workspace.root;
    let files = files(root)?;
    let readme = root.join("README.md");
    let readme = if readme.exists() { Some(read(&readme)?) } else { None };

    let mut findings = Vec::new();
    for package in &workspace.packages {
        findings.extend(inheritance::check(&package.name, &read(&package.manifest_path)?));
        findings.extend(published::check(package)?);
    }
    findings.extend(code_map::check(readme.as_deref(), &code_map::members(workspace)));
    findings.extend(code_map::check_test_command(readme.as_deref()));
    findings.extend(migrations::check(&files));
    findings.extend(features::check(root)?);
    findings.extend(generated::check(root)?);
    findings.extend(shown::check(root, &files)?);
    findings.extend(unsafety::check(root, &files)?);
    findings.extend(words::check(root, &files)?);
    conclude("tidy", &findings)
}
