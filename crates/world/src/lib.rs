//! A whole host for integration tests: root, store, service and runner command.
//!
//! **Owns** a temporary root with a host on it ([`World`]), the program as a shell runs it
//! ([`Program`]) and the questions that tests ask of both:
//! which evidence, does it verify, what survives, what is left on disk. **Never** ships.
//! **Limits**: Linux; failures panic and show the evidence, since the caller is a test.
//!
//! ```no_run
//! use placement::Launch;
//! use placement_world::World;
//!
//! let world = World::new("target/debug/placement");
//! let attempt = world.launch(Launch::program("sh").args(["-c", "echo out; exit 3"]));
//! let id = attempt.id().clone();
//! assert_eq!(world.text(&attempt).stdout, "out\n");
//! let end = attempt.finish().expect("the attempt ends");
//! world.assert_clean(&end);
//! assert!(world.kinds(&id).contains(&"child.exited"));
//! ```

mod damage;
mod facts;
mod known;
mod output;
mod program;
mod refused;
mod stage;
mod stopped;
mod wire;

pub use damage::{
    change_store, damage_pages_with, damage_root_page, load_store, make_store_newer,
    replace_in_store, take_log_in,
};
pub use facts::{CgroupLeaves, Survivors, peak_memory_bytes, survivors};
pub use known::{Known, leader_in, zombies_of};
pub use output::Text;
pub use program::{Program, Running, Said, through};
pub use refused::Refused;
pub use stage::{Stage, contained, keeping_leftovers};
pub use stopped::StoppedWriter;
pub use wire::{Control, Data, Door, Shut, Socket};

/// The words of every floor.
pub use placement_contract as contract;
pub use placement_contract::RecipientId;
/// Which process is which.
pub use placement_identity as identity;
/// What a host offers and admits.
pub use placement_policy as policy;
/// The messages between a runner and whoever talks to it.
pub use placement_protocol as protocol;
/// The operations beneath the facade.
pub use placement_service as service;
/// The receipts.
pub use placement_store as store;

use camino::{Utf8Path, Utf8PathBuf};
use placement::{AttemptHandle, AttemptId, CleanupState, End, Launch, Mechanism, Placement};
use placement_contract::attempt::RunnerStatus;
use placement_testkit::{TempRoot, wait_until};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The owner of every attempt in a world.
pub const OWNER: &str = "local:test";
/// How long a broken run may take before a test says so.
pub const PATIENCE: Duration = Duration::from_mins(1);

/// A temporary root and a host on it.
#[derive(Debug)]
pub struct World {
    host: Placement,
    runner: Utf8PathBuf,
    directory: Arc<TempRoot>,
}

impl World {
    /// Makes a root and opens a host that starts the program at a path as its runner.
    ///
    /// # Panics
    /// When the host does not open.
    #[track_caller]
    pub fn new(runner: impl AsRef<Utf8Path>) -> Self {
        Self::on(runner, |_| {})
    }

    /// Makes a root in a place that is prepared first: nothing is there yet when it is asked for.
    ///
    /// # Panics
    /// As [`World::new`].
    #[track_caller]
    pub fn on(runner: impl AsRef<Utf8Path>, prepare: impl FnOnce(&Utf8Path)) -> Self {
        let directory = Arc::new(TempRoot::new());
        prepare(&root_in(directory.path()));
        for name in ["work", "tmp"] {
            std::fs::create_dir(directory.join(name)).expect("the directory is new");
        }
        let runner = runner.as_ref().to_owned();
        let host = open(directory.path(), &runner);
        Self { host, runner, directory }
    }

    /// Returns the host.
    pub const fn host(&self) -> &Placement {
        &self.host
    }

    /// Opens a second host on the same root, as after a crash of the first.
    ///
    /// # Panics
    /// When it does not open.
    #[track_caller]
    pub fn another_host(&self) -> Placement {
        open(self.directory.path(), &self.runner)
    }

    /// Returns the program under test on the same root, as a shell would run it.
    #[track_caller]
    pub fn program(&self) -> Program {
        Program::sharing(&self.runner, Arc::clone(&self.directory))
    }

