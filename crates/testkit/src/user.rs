//! Programs run as an ordinary user.

use std::ffi::OsStr;
use std::process::{Command, Stdio};

/// The user and group id that [`demoted`] programs get; needs no entry in the user database.
pub const ORDINARY_ID: u32 = 1001;

/// Says whether the test runs with the effective user id 0.
///
/// # Panics
///
/// When `/proc/self/status` cannot be read or has no such line.
pub fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc is mounted");
    effective_id(&status).expect("the status has user ids") == 0
}

/// Makes a command that runs a program as user [`ORDINARY_ID`], without groups or privileges.
///
/// # Errors
///
/// Says why that is not possible here: the test itself is not root, or util-linux's `setpriv`
/// is missing. A test then proves the other path, or prints the reason and ends.
pub fn demoted(program: impl AsRef<OsStr>) -> Result<Command, &'static str> {
    if !is_root() {
        return Err("only root can run a program as another user");
    }
    if !setpriv().arg("--version").stdout(Stdio::null()).status().is_ok_and(|s| s.success()) {
        return Err("setpriv (util-linux) is not installed");
    }
    let id = ORDINARY_ID;
    let mut command = setpriv();
    command
        .arg(format!("--reuid={id}"))
        .arg(format!("--regid={id}"))
        .args(["--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs", "--"])
        .arg(program);
    Ok(command)
}

/// Runs one test of the calling test program as user [`ORDINARY_ID`].
///
/// # Errors
///
/// Says why that is not possible here; the test then prints the reason.
///
/// # Panics
///
/// The test fails there.
#[track_caller]
pub fn run_as_ordinary_user(test: &str) -> Result<(), &'static str> {
    run_as_ordinary_user_with(test, &[])
}

/// Runs one test as [`run_as_ordinary_user`] does, with variables in its environment.
///
/// # Errors
///
/// As there.
///
/// # Panics
///
/// As there.
#[track_caller]
pub fn run_as_ordinary_user_with(
    test: &str,
    variables: &[(&str, String)],
) -> Result<(), &'static str> {
    let own = std::env::current_exe().expect("a test knows its own path");
    let reached = demoted("test")?.arg("-x").arg(&own).status().is_ok_and(|seen| seen.success());
    if !reached {
        return Err("an ordinary user cannot reach this test program");
    }
    let mut again = demoted(&own)?;
    again.args(["--exact", test, "--nocapture"]);
    let ran = again.envs(variables.iter().map(|(name, value)| (name, value))).output();
    let ran = ran.expect("the same program starts again");
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}\n{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("1 passed"), "{said}");
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "testkit imports nothing of ours")]
fn setpriv() -> Command {
    Command::new("setpriv")
}

fn effective_id(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_effective_id_is_the_second() {
        assert_eq!(effective_id("Name:\tx\nUid:\t7\t8\t9\t10\n"), Some(8));
        assert_eq!(effective_id("Name:\tx\n"), None);
    }

    #[test]
    fn a_demoted_program_is_an_ordinary_user() {
        let mut command = match demoted("id") {
            Ok(command) => command,
            Err(reason) if is_root() => panic!("root cannot demote: {reason}"),
            Err(reason) => {
                println!("refused as it should be: {reason}");
                return;
            }
        };
        let output = command.arg("-u").output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), ORDINARY_ID.to_string());
    }
}
