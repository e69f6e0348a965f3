//! Where one case happens: a fresh root, the program under a campaign, and the same program not
//! under one, as whoever comes after the crash would run it.

use super::processes::{PATIENCE, children, is_runner, reap_orphans, until};
use super::scenario::{Contained, Scenario};
use crate::command::program;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{Attempt, Placement};
use placement_testkit::TempRoot;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const OWNER: &str = "local:crash";
/// Time between SIGTERM and SIGKILL: a child that ignores the first is not waited for long.
const GRACE: &str = "200ms";

/// The programs that all cases of a worker share.
#[derive(Debug)]
pub(super) struct Programs {
    directory: TempRoot,
}

/// One case's place.
#[derive(Debug)]
pub(super) struct Bed<'a> {
    programs: &'a Programs,
    directory: TempRoot,
    scenario: Scenario,
    contained: Contained,
    /// No two attempts of this machine have one: an attempt's id comes from it, and its processes are
    /// found by that.
    key: String,
}

/// The host under the campaign.
#[derive(Debug)]
pub(super) struct Host {
    child: Child,
}

/// What a command of the host that came after said.
#[derive(Debug)]
pub(super) struct Said {
    /// Its arguments, as they are shown.
    pub(super) command: String,
    /// Its exit code; nothing where it did not end.
    pub(super) code: Option<i32>,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// How long it took.
    pub(super) took: Duration,
}

impl Programs {
    /// Copies the program twice, so that only one of them has the campaign's files beside it.
    pub(super) fn copy(built: &Utf8Path) -> Result<Self, String> {
        let directory = TempRoot::new();
        for name in ["armed", "plain"] {
            let copy = directory.join(name);
            fs::copy(built, &copy).map_err(|error| format!("copy {built}: {error}"))?;
        }
        Ok(Self { directory })
    }

    fn armed(&self) -> Utf8PathBuf {
        self.directory.join("armed")
    }

    pub(super) fn plain(&self) -> Utf8PathBuf {
        self.directory.join("plain")
    }

    /// Says where processes freeze, and forgets what was passed before.
    fn arm(&self, points: &[&str]) -> Result<(), String> {
        let failed = |error| format!("arm the program: {error}");
        fs::write(self.directory.join("armed.points"), points.join("\n")).map_err(failed)?;
        fs::write(self.directory.join("armed.trace"), "").map_err(failed)
    }

    fn trace(&self) -> String {
        fs::read_to_string(self.directory.join("armed.trace")).unwrap_or_default()
    }
}

/// One line of the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Passed {
    pub(super) pid: u32,
    pub(super) point: String,
    pub(super) frozen: bool,
}

impl<'a> Bed<'a> {
    /// Makes a fresh root and arms the program.
    pub(super) fn make(
        programs: &'a Programs,
        scenario: Scenario,
        contained: Contained,
        points: &[&str],
    ) -> Result<Self, String> {
        let directory = TempRoot::new();
        // A number of this process would be another worker's too, in its PID namespace.
        let key = directory.path().file_name().expect("it has a name of its own").to_owned();
        let bed = Self { programs, directory, scenario, contained, key };
        for name in ["work", "tmp", "home"] {
            fs::create_dir(bed.directory.join(name)).map_err(|e| format!("make {name}: {e}"))?;
        }
        let broken = bed.work().join("broken");
        // Neither a program nor a script; what it is only the exec tells.
        fs::write(&broken, [0x7f, b'x', 0, 0])
            .and_then(|()| fs::set_permissions(&broken, Permissions::from_mode(0o755)))
            .map_err(|error| format!("make {broken}: {error}"))?;
        programs.arm(points)?;
        Ok(bed)
    }

    pub(super) fn root(&self) -> Utf8PathBuf {
        self.directory.join("state")
    }

    pub(super) fn work(&self) -> Utf8PathBuf {
        self.directory.join("work")
    }

    /// Starts the host under the campaign; what it says goes to files.
    pub(super) fn start(&self) -> Result<Host, String> {
        self.start_as(&["--json", "run"], |command| self.launch(command))
    }

    /// Starts another command of the program under the campaign.
    pub(super) fn start_to(&self, arguments: &[&str]) -> Result<Host, String> {
        self.start_as(arguments, |_| {})
    }

    fn start_as(&self, arguments: &[&str], add: impl FnOnce(&mut Command)) -> Result<Host, String> {
        let mut command = self.command(&self.programs.armed(), arguments);
        add(&mut command);
        let file = |name| {
            let path = self.directory.join(name);
            File::options().create(true).append(true).open(&path)
        };
        let streams = file("host.out").and_then(|out| Ok((out, file("host.err")?)));
        let (out, err) = streams.map_err(|error| format!("make the host's files: {error}"))?;
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        Ok(Host { child: child.map_err(|error| format!("start the host: {error}"))? })
    }

    /// Runs the program that is not under the campaign, to its end.
    pub(super) fn say(&self, arguments: &[&str]) -> Said {
        self.run(arguments, |_| {})
    }

    /// Launches again with the key and everything else as before.
    pub(super) fn retry(&self) -> Said {
        self.run(&["start"], |command| self.launch(command))
    }