    /// Returns the ways of containing a tree that work here, the strongest first, and prints why
    /// another does not.
    ///
    /// # Panics
    /// When nothing can be measured, or not even the subreaper works.
    #[expect(clippy::print_stdout, reason = "a test says what it does not cover here")]
    #[track_caller]
    pub fn mechanisms(&self) -> Vec<Mechanism> {
        let measured = self.host.capabilities().expect("the machine can be measured").report;
        for seen in measured.mechanisms.iter().filter(|seen| !seen.available) {
            let step = seen.failed_at.as_deref().unwrap_or("its measurement");
            let errno = seen.errno.as_deref().unwrap_or("no error number");
            println!("{} is not tested here: it failed at {step} ({errno})", seen.mechanism);
        }
        let work = measured.mechanisms.iter().filter(|seen| seen.available);
        let work: Vec<Mechanism> = work.map(|seen| seen.mechanism).collect();
        assert!(work.contains(&Mechanism::Subreaper), "the subreaper needs nothing: {measured:?}");
        work
    }

    /// Returns the directory in which everything of this world lies.
    pub fn directory(&self) -> &Utf8Path {
        self.directory.path()
    }

    /// Returns the private root.
    pub fn root(&self) -> Utf8PathBuf {
        root_in(self.directory.path())
    }

    /// Returns a directory that launches may write to.
    pub fn work(&self) -> Utf8PathBuf {
        self.directory.join("work")
    }

    /// Returns the directory below which children get their TMPDIR.
    pub fn temporary_base(&self) -> Utf8PathBuf {
        self.directory.join("tmp")
    }

    /// Launches in the work directory.
    ///
    /// # Panics
    /// When the launch is refused.
    #[track_caller]
    pub fn launch(&self, launch: Launch) -> AttemptHandle {
        self.host.launch(launch.write(self.work())).expect("the launch is admitted and starts")
    }

    /// Waits until a file is in the work directory.
    ///
    /// # Panics
    /// When it does not come in a minute.
    #[track_caller]
    pub fn wait_for_file(&self, name: &str) {
        wait_until(PATIENCE, name, || self.work().join(name).exists());
    }

    /// Launches a shell command in the work directory.
    ///
    /// # Panics
    /// As [`World::launch`].
    #[track_caller]
    pub fn launch_shell(&self, script: &str) -> AttemptHandle {
        self.launch(shell(script))
    }

    /// Reads all output of an attempt.
    ///
    /// # Panics
    /// When a stream fails.
    #[track_caller]
    pub fn text(&self, attempt: &AttemptHandle) -> Text {
        output::read(attempt)
    }

    /// Reads all output of an attempt as bytes, both streams as they come.
    ///
    /// # Panics
    /// When a stream fails.
    #[track_caller]
    pub fn bytes(&self, attempt: &AttemptHandle) -> Vec<u8> {
        output::read_bytes(attempt)
    }

