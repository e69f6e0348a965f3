//! The lines of the process table: a process chooses its own name in them.

use placement_identity::Stat;

pub(crate) fn run(bytes: &[u8]) {
    let Some(stat) = Stat::parse(bytes) else { return };
    assert!(stat.pid.get() > 0);
    // The name is the process's own choice and decides nothing.
    let first = bytes.iter().position(|byte| *byte == b'(').expect("a line has a name");
    let last = bytes.iter().rposition(|byte| *byte == b')').expect("a line has a name");
    let renamed = [&bytes[..first], b"(x) S 1 1 (y)", &bytes[last + 1..]].concat();
    assert_eq!(Stat::parse(&renamed), Some(stat), "a name has shifted the fields");
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    let line = "77 (sh) S 41 42 42 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 8812 1 2 3 4";
    let whole =
        format!("{line} 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28");
    vec![line.into(), whole.into(), line.replace("(sh)", "(a) Z (b").into(), b"77 (".to_vec()]
}
