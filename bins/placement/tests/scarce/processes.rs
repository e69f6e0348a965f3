//! Too few processes: a fork or a thread that the kernel refuses (EAGAIN).

use crate::bed::{Bed, Death};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::{demoted, is_root};
use placement_world::Program;
use std::os::unix::fs::chown;

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// Processes and threads of one user with which a launch works.
const ENOUGH: u32 = 14;

/// A user who has no process: the limit counts all that one has.
fn nobody() -> u32 {
    40_000 + std::process::id() % 20_000
}

/// Makes a wrapper that becomes that user.
fn wrapper() -> Result<Vec<String>, &'static str> {
    let command = demoted("x")?;
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let mut words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    words.pop();
    for word in &mut words {
        for option in ["--reuid=", "--regid="] {
            if word.starts_with(option) {
                *word = format!("{option}{}", nobody());
            }
        }
    }
    Ok(words)
}

fn hand_over(path: &Utf8Path) {
    chown(path, Some(nobody()), Some(nobody())).expect("root hands over");
    let entries: Vec<Utf8PathBuf> = path
        .read_dir_utf8()
        .map(|entries| entries.flatten().map(camino::Utf8DirEntry::into_path).collect())
        .unwrap_or_default();
    for entry in entries {
        hand_over(&entry);
    }
}

#[test]
fn a_launch_that_gets_no_process_is_refused_and_its_key_works_later() {
    let wrapper = match wrapper() {
        Ok(wrapper) => wrapper,
        Err(reason) if is_root() => panic!("root cannot demote: {reason}"),
        Err(reason) => {
            println!("no process is refused here: {reason}, and a user has others than these");
            return;
        }
    };
    let program = Program::new(PROGRAM);
    let above = program.work().parent().expect("it lies in a directory").to_owned();
    hand_over(&above);
    let mut bed = Bed { wrapper, ..Bed::of(&program, Death::None) };
    let reached = bed.say(&[], &["--version"]);
    if reached.code != 0 {
        println!("no process is refused here: another user cannot run the program: {reached:?}");
        return;
    }
    for processes in 1..ENOUGH {
        let limit = format!("--nproc={processes}");
        bed.launch_under(&["prlimit", &limit, "--"]);
    }
    // Who looks next is root again.
    let root = program.root();
    for path in [&root, &above] {
        chown(path, Some(0), Some(0)).expect("root takes back");
    }
    println!("{:?}", bed.outcomes);
    assert!(bed.outcomes.refused >= 3, "it was to be short of them: {:?}", bed.outcomes);
    assert!(bed.outcomes.ran >= 3, "so many are enough: {:?}", bed.outcomes);
    assert_eq!(bed.outcomes.uncertain, 0, "{:?}", bed.outcomes);
    program.assert_nothing_is_left();
}