    /// Returns the labels of an attempt's evidence, in order.
    ///
    /// # Panics
    /// When the evidence cannot be read.
    #[track_caller]
    pub fn kinds(&self, attempt: &AttemptId) -> Vec<&'static str> {
        let rows = self.host.evidence(attempt, 0, None).expect("the evidence is readable");
        rows.iter().map(|row| row.kind.label()).collect()
    }

    /// Asserts that the evidence chain of an attempt is whole and folds into its state.
    ///
    /// # Panics
    /// When it does not, with what is wrong.
    #[track_caller]
    pub fn assert_verified(&self, attempt: &AttemptId) {
        let verified = self.host.verify(attempt, None).expect("the evidence is readable");
        assert!(verified.sound, "{:?}\n{}", verified.faults, self.told(attempt));
    }

    /// Asserts that an attempt is cleaned up, that its evidence holds and that nothing is left.
    ///
    /// # Panics
    /// When something is left, with the evidence.
    #[track_caller]
    pub fn assert_clean(&self, end: &End) {
        self.assert_nothing_left(&end.attempt().attempt_id);
    }

    /// Asserts the same of an attempt that somebody else has followed to its end.
    ///
    /// # Panics
    /// As [`World::assert_clean`].
    #[track_caller]
    pub fn assert_nothing_left(&self, id: &AttemptId) {
        let told = self.told(id);
        let attempt = self.host.attempt(id).expect("the attempt is recorded");
        assert_eq!(attempt.cleanup_state, CleanupState::Complete, "{told}");
        self.assert_verified(id);
        self.assert_no_survivor(id);
        assert_eq!(self.homes_left(), Vec::<Utf8PathBuf>::new(), "{told}");
        assert_eq!(self.temporary_left(), Vec::<Utf8PathBuf>::new(), "{told}");
    }

    /// Returns the evidence as text, for the message of a failure.
    pub fn told(&self, attempt: &AttemptId) -> String {
        match self.host.evidence(attempt, 0, None) {
            Ok(rows) => rows
                .iter()
                .map(|row| format!("{:>3} {} {}: {}", row.sequence, row.to, row.kind, row.detail))
                .collect::<Vec<_>>()
                .join("\n"),
            Err(error) => format!("no evidence: {error}"),
        }
    }

    /// Asserts that no process is found that carries an attempt's marker.
    ///
    /// Other tests' runners hide their environment and are no children of an attempt; so what hides
    /// is not held against it.
    ///
    /// # Panics
    /// When one is found, with the evidence.
    #[track_caller]
    pub fn assert_no_survivor(&self, attempt: &AttemptId) {
        match self.survivors(attempt) {
            Survivors::None | Survivors::Unknown(_) => {}
            Survivors::These(pids) => panic!("{pids:?} survive\n{}", self.told(attempt)),
        }
    }

    /// Returns the door to the sockets of an attempt's runner.
    ///
    /// # Panics
    /// When the attempt has no directory or no token.
    #[track_caller]
    pub fn door(&self, attempt: &AttemptId) -> Door {
        Door::of(&self.root(), attempt)
    }

    /// Asks an attempt's runner what it has come to.
    ///
    /// # Panics
    /// When none answers.
    #[track_caller]
    pub fn runner(&self, attempt: &AttemptId) -> RunnerStatus {
        let status = self.host.status(attempt).expect("the attempt is recorded");
        status.runner.unwrap_or_else(|| panic!("no runner answers:\n{}", self.told(attempt)))
    }

    /// Waits until an attempt's runner says that something is so.
    ///
    /// # Panics
    /// When it does not in a minute.
    #[track_caller]
    pub fn wait_for_runner(
        &self,
        attempt: &AttemptId,
        what: &str,
        is_so: impl Fn(&RunnerStatus) -> bool,
    ) {
        wait_until(PATIENCE, what, || {
            let status = self.host.status(attempt).expect("the attempt is recorded");
            status.runner.as_ref().is_some_and(&is_so)
        });
    }

    /// Returns the process id of an attempt's runner.
    ///
    /// # Panics
    /// When none is recorded, or it has finished.
    #[track_caller]
    pub fn runner_pid(&self, attempt: &AttemptId) -> u32 {
        let recorded = self.host.attempt(attempt).expect("the attempt is recorded");
        facts::runner_pid(&recorded).unwrap_or_else(|| panic!("no runner:\n{}", self.told(attempt)))
    }

    /// Looks for processes that carry an attempt's marker.
    pub fn survivors(&self, attempt: &AttemptId) -> Survivors {
        survivors(attempt)
    }

    /// Returns where the home of an attempt is, or was.
    ///
    /// # Panics
    /// When the attempt names none.
    #[track_caller]
    pub fn home(&self, attempt: &AttemptId) -> Utf8PathBuf {
        let recorded = self.host.attempt(attempt).expect("the attempt is recorded");
        let key = recorded.home_ref.as_deref().and_then(|home| home.strip_prefix("home:"));
        self.root().join("attempts").join(key.expect("it names a home")).join("home")
    }

    /// Returns the homes that are left below the root.
    pub fn homes_left(&self) -> Vec<Utf8PathBuf> {
        facts::homes_left(&self.root())
    }

    /// Returns the temporary directories of attempts that are left.
    pub fn temporary_left(&self) -> Vec<Utf8PathBuf> {
        facts::temporary_left(&self.temporary_base())
    }

    /// Looks for cgroup leaves of attempts below the group of this process.
    pub fn cgroup_leaves_left(&self) -> CgroupLeaves {
        facts::cgroup_leaves_left()
    }
}

impl Drop for World {
    /// Ends what a test has left, also where it failed.
    fn drop(&mut self) {
        let Ok(list) = self.host.attempts().all() else { return };
        let left: Vec<_> = list.attempts.iter().filter(|it| it.runner.is_some()).collect();
        let deadline = Some(Instant::now() + Duration::from_secs(10));
        for attempt in &left {
            // What cannot be reached any more has ended.
            self.host.stop_survivors(&attempt.attempt_id).ok();
        }
        for attempt in &left {
            self.host.wait(&attempt.attempt_id, deadline).ok();
        }
    }
}

/// Describes the launch of a shell command.
pub fn shell(script: &str) -> Launch {
    Launch::program("/bin/sh").args(["-c", script])
}

#[track_caller]
fn open(directory: &Utf8Path, runner: &Utf8Path) -> Placement {
    Placement::builder()
        .root(root_in(directory))
        .owner(OWNER)
        .temporary_base(directory.join("tmp"))
        .runner_at(runner)
        .open()
        .expect("the host opens")
}

fn root_in(directory: &Utf8Path) -> Utf8PathBuf {
    directory.join("state")
}
