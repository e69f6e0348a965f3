//! The files of a control group.

use placement_process::{LeafError, Population, kills_in};

pub(crate) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    match Population::parse(text) {
        Ok(Population::Empty) => assert!(text.contains("populated 0"), "nothing says so"),
        Ok(Population::Populated) => assert!(text.contains("populated 1"), "nothing says so"),
        Err(error) => assert_eq!(error, LeafError::Malformed),
    }
    match kills_in(text) {
        Ok(count) => assert!(text.contains("oom_kill "), "nothing says {count}"),
        Err(error) => assert_eq!(error, LeafError::Malformed),
    }
}

pub(crate) fn seeds() -> Vec<Vec<u8>> {
    vec![
        b"populated 1\nfrozen 0\n".to_vec(),
        b"populated 0\nfrozen 0\n".to_vec(),
        b"low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\noom_group_kill 0\n".to_vec(),
    ]
}