    /// Runs again with the key and everything else as before: it exits as the attempt did.
    pub(super) fn rerun(&self) -> Said {
        self.run(&["run"], |command| self.launch(command))
    }

    fn run(&self, arguments: &[&str], add: impl FnOnce(&mut Command)) -> Said {
        let started = Instant::now();
        let mut command = self.command(&self.programs.plain(), arguments);
        add(&mut command);
        let (out, err) = (self.directory.join("said.out"), self.directory.join("said.err"));
        let file = |path: &Utf8Path| File::create(path).expect("the directory is this case's own");
        let child = command.stdin(Stdio::null()).stdout(file(&out)).stderr(file(&err)).spawn();
        let mut child = child.expect("the program started before");
        let status = until(|| {
            reap_orphans(&[child.id()]);
            child.try_wait().ok().flatten()
        });
        if status.is_none() {
            child.kill().ok();
            child.wait().ok();
        }
        let text = |path| fs::read_to_string(path).unwrap_or_default();
        Said {
            command: arguments.join(" "),
            code: status.map(|status| status.code().unwrap_or(-1)),
            stdout: text(&out),
            stderr: text(&err),
            took: started.elapsed(),
        }
    }

    fn launch(&self, command: &mut Command) {
        command.args(["--key", &self.key, "--grace", GRACE]);
        command.args(["--on-host-loss", self.scenario.on_host_loss()]);
        command.args(self.contained.option());
        command.arg("--").args(self.scenario.program(&self.work()));
    }

    fn command(&self, path: &Utf8Path, arguments: &[&str]) -> Command {
        let mut command = program(path);
        command
            .env_clear()
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("HOME", self.directory.join("home"))
            .env("TMPDIR", self.directory.join("tmp"))
            .current_dir(self.work())
            .args(["--root", self.root().as_str(), "--owner", OWNER])
            .args(arguments);
        command
    }

    /// Opens the root in this process, which is built as it should be.
    pub(super) fn look(&self) -> Result<Placement, String> {
        Placement::builder()
            .root(self.root())
            .owner(OWNER)
            .temporary_base(self.directory.join("tmp"))
            .runner_at(self.programs.plain())
            .open()
            .map_err(|error| format!("open the root: {error}"))
    }

    /// Returns the one attempt of the root, if it is recorded.
    pub(super) fn attempt(host: &Placement) -> Result<Option<Attempt>, String> {
        let list = host.attempts().all().map_err(|error| format!("list: {error}"))?;
        if list.attempts.len() > 1 || !list.unreadable.is_empty() {
            return Err("one key has more than one attempt, or a row is malformed".to_owned());
        }
        Ok(list.attempts.into_iter().next())
    }

    /// Returns every point that was passed so far, in order.
    pub(super) fn passed(&self) -> Vec<Passed> {
        let text = self.programs.trace();
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole
            .lines()
            .filter_map(|line| {
                let mut words = line.split(' ');
                let (pid, point) = (words.next()?.parse().ok()?, words.next()?.to_owned());
                Some(Passed { pid, point, frozen: words.next().is_some() })
            })
            .collect()
    }

    /// Counts how often the child ran.
    pub(super) fn runs(&self) -> usize {
        fs::read_to_string(self.work().join("children")).map_or(0, |text| text.lines().count())
    }

    /// Says whether the child has come to where it lives on.
    pub(super) fn is_up(&self) -> bool {
        self.work().join("up").exists()
    }

    /// Lets the child go on that waits for it.
    pub(super) fn let_go(&self) -> Result<(), String> {
        fs::write(self.work().join("go"), "").map_err(|error| format!("let the child go: {error}"))
    }

    /// Counts the directories of attempts.
    pub(super) fn directories(&self) -> usize {
        let attempts = self.root().join("attempts");
        attempts.read_dir_utf8().map_or(0, Iterator::count)
    }

    /// Says whether the home of the attempt is there.
    pub(super) fn has_home(&self) -> bool {
        let attempts = self.root().join("attempts");
        let mut entries = attempts.read_dir_utf8().into_iter().flatten().flatten();
        entries.any(|entry| entry.path().join("home").exists())
    }

    /// Returns what the host passed on.
    pub(super) fn host_said(&self) -> String {
        fs::read_to_string(self.directory.join("host.out")).unwrap_or_default()
    }

    pub(super) fn host_complained(&self) -> String {
        fs::read_to_string(self.directory.join("host.err")).unwrap_or_default()
    }
}

impl Host {
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits until it has ended by itself; says whether it did.
    pub(super) fn ends(&mut self) -> bool {
        let pid = self.pid();
        until(|| {
            reap_orphans(&[pid]);
            self.has_ended().then_some(())
        })
        .is_some()
    }

    /// Finds the runner that it has started, before that one passes its first point.
    pub(super) fn runner(&self) -> Option<u32> {
        children(self.pid()).into_iter().find(|child| is_runner(*child))
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // One that has ended takes no signal.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

const _: () = assert!(PATIENCE.as_secs() >= 10);
