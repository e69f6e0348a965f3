//! One life: steps in the order that its seed gives, and what came of it.

use super::bed::Bed;
use super::{judge, steps};
use std::fmt;
use std::rc::Rc;

/// Steps of a life.
const STEPS: usize = 70;
/// Steps before the machine is started again, in the lives in which it is.
const BEFORE_THE_BOOT: usize = 14;

/// What of the truth is told otherwise, so that a rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    None,
    /// A second runner claims an attempt that has one.
    SecondClaim,
    /// A runner calls a tree gone that lives.
    TreeGone,
    /// An acknowledgment that was told never reaches the log.
    DeliveredAgain,
    /// Somebody ends a process that belongs to no attempt.
    StrangerEnded,
}

/// What came of a life.
pub(super) struct Life {
    pub(super) seed: u64,
    pub(super) trace: Vec<String>,
    /// The rule that was broken, and by what.
    pub(super) broken: Option<String>,
}

/// Lives through a seed.
pub(super) fn live(seed: u64, lie: Lie) -> Life {
    let bed = Rc::new(Bed::new(seed, lie));
    let before = if bed.chance(3) { BEFORE_THE_BOOT } else { 0 };
    let mut broken = None;
    for step in 0..STEPS {
        if step < before {
            bed.earlier_boot.set(true);
            steps::take_before_the_boot(&bed);
        } else {
            if bed.earlier_boot.take() {
                steps::start_the_machine_again(&bed);
            }
            steps::take(&bed);
        }
        broken = judge::look(&bed);
        if broken.is_some() {
            break;
        }
    }
    if broken.is_none() {
        steps::settle(&bed);
        broken = judge::look(&bed).or_else(|| judge::look_at_the_end(&bed));
    }
    let trace = bed.trace.take();
    Life { seed, trace, broken }
}

impl fmt::Display for Life {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.trace {
            writeln!(formatter, "  {line}")?;
        }
        match &self.broken {
            Some(rule) => write!(
                formatter,
                "seed {}: {rule}\n(cargo xtask simulate --seed {} repeats it)",
                self.seed, self.seed
            ),
            None => write!(formatter, "seed {}: no rule broken", self.seed),
        }
    }
}
