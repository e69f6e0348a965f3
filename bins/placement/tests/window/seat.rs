//! A terminal as a person sits at it: the program under test on one side, a test on the other.

use placement_testkit::wait_until;
use placement_world::{PATIENCE, Program, through};
use rustix::event::{PollFd, PollFlags};
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::pty::OpenptFlags;
use rustix::termios::{OptionalActions, Termios, Winsize};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A terminal of a test's own.
pub(crate) struct Seat {
    ours: Option<Arc<OwnedFd>>,
    theirs: OwnedFd,
    /// Its settings at first.
    usual: Termios,
    said: Arc<Mutex<Vec<u8>>>,
    reader: Option<(OwnedFd, JoinHandle<()>)>,
}

/// The program under test at a terminal; it leads the session that the terminal controls.
pub(crate) struct Seated(Child);

impl Seat {
    #[track_caller]
    pub(crate) fn new(columns: u16, rows: u16) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = rustix::pty::openpt(flags).expect("a terminal can be had");
        rustix::pty::unlockpt(&ours).expect("it is a terminal");
        let theirs = rustix::pty::ioctl_tiocgptpeer(&ours, flags).expect("it has another end");
        let ours = Arc::new(ours);
        let said = Arc::new(Mutex::new(Vec::new()));
        let (is_over, over) = pipe_with(PipeFlags::CLOEXEC).expect("a pipe can be had");
        let reader = std::thread::spawn({
            let (ours, said) = (Arc::clone(&ours), Arc::clone(&said));
            move || read_on(&ours, &is_over, &said)
        });
        let usual = rustix::termios::tcgetattr(&theirs).expect("it is a terminal");
        let seat = Self { ours: Some(ours), theirs, usual, said, reader: Some((over, reader)) };
        seat.resize(columns, rows);
        seat
    }

    /// Starts the program with these arguments at this terminal.
    #[track_caller]
    pub(crate) fn start(&self, program: &Program, arguments: &[&str]) -> Seated {
        let mut command = program.command(arguments.iter().copied());
        command.env("TERM", "xterm-test");
        self.seat(&mut through(&["/usr/bin/setsid", "--ctty"], &command))
    }

    /// Starts a shell with this script at this terminal; its arguments are the program and its own.
    #[track_caller]
    pub(crate) fn start_under(
        &self,
        program: &Program,
        arguments: &[&str],
        script: &str,
    ) -> Seated {
        let mut command = program.command(arguments.iter().copied());
        command.env("TERM", "xterm-test");
        self.seat(&mut through(
            &["/usr/bin/setsid", "--ctty", "/bin/sh", "-c", script, "sh"],
            &command,
        ))
    }

    #[track_caller]
    fn seat(&self, command: &mut Command) -> Seated {
        let end = || Stdio::from(self.theirs.try_clone().expect("a descriptor can be had"));
        command.stdin(end()).stdout(end()).stderr(end());
        Seated(command.spawn().expect("the program under test starts"))
    }

    /// Gives the terminal another size, as a window manager would.
    #[track_caller]
    pub(crate) fn resize(&self, columns: u16, rows: u16) {
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(self.ours(), size).expect("a terminal has a size");
    }

    #[track_caller]
    pub(crate) fn type_in(&self, keys: &str) {
        let written = rustix::io::write(self.ours(), keys.as_bytes());
        assert_eq!(written.ok(), Some(keys.len()), "the terminal takes the keys");
    }

    /// Returns everything that was shown so far.
    pub(crate) fn said(&self) -> String {
        String::from_utf8_lossy(&self.said.lock().expect("no reader panics")).into_owned()
    }

    /// Waits until something was shown.
    #[track_caller]
    pub(crate) fn wait_for(&self, text: &str) {
        wait_until(PATIENCE, &format!("{text:?}"), || self.said().contains(text));
    }

    /// Returns all settings of the terminal.
    pub(crate) fn settings(&self) -> String {
        let settings = rustix::termios::tcgetattr(&self.theirs).expect("it is a terminal");
        format!("{settings:?}")
    }

    /// Gives the terminal usual settings, as a shell does when it has it again.
    #[track_caller]
    pub(crate) fn give_back(&self) {
        let usual = self.usual.clone();
        rustix::termios::tcsetattr(&self.theirs, OptionalActions::Now, &usual)
            .expect("it is a terminal");
    }

    /// Waits until keys are passed on as they are.
    #[track_caller]
    pub(crate) fn wait_until_raw(&self) {
        use rustix::termios::LocalModes;
        wait_until(PATIENCE, "raw mode", || {
            let settings = rustix::termios::tcgetattr(&self.theirs).expect("it is a terminal");
            !settings.local_modes.intersects(LocalModes::ICANON | LocalModes::ISIG)
        });
    }

    /// Closes the terminal, as when its window is closed or its connection breaks.
    pub(crate) fn hang_up(&mut self) {
        if let Some((over, reader)) = self.reader.take() {
            drop(over);
            reader.join().expect("the reader does not fail");
        }
        self.ours = None;
    }

    fn ours(&self) -> &OwnedFd {
        self.ours.as_ref().expect("the terminal is there")
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Seated {
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Returns the only process that it has started and that runs.
    #[track_caller]
    pub(crate) fn only_child(&self) -> nix::unistd::Pid {
        let pid = self.pid();
        let listed = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let listed = listed.expect("children are listed");
        let [child] = listed.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("not one child: {listed:?}")
        };
        nix::unistd::Pid::from_raw(child.parse().expect("a child is a number"))
    }

    /// Waits until it has ended; 128 and the signal's number where a signal ended it.
    #[track_caller]
    pub(crate) fn code(&mut self) -> i32 {
        let mut status = None;
        wait_until(PATIENCE, "the end of the program under test", || {
            status = self.0.try_wait().expect("it is our child");
            status.is_some()
        });
        let status = status.expect("it has ended");
        status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        // One that has ended takes no signal; that is what is wanted.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Takes what is shown until the other end of the pipe is closed.
fn read_on(ours: &OwnedFd, is_over: &OwnedFd, said: &Mutex<Vec<u8>>) {
    let mut buffer = [0; 4096];
    loop {
        let mut polled = [PollFd::new(ours, PollFlags::IN), PollFd::new(is_over, PollFlags::IN)];
        rustix::event::poll(&mut polled, None).ok();
        if !polled[1].revents().is_empty() {
            return;
        }
        if let Ok(count) = rustix::io::read(ours, &mut buffer) {
            said.lock().expect("no test panics with it").extend_from_slice(&buffer[..count]);
        }
    }
}
