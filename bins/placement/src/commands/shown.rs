//! A window in this program's own terminal: keys in, output through, the size passed on, and the
//! terminal given back as it was, whichever way this ends.

use super::sink::write_through;
use crate::exit_code;
use crate::failure::{Failure, say};
use crate::progress::Awaiting;
use crate::signals::{Signals, TerminalEvent, stand_still};
use placement::terminal::{self, RawTerminal, SavedTerminal};
use placement::{
    AttemptHandle, Code, End, Exit, Input, InputOutcome, Placement, Refusal, WindowSize,
};
use std::io::{self, ErrorKind, IsTerminal as _, Read as _};
use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The size of a terminal that does not tell.
const USUAL: (u16, u16) = (80, 24);
/// Keys that are read at once; a person's paste, rarely more.
const KEYS_BYTES: usize = 4096;
/// What ends the modes that a full-screen program sets and, killed, does not end: the other screen
/// (the cursor is kept where it is if it was not on), the hidden cursor, mouse reports, bracketed
/// paste, the other keys, and colours.
const END_OF_MODES: &[u8] =
    b"\x1b7\x1b[?1049l\x1b[?25h\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\
    \x1b[?2004l\x1b[?1l\x1b>\x1b[0m";

/// The terminal that this program's input and output are.
#[derive(Debug)]
pub(crate) struct OwnTerminal {
    _private: (),
}

/// Returns the own terminal; nothing where the input or the output is something else.
pub(crate) fn own_terminal() -> Option<OwnTerminal> {
    let both = io::stdin().is_terminal() && io::stdout().is_terminal();
    both.then_some(OwnTerminal { _private: () })
}

impl OwnTerminal {
    /// Returns its size now.
    #[expect(clippy::unused_self, reason = "only who has a terminal asks for its size")]
    pub(crate) fn size(&self) -> WindowSize {
        let size = terminal::size(io::stdout().as_fd());
        size.or_else(|| WindowSize::new(USUAL.0, USUAL.1)).expect("80 by 24 is a window")
    }
}

/// Shows the window until its attempt has ended, cleans up, and returns how it ended.
///
/// The end of the terminal is the loss of this host: the process ends at once, and the runner does
/// what the launch says of it.
pub(crate) fn to_end(
    host: &Placement,
    attempt: AttemptHandle,
    terminal: &OwnTerminal,
    signals: &Signals,
) -> Result<End, Failure> {
    signals.stop(host, attempt.id());
    let raw = RawTerminal::enter(io::stdin().as_fd()).map_err(|errno| {
        let message = format!("the terminal cannot be put into raw mode ({errno})");
        Failure::from(Refusal::new(Code::Unavailable, message))
    })?;
    restore_after_panic(raw.saved());
    let (tell, events) = mpsc::channel();
    signals.tell(tell.clone());
    let shown = Shown::new();
    follow_terminal(&attempt, terminal, raw.saved(), shown.clone(), events)?;
    pass_keys_on(attempt.input(), shown.clone(), tell)?;
    let lost = show(&attempt, &raw.saved());
    shown.end();
    drop(raw);
    if let Some(lost) = lost {
        say(&lost);
    }
    let awaited = Awaiting::start(format!("waiting for the end of attempt {}", attempt.id()));
    let end = attempt.finish()?;
    drop(awaited);
    if matches!(end.exit(), Some(Exit::Signal { .. })) {
        // A terminal that is gone by now has no modes to end.
        write_through(io::stdout().lock(), END_OF_MODES).ok();
    }
    Ok(end)
}

/// Passes output on as it comes, and returns what there is to say of its end.
fn show(attempt: &AttemptHandle, saved: &SavedTerminal) -> Option<String> {
    for chunk in attempt.output() {
        match chunk {
            Ok(chunk) => {
                if write_through(io::stdout().lock(), chunk.bytes()).is_err() {
                    leave(saved);
                }
            }
            Err(error) => {
                return Some(format!("the window of attempt {} is lost: {error}", attempt.id()));
            }
        }
    }
    attempt.is_taken().then(|| {
        format!("the window of attempt {} was taken over; waiting for its end", attempt.id())
    })
}

