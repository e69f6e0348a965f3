//! Root is refused little: run by root, these tests run a second time as an ordinary user.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use placement_testkit::{demoted, is_root};

#[test]
fn the_same_facts_hold_for_an_ordinary_user() {
    // The program is copied to where an ordinary user can reach it.
    let scratch = placement_testkit::TempRoot::new();
    fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = scratch.join("homes");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = match demoted(&program) {
        Ok(command) => command,
        Err(reason) => {
            assert!(!is_root() || reason.contains("setpriv"), "{reason}");
            println!("not run a second time: {reason}");
            return;
        }
    };
    let output = command.args(["--skip", "ordinary_user"]).current_dir("/").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}
