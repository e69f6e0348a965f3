//! SIGINT, SIGTERM and SIGHUP: the first asks for a cooperative stop, the second forces it. Where an
//! attempt's window is shown, SIGWINCH is a new size and SIGHUP the end of the terminal.

use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
use placement::{AttemptId, Code, Placement, Refusal, StopMode};
use std::io::Write as _;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Exit code when a third signal ends the host before there is an attempt: 128 + SIGINT.
const INTERRUPTED: i32 = 130;

/// Takes the signals and turns them into stops of one attempt.
#[derive(Debug, Clone)]
pub(crate) struct Signals {
    target: Arc<Mutex<Target>>,
    terminal: Arc<Mutex<Option<Sender<TerminalEvent>>>>,
}

/// What became of the terminal in which a window is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalEvent {
    /// It may have another size.
    Resized,
    /// It is gone.
    HungUp,
}

#[derive(Debug)]
enum Target {
    /// Nothing runs yet; so many signals came.
    Nothing { signals: u32 },
    /// This attempt; so many signals came.
    Attempt { host: Placement, attempt: AttemptId, signals: u32 },
}

impl Signals {
    /// Starts the thread that takes the signals.
    ///
    /// Comes before any other thread is made, since they all inherit the blocked mask.
    ///
    /// # Errors
    /// UNAVAILABLE where no thread can be had: nothing is launched that could not be stopped.
    pub(crate) fn take() -> Result<Self, Failure> {
        let mut set = SigSet::empty();
        for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGWINCH] {
            set.add(signal);
        }
        let target = Arc::new(Mutex::new(Target::Nothing { signals: 0 }));
        let terminal = Arc::new(Mutex::new(None));
        let signals = Self { target: Arc::clone(&target), terminal: Arc::clone(&terminal) };
        if set.thread_block().is_ok() {
            let taken = thread::Builder::new().spawn(move || {
                while let Ok(signal) = set.wait() {
                    if !is_of_terminal(signal, &terminal) {
                        receive(&target);
                    }
                }
            });
            taken.map_err(|_| {
                Refusal::new(Code::Unavailable, "no thread can be had to take signals")
                    .with_hint("check the limit of processes (ulimit -u) and try again")
            })?;
        }
        Ok(signals)
    }

    /// Tells of the terminal from here on.
    pub(crate) fn tell(&self, terminal: Sender<TerminalEvent>) {
        *self.terminal.lock().unwrap_or_else(PoisonError::into_inner) = Some(terminal);
    }

    /// Names the attempt that the signals stop, those included that came before.
    pub(crate) fn stop(&self, host: &Placement, attempt: &AttemptId) {
        let mut target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let signals = match *target {
            Target::Nothing { signals } | Target::Attempt { signals, .. } => signals,
        };
        *target = Target::Attempt { host: host.clone(), attempt: attempt.clone(), signals };
        drop(target);
        for nth in 1..=signals {
            stop(host, attempt, nth);
        }
    }
}

/// Says whether a signal is about the terminal and no wish to stop anything.
fn is_of_terminal(signal: Signal, terminal: &Mutex<Option<Sender<TerminalEvent>>>) -> bool {
    let terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
    let event = if signal == Signal::SIGWINCH {
        TerminalEvent::Resized
    } else if signal == Signal::SIGHUP && terminal.is_some() {
        TerminalEvent::HungUp
    } else {
        return false;
    };
    if let Some(terminal) = &*terminal {
        // Whoever listens does so to the end of this process.
        terminal.send(event).ok();
    }
    true
}

fn receive(target: &Mutex<Target>) {
    let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *target {
        // Both are told to the attempt once there is one, so that it is cleaned up.
        Target::Nothing { signals: signals @ (0 | 1) } => *signals += 1,
        // A start that does not come to an end is left to its runner, which makes no child once
        // this host is gone.
        Target::Nothing { .. } => std::process::exit(INTERRUPTED),
        Target::Attempt { host, attempt, signals } => {
            *signals = signals.saturating_add(1);
            let (host, attempt, nth) = (host.clone(), attempt.clone(), *signals);
            drop(target);
            // A stop waits for the runner; a second signal must not wait behind the first.
            let (same_host, same_attempt) = (host.clone(), attempt.clone());
            let asked = thread::Builder::new().spawn(move || stop(&host, &attempt, nth));
            if asked.is_err() {
                stop(&same_host, &same_attempt, nth);
            }
        }
    }
}

fn stop(host: &Placement, attempt: &AttemptId, nth: u32) {
    let mode = if nth == 1 { StopMode::Cooperative } else { StopMode::Forced };
    if let Err(error) = host.stop(attempt, mode) {
        writeln!(std::io::stderr(), "placement: the stop was not taken: {error}").ok();
    }
}
