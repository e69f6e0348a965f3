//! Which input was accepted already, so that nothing is written twice.

use placement_contract::limits::REMEMBERED_WRITES_MAX;
use std::collections::VecDeque;

/// The ids of the writes that were accepted, the latest [`REMEMBERED_WRITES_MAX`] of them.
///
/// Ids of accepted writes only grow. A refused id is not remembered, so the same write may be
/// accepted later, as long as none after it was.
#[derive(Debug, Clone, Default)]
pub struct Writes {
    /// In ascending order.
    accepted: VecDeque<u64>,
    /// The largest accepted id that is no longer remembered, 0 for none.
    forgotten_through: u64,
}

/// What to do with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteVerdict {
    /// It is new: write it, then remember it.
    New,
    /// It was accepted before: acknowledge it again and write nothing.
    Again,
    /// It is older than the memory and may have been accepted: refuse it.
    Forgotten,
    /// It was never accepted and a later one was: refuse it, since input keeps its order.
    OutOfOrder,
}

impl Writes {
    /// Starts without any write.
    pub const fn new() -> Self {
        Self { accepted: VecDeque::new(), forgotten_through: 0 }
    }

    /// Returns the largest accepted id, 0 for none.
    pub fn last(&self) -> u64 {
        self.accepted.back().copied().unwrap_or(0)
    }

    /// Returns how many ids are remembered.
    pub fn remembered(&self) -> usize {
        self.accepted.len()
    }

    /// Says what to do with a write; changes nothing.
    pub fn judge(&self, write_id: u64) -> WriteVerdict {
        if write_id > self.last() {
            WriteVerdict::New
        } else if self.accepted.binary_search(&write_id).is_ok() {
            WriteVerdict::Again
        } else if write_id <= self.forgotten_through {
            WriteVerdict::Forgotten
        } else {
            WriteVerdict::OutOfOrder
        }
    }

    /// Remembers a write that was written whole, and forgets the oldest one beyond the bound.
    ///
    /// # Panics
    /// If it was not [`WriteVerdict::New`]: the caller wrote what it must not.
    pub fn remember(&mut self, write_id: u64) {
        assert!(write_id > self.last(), "only a new write may have been written");
        self.accepted.push_back(write_id);
        if self.accepted.len() > REMEMBERED_WRITES_MAX
            && let Some(oldest) = self.accepted.pop_front()
        {
            self.forgotten_through = oldest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(ids: impl IntoIterator<Item = u64>) -> Writes {
        let mut writes = Writes::new();
        ids.into_iter().for_each(|id| writes.remember(id));
        writes
    }

    #[test]
    fn a_known_write_is_acknowledged_again() {
        let writes = after([1, 2, 9]);
        for id in [1, 2, 9] {
            assert_eq!(writes.judge(id), WriteVerdict::Again);
        }
    }

    #[test]
    fn a_larger_id_is_new() {
        assert_eq!(Writes::new().judge(1), WriteVerdict::New);
        assert_eq!(after([1, 2, 9]).judge(10), WriteVerdict::New);
        assert_eq!(after([1, 2, 9]).judge(u64::MAX), WriteVerdict::New);
    }

    #[test]
    fn a_write_that_was_overtaken_is_refused() {
        let writes = after([1, 2, 9]);
        for id in 3..9 {
            assert_eq!(writes.judge(id), WriteVerdict::OutOfOrder);
        }
    }

    #[test]
    fn a_refused_write_is_not_remembered() {
        let writes = after([1]);
        assert_eq!(writes.judge(5), WriteVerdict::New);
        assert_eq!(writes.judge(5), WriteVerdict::New);
        assert_eq!(writes.judge(4), WriteVerdict::New);
    }

    #[test]
    fn exactly_the_latest_writes_are_remembered() {
        let bound = u64::try_from(REMEMBERED_WRITES_MAX).unwrap();
        for extra in 0..=bound + 1 {
            let writes = after(1..=bound + extra);
            assert_eq!(writes.remembered(), REMEMBERED_WRITES_MAX);
            for id in 1..=bound + extra {
                let expected =
                    if id <= extra { WriteVerdict::Forgotten } else { WriteVerdict::Again };
                assert_eq!(writes.judge(id), expected, "{id} of {}", bound + extra);
            }
        }
    }

    #[test]
    fn a_gap_below_the_memory_counts_as_forgotten() {
        let bound = u64::try_from(REMEMBERED_WRITES_MAX).unwrap();
        let writes = after((1..=bound + 2).map(|n| n * 2));
        assert_eq!(writes.judge(3), WriteVerdict::Forgotten);
        assert_eq!(writes.judge(5), WriteVerdict::OutOfOrder);
        assert_eq!(writes.judge(6), WriteVerdict::Again);
    }

    #[test]
    #[should_panic(expected = "only a new write")]
    fn remembering_a_known_write_is_a_mistake_of_the_caller() {
        after([4, 4]);
    }
}
