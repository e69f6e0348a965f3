//! A turn that is had in the order of asking.

use crate::patience::Patience;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

/// Lets one thread of this process after the other have something.
///
/// A mutex of the standard library gives it to whoever comes at the right moment, and knows no
/// deadline: of 64 threads that try again and again, one may try for seconds.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    taken: bool,
    /// Those who wait, the first to come first.
    waiting: VecDeque<(u64, Thread)>,
    last: u64,
}

/// Holds the turn; the next one has it when this is dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Turn<'a>(&'a Queue);

impl Queue {
    /// Waits for the turn; nothing when the patience is over.
    pub(crate) fn take(&self, patience: &mut Patience<'_>) -> Option<Turn<'_>> {
        let mut state = self.state();
        if !state.taken && state.waiting.is_empty() {
            state.taken = true;
            return Some(Turn(self));
        }
        state.last += 1;
        let ticket = state.last;
        state.waiting.push_back((ticket, std::thread::current()));
        loop {
            if !state.taken && state.waiting.front().is_some_and(|(first, _)| *first == ticket) {
                state.waiting.pop_front();
                state.taken = true;
                return Some(Turn(self));
            }
            if patience.is_over() {
                state.waiting.retain(|(other, _)| *other != ticket);
                // The turn may have come to this thread just now.
                state.wake_first();
                return None;
            }
            drop(state);
            std::thread::park_timeout(patience.left());
            state = self.state();
        }
    }

    /// Says whether anybody waits.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.state().waiting.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn wake_first(&self) {
        if !self.taken
            && let Some((_, first)) = self.waiting.front()
        {
            first.unpark();
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.taken = false;
        state.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    fn take(queue: &Queue) -> Option<Turn<'_>> {
        queue.take(&mut Patience::fixed(Duration::from_mins(1)))
    }

    fn take_now(queue: &Queue) -> Option<Turn<'_>> {
        queue.take(&mut Patience::fixed(Duration::ZERO))
    }

    #[test]
    fn turns_are_had_in_the_order_of_asking() {
        let queue = Queue::default();
        let first = take(&queue).unwrap();
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            for number in 0..8 {
                let (queue, told) = (&queue, told.clone());
                scope.spawn(move || {
                    let _turn = take(queue).unwrap();
                    told.send(number).unwrap();
                });
                placement_testkit::wait_until(Duration::from_mins(1), "the one who waits", || {
                    queue.state().waiting.len() == number + 1
                });
            }
            drop(first);
        });
        assert_eq!(heard.try_iter().collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
        assert!(take_now(&queue).is_some(), "it is free again");
    }

    #[test]
    fn whoever_gives_up_holds_nobody_up() {
        let queue = Queue::default();
        let first = take(&queue).unwrap();
        assert!(take_now(&queue).is_none());
        assert!(!queue.is_wanted());
        drop(first);
        assert!(take_now(&queue).is_some());
    }
}
