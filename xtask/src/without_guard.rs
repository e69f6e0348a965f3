//! A campaign run by a copy of the code from which a guard was taken: it must find that.

use crate::command::{FOUND, Failure, program, run, shown};
use crate::crash::sabotage::{Change, copy};
use crate::workspace::Workspace;

/// Builds the copy with these changes, runs a campaign with it, and fails unless that ends with a
/// broken rule.
pub(crate) fn must_find(
    workspace: &Workspace,
    guard: &str,
    changes: &[Change],
    campaign: &[&str],
) -> Result<(), Failure> {
    let tree = copy(workspace, changes)?;
    // Cargo takes two trees in one target directory for one.
    let target = workspace.target_directory.join("crash-sabotaged");
    let mut cargo = program("cargo");
    cargo.current_dir(&tree).args(["build", "--quiet", "-p", "xtask"]);
    run(cargo.args(["--target-dir", target.as_str()]))?;
    let mut sabotaged = program(target.join("debug/xtask"));
    sabotaged.current_dir(&tree).args(campaign);
    let status = sabotaged.status();
    let status =
        status.map_err(|error| Failure::new(format!("run {}: {error}", shown(&sabotaged))))?;
    if status.code() == Some(i32::from(FOUND)) {
        println!("{}: without the guard {guard} a rule is found broken", campaign[0]);
        return Ok(());
    }
    Err(Failure::new(format!(
        "{}: without the guard {guard} nothing is found ({status})",
        campaign[0]
    )))
}
