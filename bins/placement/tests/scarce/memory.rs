//! Too little memory: who dies of it is settled by who comes after.

use crate::bed::{Bed, Death, ulimit};
use placement_world::Program;

const PROGRAM: &str = env!("CARGO_BIN_EXE_placement");
/// Address space in KiB, from what loads no program to what is enough for all.
const LEAST_KIB: u32 = 2 * 1024;
const MOST_KIB: u32 = 400 * 1024;

#[test]
fn a_launch_without_memory_leaves_nothing_and_its_key_works_later() {
    let program = Program::new(PROGRAM);
    let mut bed = Bed::of(&program, Death::OutOfMemory);
    let mut kib = LEAST_KIB;
    while kib < MOST_KIB {
        let limit = ulimit(&format!("-v {kib}"));
        bed.launch_under(&limit.each_ref().map(String::as_str));
        kib += kib / 6;
    }
    println!("{:?}", bed.outcomes);
    let failed = bed.outcomes.died + bed.outcomes.refused + bed.outcomes.not_begun;
    assert!(failed >= 5, "it was to be short of it: {:?}", bed.outcomes);
    assert!(bed.outcomes.ran >= 3, "so much is enough: {:?}", bed.outcomes);
    program.assert_nothing_is_left();
}
