//! How much output may be under way, and what an acknowledgment is worth.

use placement_contract::Generation;
use placement_contract::limits::OUTSTANDING_CHUNKS_MAX;

/// The sender's view of one attempt's output.
///
/// Chunks and ends of streams are numbered together from 1. What lies between
/// `consumed_through` and `sent_through` is outstanding, at most [`OUTSTANDING_CHUNKS_MAX`].
/// Invariant: `consumed_through <= sent_through <= consumed_through + OUTSTANDING_CHUNKS_MAX`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    generation: Generation,
    sent_through: u64,
    consumed_through: u64,
}

/// Why an acknowledgment has no effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AcknowledgeError {
    /// It is from another attachment.
    #[error("acknowledgment from another attachment")]
    OtherGeneration,
    /// It is not above what was acknowledged and within what was sent.
    #[error("acknowledgment outside what was sent")]
    Outside,
}

/// An attachment is not newer than the current one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("attachment that is not newer")]
pub struct NotNewer;

impl Window {
    /// Starts a window behind what was acknowledged before, 0 for nothing.
    pub const fn new(generation: Generation, consumed_through: u64) -> Self {
        Self { generation, sent_through: consumed_through, consumed_through }
    }

    /// Returns the current attachment.
    pub const fn generation(&self) -> Generation {
        self.generation
    }

    /// Returns the last sequence that was sent to the current recipient.
    pub const fn sent_through(&self) -> u64 {
        self.sent_through
    }

    /// Returns the last sequence that was acknowledged.
    pub const fn consumed_through(&self) -> u64 {
        self.consumed_through
    }

    /// Returns how many are sent and not acknowledged.
    pub const fn outstanding(&self) -> u64 {
        self.sent_through - self.consumed_through
    }

    /// Returns the next sequence to send, or nothing while the window is full.
    pub const fn next_to_send(&self) -> Option<u64> {
        if self.outstanding() < OUTSTANDING_CHUNKS_MAX as u64 {
            self.sent_through.checked_add(1)
        } else {
            None
        }
    }

    /// Says whether another one may be sent.
    pub const fn may_send(&self) -> bool {
        self.next_to_send().is_some()
    }

    /// Notes that the next sequence was sent.
    ///
    /// # Panics
    /// If it is not [`Window::next_to_send`]: the caller lost count.
    pub fn record_sent(&mut self, sequence: u64) {
        assert_eq!(self.next_to_send(), Some(sequence), "sent out of order or beyond the window");
        self.sent_through = sequence;
    }

    /// Takes an acknowledgment of everything up to a sequence and returns how many it frees.
    ///
    /// # Errors
    /// [`AcknowledgeError`] if it has no effect; the window is then unchanged.
    pub fn acknowledge(
        &mut self,
        generation: Generation,
        through: u64,
    ) -> Result<u64, AcknowledgeError> {
        if generation != self.generation {
            return Err(AcknowledgeError::OtherGeneration);
        }
        if through <= self.consumed_through || through > self.sent_through {
            return Err(AcknowledgeError::Outside);
        }
        let freed = through - self.consumed_through;
        self.consumed_through = through;
        Ok(freed)
    }

    /// Binds a newer attachment: everything that was not acknowledged is to be sent again.
    ///
    /// # Errors
    /// [`NotNewer`] if it is not; the window is then unchanged.
    pub fn reattach(&mut self, generation: Generation) -> Result<(), NotNewer> {
        if generation <= self.generation {
            return Err(NotNewer);
        }
        self.generation = generation;
        self.sent_through = self.consumed_through;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Generation = Generation::FIRST;
    const TWO: Generation = Generation::new(2);
    const MAX: u64 = OUTSTANDING_CHUNKS_MAX as u64;

    fn at(sent_through: u64, consumed_through: u64) -> Window {
        Window { generation: ONE, sent_through, consumed_through }
    }

    /// Every window that can exist near its start.
    fn all() -> impl Iterator<Item = Window> {
        (0..12).flat_map(|consumed| (0..=MAX).map(move |open| at(consumed + open, consumed)))
    }

    #[test]
    fn the_first_sequence_is_one() {
        assert_eq!(Window::new(ONE, 0).next_to_send(), Some(1));
    }

    #[test]
    fn a_window_goes_on_behind_what_was_acknowledged() {
        assert_eq!(Window::new(ONE, 41).next_to_send(), Some(42));
    }

    #[test]
    fn a_full_window_stops_and_an_acknowledgment_reopens_it() {
        for window in all() {
            assert_eq!(window.may_send(), window.outstanding() < MAX, "{window:?}");
        }
        let mut window = at(MAX, 0);
        assert_eq!(window.next_to_send(), None);
        assert_eq!(window.acknowledge(ONE, 1), Ok(1));
        assert_eq!(window.next_to_send(), Some(MAX + 1));
    }

    #[test]
    fn an_acknowledgment_counts_only_between_consumed_and_sent() {
        for before in all() {
            for through in 0..20 {
                let mut window = before;
                let outcome = window.acknowledge(ONE, through);
                if through > before.consumed_through && through <= before.sent_through {
                    assert_eq!(outcome, Ok(through - before.consumed_through));
                    assert_eq!(window, Window { consumed_through: through, ..before });
                } else {
                    assert_eq!(outcome, Err(AcknowledgeError::Outside));
                    assert_eq!(window, before);
                }
            }
        }
    }

    #[test]
    fn an_acknowledgment_of_another_attachment_has_no_effect() {
        for before in all() {
            for through in 0..20 {
                for generation in [Generation::NONE, TWO] {
                    let mut window = before;
                    let outcome = window.acknowledge(generation, through);
                    assert_eq!(outcome, Err(AcknowledgeError::OtherGeneration));
                    assert_eq!(window, before);
                }
            }
        }
    }

    #[test]
    fn a_newer_attachment_gets_everything_again_that_was_not_acknowledged() {
        for before in all() {
            let mut window = before;
            assert_eq!(window.reattach(TWO), Ok(()));
            assert_eq!(window.generation(), TWO);
            assert_eq!(window.next_to_send(), Some(before.consumed_through + 1));
            assert_eq!(window.outstanding(), 0);
        }
    }

    #[test]
    fn the_former_recipient_cannot_acknowledge_after_a_newer_attachment() {
        let mut window = at(3, 1);
        window.reattach(TWO).unwrap();
        window.record_sent(2);
        assert_eq!(window.acknowledge(ONE, 2), Err(AcknowledgeError::OtherGeneration));
        assert_eq!(window.acknowledge(TWO, 3), Err(AcknowledgeError::Outside));
        assert_eq!(window.acknowledge(TWO, 2), Ok(1));
    }

    #[test]
    fn an_attachment_that_is_not_newer_is_refused() {
        for generation in [Generation::NONE, ONE] {
            let mut window = at(3, 1);
            assert_eq!(window.reattach(generation), Err(NotNewer));
            assert_eq!(window, at(3, 1));
        }
    }

    #[test]
    #[should_panic(expected = "sent out of order")]
    fn sending_out_of_order_is_a_mistake_of_the_caller() {
        at(3, 1).record_sent(5);
    }

    #[test]
    fn the_end_of_the_numbers_stops_the_window() {
        assert_eq!(Window::new(ONE, u64::MAX).next_to_send(), None);
    }
}
