//! The signals that are sent on purpose.

use std::fmt;

/// Names a signal that a caller may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// `SIGHUP`: the terminal is gone.
    Hup,
    /// `SIGINT`: interrupted from the keyboard.
    Int,
    /// `SIGQUIT`: end with a core file.
    Quit,
    /// `SIGKILL`: end now; cannot be caught.
    Kill,
    /// `SIGUSR1`.
    Usr1,
    /// `SIGUSR2`.
    Usr2,
    /// `SIGTERM`: please end.
    Term,
    /// `SIGCONT`: go on after a stop.
    Cont,
    /// `SIGSTOP`: stop; cannot be caught.
    Stop,
    /// `SIGWINCH`: the terminal has another size.
    Winch,
}

impl Signal {
    /// Returns the name with its prefix, such as `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Hup => "SIGHUP",
            Self::Int => "SIGINT",
            Self::Quit => "SIGQUIT",
            Self::Kill => "SIGKILL",
            Self::Usr1 => "SIGUSR1",
            Self::Usr2 => "SIGUSR2",
            Self::Term => "SIGTERM",
            Self::Cont => "SIGCONT",
            Self::Stop => "SIGSTOP",
            Self::Winch => "SIGWINCH",
        }
    }

    /// Returns the number that this machine's kernel uses.
    pub fn number(self) -> i32 {
        self.to_rustix().as_raw()
    }

    pub(crate) fn to_rustix(self) -> rustix::process::Signal {
        use rustix::process::Signal as Os;
        match self {
            Self::Hup => Os::HUP,
            Self::Int => Os::INT,
            Self::Quit => Os::QUIT,
            Self::Kill => Os::KILL,
            Self::Usr1 => Os::USR1,
            Self::Usr2 => Os::USR2,
            Self::Term => Os::TERM,
            Self::Cont => Os::CONT,
            Self::Stop => Os::STOP,
            Self::Winch => Os::WINCH,
        }
    }
}

impl fmt::Display for Signal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Signal;

    #[test]
    fn the_numbers_are_those_of_linux() {
        assert_eq!(Signal::Term.number(), 15);
        assert_eq!(Signal::Kill.number(), 9);
    }
}
