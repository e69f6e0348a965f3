//! SIGINT, SIGTERM, SIGHUP and SIGQUIT: the first asks for a cooperative stop, the second forces it.
//! Where an attempt's window is shown, SIGWINCH is a new size, SIGHUP the end of the terminal, and
//! SIGTSTP gives it back until SIGCONT.

use crate::exit_code;
use crate::failure::Failure;
use nix::sys::signal::{SigSet, Signal};
use placement::{AttemptId, Code, Placement, Refusal, StopMode};
use std::io::Write as _;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

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
    /// This process is to stand still, and its user to have the terminal meanwhile.
    Suspended,
    /// This process goes on after it stood still, for whatever reason.
    Continued,
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
        for signal in TAKEN {
            set.add(signal);
        }
        let target = Arc::new(Mutex::new(Target::Nothing { signals: 0 }));
        let terminal = Arc::new(Mutex::new(None));
        let signals = Self { target: Arc::clone(&target), terminal: Arc::clone(&terminal) };
        if set.thread_block().is_ok() {
            let taken = thread::Builder::new().spawn(move || {
                while let Ok(signal) = set.wait() {
                    match taken(signal) {
                        Taken::Stop => receive(&target),
                        Taken::HangUp if !tell(&terminal, TerminalEvent::HungUp) => {
                            receive(&target);
                        }
                        Taken::Suspend if !tell(&terminal, TerminalEvent::Suspended) => {
                            stand_still();
                        }
                        Taken::HangUp | Taken::Suspend => {}
                        Taken::Continue => drop(tell(&terminal, TerminalEvent::Continued)),
                        Taken::Resize => drop(tell(&terminal, TerminalEvent::Resized)),
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

    /// Says whether a signal asked for the end before there was an attempt.
    pub(crate) fn came(&self) -> bool {
        let target = self.target.lock().unwrap_or_else(PoisonError::into_inner);
        matches!(*target, Target::Nothing { signals: 1.. })
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

/// The signals that are taken.
const TAKEN: [Signal; 7] = [
    Signal::SIGINT,
    Signal::SIGTERM,
    Signal::SIGQUIT,
    Signal::SIGHUP,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
];

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    Stop,
    HangUp,
    Suspend,
    Continue,
    Resize,
}

fn taken(signal: Signal) -> Taken {
    if signal == Signal::SIGHUP {
        Taken::HangUp
    } else if signal == Signal::SIGTSTP {
        Taken::Suspend
    } else if signal == Signal::SIGCONT {
        Taken::Continue
    } else if signal == Signal::SIGWINCH {
        Taken::Resize
    } else {
        Taken::Stop
    }
}

/// Tells whoever shows a window, and says whether there is somebody.
fn tell(terminal: &Mutex<Option<Sender<TerminalEvent>>>, event: TerminalEvent) -> bool {
    let terminal = terminal.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(terminal) = &*terminal else { return false };
    // Whoever listens does so to the end of this process.
    terminal.send(event).ok();
    true
}

/// Stops this process as SIGTSTP does where nobody takes it, and returns when it goes on: at once
/// where the kernel stops nobody, in a group that no shell looks after.
pub(crate) fn stand_still() {
    let mut stopping = SigSet::empty();
    stopping.add(Signal::SIGTSTP);
    // It is for this thread alone, so none of the others takes it.
    if nix::sys::signal::raise(Signal::SIGTSTP).is_ok() {
        stopping.thread_unblock().ok();
        stopping.thread_block().ok();
    }
}

fn receive(target: &Mutex<Target>) {
    let mut target = target.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *target {
        // Both are told to the attempt once there is one, so that it is cleaned up.
        Target::Nothing { signals: signals @ (0 | 1) } => *signals += 1,
        // A start that does not come to an end is left to its runner, which makes no child once
        // this host is gone.
        Target::Nothing { .. } => std::process::exit(exit_code::INTERRUPTED.into()),
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
