//! What joins the runner and the child: pipes, or a terminal.

use crate::runner::Pipes;
use crate::window::Window;
use placement_contract::{LaunchRequest, StdinMode, WindowSize};
use placement_process::{Pipe, PipeError, PseudoTerminal, Session, TerminalError, dev_null};
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};

/// Both ends of everything between runner and child.
#[derive(Debug)]
pub(crate) struct Plumbing {
    /// What the child gets; ours no longer once it is born.
    pub(crate) theirs: Theirs,
    /// Our end of its input, if it has one.
    pub(crate) stdin: Option<OwnedFd>,
    /// Our ends of its output.
    pub(crate) pipes: Pipes,
}

/// The child's ends.
#[derive(Debug)]
pub(crate) enum Theirs {
    /// One for each stream.
    Streams { stdin: OwnedFd, stdout: OwnedFd, stderr: OwnedFd },
    /// A terminal that is all three.
    Window(Window),
}

/// Says why they could not be made.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoPlumbing {
    #[error(transparent)]
    Pipe(#[from] PipeError),
    #[error(transparent)]
    Terminal(#[from] TerminalError),
    #[error("cannot duplicate a descriptor")]
    Duplicate(#[source] std::io::Error),
}

impl Plumbing {
    /// Makes what a launch asks for.
    pub(crate) fn of(request: &LaunchRequest) -> Result<Self, NoPlumbing> {
        if let Some(window) = &request.supervision.window {
            return Self::window(window.size());
        }
        let launch = &request.launch;
        let wants_input = launch.stdin.is_some()
            || launch.session_end.is_some()
            || request.supervision.stdin == StdinMode::Pipe;
        let (stdin, stdin_ours) = if wants_input {
            let pipe = Pipe::to_child()?;
            (pipe.theirs, Some(pipe.ours))
        } else {
            (dev_null()?, None)
        };
        let (stdout, stderr) = (Pipe::from_child()?, Pipe::from_child()?);
        Ok(Self {
            theirs: Theirs::Streams { stdin, stdout: stdout.theirs, stderr: stderr.theirs },
            stdin: stdin_ours,
            pipes: Pipes {
                stdout: Some(stdout.ours),
                stderr: Some(stderr.ours),
                discarding: false,
            },
        })
    }

    /// The size is set before there is a process, so no program sees another one.
    fn window(size: WindowSize) -> Result<Self, NoPlumbing> {
        let PseudoTerminal { ours, theirs } = PseudoTerminal::open(size)?;
        let another = || ours.try_clone().map_err(NoPlumbing::Duplicate);
        let (output, input) = (another()?, another()?);
        Ok(Self {
            theirs: Theirs::Window(Window::new(ours, theirs)),
            stdin: Some(input),
            pipes: Pipes { stdout: Some(output), stderr: None, discarding: false },
        })
    }
}

impl Theirs {
    pub(crate) fn stdin(&self) -> BorrowedFd<'_> {
        match self {
            Self::Streams { stdin, .. } => stdin.as_fd(),
            Self::Window(window) => window.theirs(),
        }
    }

    pub(crate) fn stdout(&self) -> BorrowedFd<'_> {
        match self {
            Self::Streams { stdout, .. } => stdout.as_fd(),
            Self::Window(window) => window.theirs(),
        }
    }

    pub(crate) fn stderr(&self) -> BorrowedFd<'_> {
        match self {
            Self::Streams { stderr, .. } => stderr.as_fd(),
            Self::Window(window) => window.theirs(),
        }
    }

    /// Returns the session that the child is to be in.
    pub(crate) const fn session(&self) -> Session {
        match self {
            Self::Streams { .. } => Session::Inherited,
            Self::Window(_) => Session::OnTerminal,
        }
    }

    /// Lets go of the child's ends but for a terminal, which is held until the child has ended.
    pub(crate) fn into_window(self) -> Option<Window> {
        match self {
            Self::Streams { .. } => None,
            Self::Window(window) => Some(window),
        }
    }
}
