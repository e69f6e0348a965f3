//! One launch as an embedder words it.

use camino::{Utf8Path, Utf8PathBuf};
use placement_contract::{
    Access, CleanupScope, Id, Leftovers, Mechanism, OnHostLoss, PlannedExecutable, SessionEnd,
    StdinMode, Supervision, Timeouts,
};
use placement_service::ExecutableMeasurement;
use std::collections::BTreeMap;
use std::time::Duration;

/// What to launch, where, and how it is supervised.
///
/// Without a key the launch gets a fresh attempt; with one it happens at most once per owner and
/// root. Nothing is checked before it is handed to [`crate::Placement::launch`].
#[derive(Debug, Clone)]
pub struct Launch {
    pub(crate) program: String,
    pub(crate) arguments: Vec<String>,
    pub(crate) working_directory: Option<Utf8PathBuf>,
    pub(crate) directories: Vec<(Utf8PathBuf, Access)>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) key: Option<String>,
    pub(crate) policy: Option<String>,
    pub(crate) session: Option<String>,
    pub(crate) wait_session: Option<Duration>,
    pub(crate) stdin_text: Option<String>,
    pub(crate) session_end: Option<SessionEnd>,
    pub(crate) executable: Option<PlannedExecutable>,
    pub(crate) required_cleanup: Option<CleanupScope>,
    pub(crate) timeouts: Timeouts,
    pub(crate) supervision: Supervision,
    /// Columns, rows and the kind of terminal.
    pub(crate) window: Option<(u16, u16, String)>,
}

