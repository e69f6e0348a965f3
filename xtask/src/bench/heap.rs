//! Row `heap`: starting from a host with a large heap.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, timed};
use super::setting::{Setting, finish, launch};
use crate::command::Failure;
use crate::proving_ground::ProvingGround;
use placement::Launch;

const BYTES: usize = 1024 * 1024 * 1024;
/// How far apart two medians of the same thing may lie by noise alone.
const NOISE: f64 = 1.25;

/// Measures the same launches with a small and with a touched heap of 1 GiB.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ground = setting.ground()?;
    let small = both(setting, &ground)?;
    let heap = vec![1_u8; BYTES];
    let large = both(setting, &ground)?;
    drop(std::hint::black_box(heap));
    let [small_raw, small_ours] = small;
    let [large_raw, large_ours] = large;
    let met = large_ours.median() <= small_ours.median() * NOISE;
    let lines = vec![
        Line::new("a launch, small heap", Unit::Milliseconds, small_ours).beside(small_raw),
        Line::new("a launch, 1 GiB heap", Unit::Milliseconds, large_ours)
            .beside(large_raw)
            .must("as with a small heap", met),
    ];
    Ok(Row { lines, skipped: vec!["a fork with its heap is not made here".to_owned()] })
}

fn both(setting: &Setting, ground: &ProvingGround) -> Result<[Series; 2], Failure> {
    let contenders = vec![
        Contender::new("posix_spawn", super::launch::raw),
        Contender::new("ours", || timed(|| finish(launch(ground, Launch::program("/bin/true"))?))),
    ];
    let all = alternate(setting.rounds(), contenders)?;
    Ok(<[Series; 2]>::try_from(all).expect("two were measured"))
}
