//! Row `input`: what it costs to know a write that was written before.

use super::row::{Line, Row, Unit};
use super::samples::{Contender, Series, alternate, figure};
use super::setting::Setting;
use crate::command::Failure;
use placement_contract::limits::REMEMBERED_WRITES_MAX;
use placement_protocol::writes::{WriteVerdict, Writes};
use std::collections::HashSet;
use std::hint::black_box;
use std::time::Instant;

const PER_ID_MAX_NS: f64 = 10_000.0;

/// Judges new and repeated ids against a full memory.
pub(super) fn measure(setting: &Setting) -> Result<Row, Failure> {
    let ids: u64 = setting.pick(1_000_000, 200_000);
    let contenders = vec![
        Contender::new("a hash set without a bound", || Ok(floor(ids))),
        Contender::new("ours", || ours(ids)),
    ];
    let all = alternate(setting.rounds(), contenders)?;
    let [floor, ours] = <[Series; 2]>::try_from(all).expect("two were measured");
    let line = Line::new("one write id, new and repeated", Unit::Nanoseconds, ours).beside(floor);
    let met = line.ours.median() <= PER_ID_MAX_NS;
    Ok(Row { lines: vec![line.must("≤ 10 µs", met)], skipped: Vec::new() })
}

fn ours(ids: u64) -> Result<f64, Failure> {
    let mut writes = Writes::new();
    let remembered = u64::try_from(REMEMBERED_WRITES_MAX).unwrap_or(u64::MAX);
    (1..=remembered).for_each(|id| writes.remember(id));
    let started = Instant::now();
    for id in remembered + 1..=remembered + ids {
        let fresh = writes.judge(black_box(id));
        writes.remember(id);
        let again = writes.judge(black_box(id - remembered / 2));
        if (fresh, again) != (WriteVerdict::New, WriteVerdict::Again) {
            return Err(Failure::new("a write id was judged wrongly"));
        }
    }
    Ok(started.elapsed().as_secs_f64() * 1e9 / figure(2 * ids))
}

fn floor(ids: u64) -> f64 {
    let mut known = HashSet::new();
    let started = Instant::now();
    for id in 1..=ids {
        black_box(known.insert(black_box(id)));
        black_box(known.contains(&black_box(id / 2)));
    }
    started.elapsed().as_secs_f64() * 1e9 / figure(2 * ids)
}