impl Launch {
    /// Names the program: a path, or a name that is searched on the host's search path.
    ///
    /// A relative path with a slash in it is taken from the current directory, as are the
    /// directories below.
    pub fn program(program: impl Into<String>) -> Self {
        Self {
            program: program.into(),
            arguments: Vec::new(),
            working_directory: None,
            directories: Vec::new(),
            environment: BTreeMap::new(),
            key: None,
            policy: None,
            session: None,
            wait_session: None,
            stdin_text: None,
            session_end: None,
            executable: None,
            required_cleanup: None,
            timeouts: Timeouts::default(),
            supervision: Supervision::default(),
            window: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, argument: impl Into<String>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// Lets the launch write below a directory; the first one named is its working directory
    /// unless [`Launch::cwd`] says otherwise.
    #[must_use]
    pub fn write(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.directories.push((directory.as_ref().to_owned(), Access::Write));
        self
    }

    /// Names a directory that the launch reads.
    #[must_use]
    pub fn read(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.directories.push((directory.as_ref().to_owned(), Access::Read));
        self
    }

    /// Sets the working directory; it is read-only for the launch unless also named by
    /// [`Launch::write`].
    #[must_use]
    pub fn cwd(mut self, directory: impl AsRef<Utf8Path>) -> Self {
        self.working_directory = Some(directory.as_ref().to_owned());
        self
    }

    /// Sets a nonsecret environment value; the child sees no other than these, PATH, HOME, TMPDIR
    /// and what the policy passes on by name.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.insert(name.into(), value.into());
        self
    }

    /// Sets the key under which this launch happens at most once.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// Names the launch policy; the host's default one otherwise. A launch under another policy is
    /// another launch.
    #[must_use]
    pub fn policy(mut self, name: impl Into<String>) -> Self {
        self.policy = Some(name.into());
        self
    }

    /// Goes on with a session of this owner: HOME is the session's retained home, which every attempt
    /// finds as the one before it left it. It is made on demand, and nothing of placement removes it.
    ///
    /// One attempt at a time holds a session, until it is exited and cleaned up. Another launch is
    /// refused meanwhile, naming it, or waits as [`Launch::wait_session`] says. Two owners' sessions of
    /// one name have nothing in common.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// Waits this long, up to 30 days, for a session that another attempt holds; a launch is refused
    /// at once otherwise. It is the same launch with another wait.
    #[must_use]
    pub fn wait_session(mut self, patience: Duration) -> Self {
        self.wait_session = Some(patience);
        self
    }

    /// Gives the child this text as its whole input, at most 65 536 bytes.
    #[must_use]
    pub fn stdin_text(mut self, text: impl Into<String>) -> Self {
        self.stdin_text = Some(text.into());
        self
    }

    /// Gives the child an input pipe that the host writes to.
    #[must_use]
    pub fn stdin_pipe(mut self) -> Self {
        self.supervision.stdin = StdinMode::Pipe;
        self
    }

    /// Runs the child in a window: a terminal of its own is all of its streams and controls its
    /// session. It has this size, 1 to 1000 columns and 1 to 500 rows, before the program runs, and
    /// `term` is its TERM.
    ///
    /// What is written to it comes as its standard output; input is written, and the size changed, by
    /// the [`crate::AttemptHandle`]. A launch with a key that is recorded keeps its recorded window.
    #[must_use]
    pub fn window(mut self, columns: u16, rows: u16, term: impl Into<String>) -> Self {
        self.window = Some((columns, rows, term.into()));
        self
    }

    /// Keeps the child's input open until it is closed by [`crate::Placement::close_stdin`] or
    /// [`crate::AttemptHandle::close_input`]: the end of the input is the end of its session. A text
    /// that was given comes first.
    #[must_use]
    pub fn ends_with_its_input(mut self) -> Self {
        self.session_end = Some(SessionEnd::StdinClose);
        self
    }

    /// Names the program as it was measured; at the start, another one is refused.
    #[must_use]
    pub fn measured(mut self, measurement: &ExecutableMeasurement) -> Self {
        self.executable = Id::parse(&measurement.revision).ok().map(|revision| {
            let (kind, digest) = (measurement.kind, measurement.digest.clone());
            PlannedExecutable { revision, kind, digest }
        });
        self
    }

    /// Requires that cleanup can prove this scope gone; the strongest measured one otherwise.
    #[must_use]
    pub fn require(mut self, scope: CleanupScope) -> Self {
        self.required_cleanup = Some(scope);
        self
    }

    /// Chooses the containment; the strongest measured one otherwise.
    #[must_use]
    pub fn mechanism(mut self, mechanism: Mechanism) -> Self {
        self.supervision.mechanism = Some(mechanism);
        self
    }

    /// Requires a proof of an empty tree that outlives the runner.
    #[must_use]
    pub fn require_surviving_proof(mut self) -> Self {
        self.supervision.require_surviving_proof = true;
        self
    }

    /// Bounds the memory of everything that the program starts, in bytes, 1 MiB to 16 TiB; swap is not
    /// used then. What the kernel kills for it is `child.oom_killed` in the evidence.
    ///
    /// Limits need a cgroup leaf with their controller; a launch that does not get them is refused.
    #[must_use]
    pub fn memory_bytes(mut self, bytes: u64) -> Self {
        self.supervision.limits.memory_bytes = Some(bytes);
        self
    }

    /// Bounds the processes and threads of everything that the program starts, 1 to 4 194 304.
    #[must_use]
    pub fn pids(mut self, pids: u64) -> Self {
        self.supervision.limits.pids = Some(pids);
        self
    }

    /// Bounds the processor time of everything that the program starts, in thousandths of one
    /// processor, 10 to 8 192 000.
    #[must_use]
    pub fn cpu_millis(mut self, millis: u64) -> Self {
        self.supervision.limits.cpu_millis = Some(millis);
        self
    }

    /// Says what happens when the host ends: the child is stopped unless told to keep it.
    #[must_use]
    pub fn on_host_loss(mut self, rule: OnHostLoss) -> Self {
        self.supervision.on_host_loss = rule;
        self
    }

    /// Says what happens to what is left after the exit: it is stopped unless told to keep it.
    #[must_use]
    pub fn leftovers(mut self, rule: Leftovers) -> Self {
        self.supervision.leftovers = rule;
        self
    }

    /// Stops the child after this run time, up to 30 days.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.supervision.deadline_ms = Some(whole_ms(deadline));
        self
    }

    /// Sets the time between a cooperative stop and SIGKILL, up to 60 s; 5 s otherwise.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.timeouts.stop_grace_ms = whole_ms(grace);
        self
    }

    /// Sets all time limits.
    #[must_use]
    pub fn timeouts(mut self, timeouts: Timeouts) -> Self {
        self.timeouts = timeouts;
        self
    }

    /// Keeps the home after the cleanup.
    #[must_use]
    pub fn keep_home(mut self) -> Self {
        self.supervision.keep_home = true;
        self
    }

    /// Drops output once it is acknowledged, so that nothing stays on disk.
    #[must_use]
    pub fn no_transcript(mut self) -> Self {
        self.supervision.transcript_bytes_max = 0;
        self
    }

    /// Bounds the unacknowledged bytes on disk; 0 keeps at most 256 KiB in memory instead.
    #[must_use]
    pub fn spool_bytes_max(mut self, bytes: u64) -> Self {
        self.supervision.spool_bytes_max = bytes;
        self
    }
}

fn whole_ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
