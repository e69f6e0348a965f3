//! How often a launch waits for the disk: the intent, the claim and the exit.

use placement_testkit::{MARK, TempRoot, example, rounds};
use std::process::Command;

#[test]
fn a_launch_by_a_warm_host_syncs_twice_until_its_program_runs_and_once_at_its_exit() {
    let directory = TempRoot::new();
    let host = example("repeated");
    #[expect(clippy::disallowed_methods, reason = "a test runs the example")]
    let mut command = Command::new(&host);
    command.current_dir(directory.path()).args(["state", MARK, "4"]);
    // The host is a runner of its own.
    command.arg(host).arg("/bin/true");
    let rounds = match rounds(&command) {
        Ok(rounds) => rounds,
        Err(reason) => {
            println!("not counted here: {reason}");
            return;
        }
    };
    let (cold, warm) = rounds.split_first().expect("four launches");
    assert_eq!(warm.len(), 3);
    assert!(cold.syncs > 0, "a count that counts nothing");
    for round in warm {
        assert_eq!((round.syncs_until_program, round.syncs), (2, 3), "{round:?}");
    }
}
