//! The program under test, run as a shell would run it.

use crate::{OWNER, PATIENCE};
use camino::{Utf8Path, Utf8PathBuf};
use placement_testkit::{TempRoot, wait_until};
use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;

/// The `placement` program with a root, a home and a working directory of its own.
#[derive(Debug)]
pub struct Program {
    path: Utf8PathBuf,
    directory: Arc<TempRoot>,
}

/// What a program said and how it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Its exit code; 128 and the signal's number where a signal ended it.
    pub code: i32,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// A program that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<JoinHandle<String>>,
}

impl Program {
    /// Prepares the program at a path.
    ///
    /// # Panics
    /// When its directories cannot be made.
    #[track_caller]
    pub fn new(path: impl AsRef<Utf8Path>) -> Self {
        Self::sharing(path.as_ref(), Arc::new(TempRoot::new()))
    }

    /// Prepares the program in a directory that a world lives in too.
    #[track_caller]
    pub(crate) fn sharing(path: &Utf8Path, directory: Arc<TempRoot>) -> Self {
        for name in ["work", "home", "tmp"] {
            std::fs::create_dir_all(directory.join(name)).expect("the directory is writable");
        }
        Self { path: path.to_owned(), directory }
    }

    /// Returns its private root.
    pub fn root(&self) -> Utf8PathBuf {
        self.directory.join("state")
    }

    /// Returns its working directory.
    pub fn work(&self) -> Utf8PathBuf {
        self.directory.join("work")
    }

    /// Returns the home of its user.
    pub fn user_home(&self) -> Utf8PathBuf {
        self.directory.join("home")
    }

    /// Returns the homes of attempts that are left.
    pub fn homes_left(&self) -> Vec<Utf8PathBuf> {
        crate::facts::homes_left(&self.root())
    }

    /// Returns the temporary directories of attempts that are left.
    pub fn temporary_left(&self) -> Vec<Utf8PathBuf> {
        crate::facts::temporary_left(&self.directory.join("tmp"))
    }

    /// Runs it with these arguments and no input until it ends.
    ///
    /// # Panics
    /// When it does not end in a minute.
    #[track_caller]
    pub fn run<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Said {
        self.start(arguments, Stdio::null()).said()
    }

    /// Starts it with these arguments and input.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn start<'a>(&self, arguments: impl IntoIterator<Item = &'a str>, stdin: Stdio) -> Running {
        Running::start(self.command(arguments).stdin(stdin))
    }

    /// Makes the command, on this root and as the owner of all tests.
    pub fn command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = self.bare_command(["--root", self.root().as_str(), "--owner", OWNER]);
        command.args(arguments);
        command
    }

    /// Makes the command with these arguments alone, and an environment of its own.
    #[expect(clippy::disallowed_methods, reason = "a test runs the program under test")]
    pub fn bare_command<'a>(&self, arguments: impl IntoIterator<Item = &'a str>) -> Command {
        let mut command = Command::new(&self.path);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.user_home())
            .env("TMPDIR", self.directory.join("tmp"))
            .current_dir(self.work())
            .args(arguments);
        command
    }
}

/// Makes the command that another one runs: a wrapper, its arguments, and then the whole of it.
#[expect(clippy::disallowed_methods, reason = "a test runs the program under test")]
pub fn through(wrapper: &[&str], command: &Command) -> Command {
    let [program, arguments @ ..] = wrapper else { panic!("a wrapper is a program") };
    let mut wrapped = Command::new(program);
    wrapped.env_clear().args(arguments).arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        value.map(|value| wrapped.env(name, value));
    }
    command.get_current_dir().map(|directory| wrapped.current_dir(directory));
    wrapped
}

impl Running {
    /// Starts a command and reads what it says.
    ///
    /// # Panics
    /// When it cannot be started.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        let mut child = command
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program under test starts");
        let stdout = child.stdout.take().map(reader);
        let stderr = child.stderr.take().map(reader);
        Self { child, stdout, stderr }
    }

    /// Returns its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns its process, to write to or to signal.
    pub const fn process(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until it has ended.
    ///
    /// # Panics
    /// When it does not end in a minute; it is killed then.
    #[track_caller]
    pub fn said(mut self) -> Said {
        drop(self.child.stdin.take());
        let mut status = None;
        wait_until(PATIENCE, "the end of the program under test", || {
            status = self.child.try_wait().expect("it is our child");
            status.is_some()
        });
        let text = |reader: Option<JoinHandle<String>>| {
            reader.map_or_else(String::new, |reader| reader.join().expect("a reader does not fail"))
        };
        let code = status.map_or(-1, code);
        Said { code, stdout: text(self.stdout.take()), stderr: text(self.stderr.take()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // One that has ended takes no signal; that is what is wanted.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn reader(mut stream: impl Read + Send + 'static) -> JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What came before a failure is what the program said.
        stream.read_to_end(&mut bytes).ok();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn code(status: ExitStatus) -> i32 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}