/// Whether the window is shown; whoever changes the terminal from another thread holds this meanwhile,
/// so that it is never raw after it was given back for good.
#[derive(Debug, Clone)]
struct Shown(Arc<Mutex<bool>>);

impl Shown {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(true)))
    }

    /// Works on the terminal, and says whether the window is shown.
    fn and(&self, work: impl FnOnce()) -> bool {
        let shown = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if *shown {
            work();
        }
        *shown
    }

    fn end(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = false;
    }
}

/// Starts the thread that passes the size on, gives the terminal back while this process stands still,
/// and ends this process when the terminal is gone.
fn follow_terminal(
    attempt: &AttemptHandle,
    terminal: &OwnTerminal,
    saved: SavedTerminal,
    shown: Shown,
    events: Receiver<TerminalEvent>,
) -> Result<(), Failure> {
    let sizes = attempt.input();
    let (repaint, size) = (attempt.is_replay(), terminal.size());
    let started = thread::Builder::new().spawn(move || {
        if repaint {
            paint_again(&sizes, size);
        }
        // It may have changed since it was looked at for the launch.
        let terminal = OwnTerminal { _private: () };
        let resize = || sizes.resize(terminal.size().columns(), terminal.size().rows()).ok();
        resize();
        let show_again = || {
            if shown.and(|| saved.enter_again()) {
                paint_again(&sizes, terminal.size());
                resize();
            }
        };
        for event in events {
            match event {
                TerminalEvent::Resized => drop(resize()),
                TerminalEvent::HungUp => leave(&saved),
                TerminalEvent::Suspended => {
                    shown.and(|| saved.restore());
                    stand_still();
                    show_again();
                }
                // Whoever had the terminal meanwhile has left it as it likes it.
                TerminalEvent::Continued => show_again(),
            }
        }
    });
    started.map(drop).map_err(no_thread)
}

/// Has the program paint again: the same size would tell it nothing, another one in between does.
fn paint_again(sizes: &Input, size: WindowSize) {
    let other = if size.rows() > 1 { size.rows() - 1 } else { size.rows() + 1 };
    // A program that has ended paints nothing.
    sizes.resize(size.columns(), other).ok();
}

/// Starts the thread that passes on what is typed; where nothing more can be, the terminal is gone.
fn pass_keys_on(input: Input, shown: Shown, tell: Sender<TerminalEvent>) -> Result<(), Failure> {
    let started = thread::Builder::new().spawn(move || {
        type_on(&input);
        // Once the terminal is given back, the end of its input is its user's affair.
        shown.and(|| {
            tell.send(TerminalEvent::HungUp).ok();
        });
    });
    started.map(drop).map_err(no_thread)
}

fn no_thread(_: io::Error) -> Failure {
    Refusal::new(Code::Unavailable, "no thread can be had to show the window")
        .with_hint("check the limit of processes (ulimit -u) and try again")
        .into()
}

/// Passes on what is typed until the terminal is gone; what the child does not take is its affair.
fn type_on(input: &Input) {
    let mut keys = vec![0; KEYS_BYTES];
    let mut is_taken = true;
    loop {
        match io::stdin().lock().read(&mut keys) {
            Ok(0) => return,
            Ok(count) if is_taken => {
                let written = input.write(keys.get(..count).unwrap_or_default());
                is_taken = matches!(written, Ok(InputOutcome::Accepted));
            }
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

/// Ends this process without its terminal.
fn leave(saved: &SavedTerminal) -> ! {
    saved.restore();
    std::process::exit(i32::from(exit_code::HUNG_UP));
}

/// A panic ends this process without running what would be dropped.
fn restore_after_panic(saved: SavedTerminal) {
    let former = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        saved.restore();
        former(panic);
    }));
}
