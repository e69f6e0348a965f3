//! The own terminal of a host: its size, its raw mode, and the way back.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

use nix::sys::signal::{SigSet, Signal};
use placement_contract::WindowSize;
use placement_contract::limits::{WINDOW_COLUMNS_MAX, WINDOW_ROWS_MAX};
use placement_identity::Errno;
use rustix::termios::{OptionalActions, Termios};

/// Holds a terminal in raw mode: what is typed is passed on as it is, keys that would be signals
/// included. Dropping it gives the terminal back as it was.
#[derive(Debug)]
#[must_use = "dropping it ends the raw mode"]
pub struct RawTerminal {
    saved: SavedTerminal,
}

/// Knows a terminal as it was before, and gives it back from any thread, any number of times.
#[derive(Debug, Clone)]
pub struct SavedTerminal {
    terminal: Arc<OwnedFd>,
    attributes: Termios,
}

impl RawTerminal {
    /// Puts a terminal into raw mode, as `cfmakeraw(3)` describes it, by `tcsetattr(3)`.
    ///
    /// A process in the background is stopped by SIGTTOU until it is in the foreground.
    ///
    /// # Errors
    /// The kernel's answer, such as `ENOTTY`.
    pub fn enter(terminal: BorrowedFd<'_>) -> Result<Self, Errno> {
        let terminal = rustix::io::fcntl_dupfd_cloexec(terminal, 3).map_err(crate::errno)?;
        let attributes = rustix::termios::tcgetattr(&terminal).map_err(crate::errno)?;
        let mut raw = attributes.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&terminal, OptionalActions::Now, &raw).map_err(crate::errno)?;
        Ok(Self { saved: SavedTerminal { terminal: Arc::new(terminal), attributes } })
    }

    /// Returns what gives the terminal back where this value cannot be dropped.
    pub fn saved(&self) -> SavedTerminal {
        self.saved.clone()
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.saved.restore();
    }
}

impl SavedTerminal {
    /// Puts the terminal into raw mode again after it was given back; one that is gone stays gone.
    ///
    /// A process in the background is stopped by SIGTTOU until it is in the foreground.
    pub fn enter_again(&self) {
        let mut raw = self.attributes.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(&self.terminal, OptionalActions::Now, &raw).ok();
    }

    /// Gives the terminal back as it was; one that is gone needs nothing.
    pub fn restore(&self) {
        // A process that is in the background by now would be stopped by its own restoring.
        let mut stopping = SigSet::empty();
        stopping.add(Signal::SIGTTOU);
        let former = stopping.thread_swap_mask(nix::sys::signal::SigmaskHow::SIG_BLOCK);
        rustix::termios::tcsetattr(&self.terminal, OptionalActions::Now, &self.attributes).ok();
        if let Ok(former) = former {
            former.thread_set_mask().expect("a mask that was in force is a valid one");
        }
    }
}

/// Reads the size of a terminal, cut to what a window may have, by `ioctl(2)` with `TIOCGWINSZ`;
/// nothing for what is no terminal, and for one that does not know its size.
pub fn terminal_size(terminal: BorrowedFd<'_>) -> Option<WindowSize> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    let cut = |length: u16, max: u64| length.min(u16::try_from(max).unwrap_or(u16::MAX));
    WindowSize::new(cut(size.ws_col, WINDOW_COLUMNS_MAX), cut(size.ws_row, WINDOW_ROWS_MAX))
}
