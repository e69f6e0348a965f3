//! A host on a private root of its own, and what an attempt left on the machine.
//!
//! The host's word is not taken for it: the process table, the cgroup and the directories are
//! looked at. A process that overwrote its environment is not found by its marker; the proof that
//! the containment gives stands for it.

use crate::command::Failure;
use crate::own_cgroup::{members, own_directory};
use camino::{Utf8DirEntry, Utf8Path, Utf8PathBuf};
use placement::{Attempt, AttemptId, Mechanism, Placement};
use placement_identity::{Marker, MarkerScan, Presence, ProcessIdentity, Signal, scan_marker};
use placement_testkit::TempRoot;
use std::collections::BTreeMap;
use std::fs;

/// The variable that marks every process of an attempt.
const MARKER: &str = "PLACEMENT_ATTEMPT_ID";
/// The owner of every attempt on a proving ground.
pub(crate) const OWNER: &str = "local:check";

/// Holds a host; its root, working directory and temporary base go when it is dropped.
#[derive(Debug)]
pub(crate) struct ProvingGround {
    host: Placement,
    runner: Option<Utf8PathBuf>,
    directory: TempRoot,
}

impl ProvingGround {
    /// Opens a host whose runner is this program itself, or the one at a path.
    pub(crate) fn open(runner: Option<&Utf8Path>) -> Result<Self, Failure> {
        let directory = TempRoot::new();
        for name in ["work", "tmp"] {
            let path = directory.join(name);
            fs::create_dir(&path).map_err(|error| Failure::io("make", &path, &error))?;
        }
        let host = open(&directory, runner)?;
        Ok(Self { host, runner: runner.map(Utf8Path::to_owned), directory })
    }

    /// Opens a second host on the same root, as after a crash of the first.
    pub(crate) fn another_host(&self) -> Result<Placement, Failure> {
        open(&self.directory, self.runner.as_deref())
    }

    /// Returns the host.
    pub(crate) const fn host(&self) -> &Placement {
        &self.host
    }

    /// Returns the private root.
    pub(crate) fn root(&self) -> Utf8PathBuf {
        self.directory.join("root")
    }

    /// Returns the directory in which programs run.
    pub(crate) fn work(&self) -> Utf8PathBuf {
        self.directory.join("work")
    }

    /// Lists what an attempt's HOME holds, sorted.
    pub(crate) fn home_entries(&self, attempt: &Attempt) -> Result<Vec<String>, Failure> {
        let Some(key) = key(attempt) else { return Ok(Vec::new()) };
        let home = self.attempt_directory(key).join("home");
        let listed = home.read_dir_utf8().map_err(|error| Failure::io("list", &home, &error))?;
        let mut names = Vec::new();
        for entry in listed {
            let entry = entry.map_err(|error| Failure::io("list", &home, &error))?;
            names.push(entry.file_name().to_owned());
        }
        names.sort();
        Ok(names)
    }

    /// Names the places of an attempt that are still there.
    pub(crate) fn places_left(&self, attempt: &Attempt) -> Result<Vec<String>, Failure> {
        let Some(key) = key(attempt) else { return Ok(Vec::new()) };
        let within = self.attempt_directory(key);
        let base = self.directory.join("tmp");
        let users = base.read_dir_utf8().map_err(|error| Failure::io("list", &base, &error))?;
        let short = key.get(..12).unwrap_or(key);
        let mut places = vec![("HOME", within.join("home")), ("TMPDIR", within.join("tmp"))];
        places.extend(users.flatten().map(|user| ("TMPDIR", user.path().join(short))));
        places.extend(leaf(attempt).map(|leaf| ("the cgroup leaf", leaf)));
        let left = places.into_iter().filter(|(_, path)| path.symlink_metadata().is_ok());
        Ok(left.map(|(name, _)| name.to_owned()).collect())
    }

    /// Finds the running processes of an attempt: by its marker, and in its cgroup leaf.
    pub(crate) fn living(attempt: &Attempt) -> Vec<ProcessIdentity> {
        let marked = carriers(&attempt.attempt_id);
        let mut living: BTreeMap<u32, ProcessIdentity> =
            marked.into_iter().map(|process| (process.pid.get(), process)).collect();
        for pid in leaf(attempt).iter().flat_map(|leaf| members(leaf)) {
            // One that ended between the list and this look does not live.
            if let Ok(process) = ProcessIdentity::of(pid) {
                living.entry(pid).or_insert(process);
            }
        }
        living.into_values().collect()
    }

    fn attempt_directory(&self, key: &str) -> Utf8PathBuf {
        self.root().join("attempts").join(key)
    }
}

/// Ends processes that were found, each through a handle that is verified first.
pub(crate) fn end(processes: &[ProcessIdentity]) {
    for process in processes {
        if let Presence::Present(verified) = process.observe() {
            // One that ended by itself takes no signal.
            verified.signal(Signal::Kill).ok();
        }
    }
}

/// Makes a failure from what the facade says.
pub(crate) fn told(what: &str, error: &placement::Error) -> Failure {
    Failure::new(format!("cannot {what}: {error}"))
}

fn open(directory: &TempRoot, runner: Option<&Utf8Path>) -> Result<Placement, Failure> {
    let builder = Placement::builder()
        .root(directory.join("root"))
        .owner(OWNER)
        .temporary_base(directory.join("tmp"));
    let builder = match runner {
        Some(path) => builder.runner_at(path),
        None => builder.runner_itself(),
    };
    builder.open().map_err(|error| told("open a host", &error))
}

/// Finds the processes that were started with an attempt's marker.
///
/// Other users' processes hide their environment and are no children of an attempt, so that what
/// hides is not held against it.
fn carriers(attempt_id: &AttemptId) -> Vec<ProcessIdentity> {
    let marker = Marker {
        name: MARKER,
        value: attempt_id.as_str(),
        not_older_than_start_ticks: 0,
        except: &[],
    };
    match scan_marker(&marker) {
        MarkerScan::Found(found) | MarkerScan::Unknown { found, .. } => found,
        MarkerScan::None => Vec::new(),
    }
}

/// Returns the opaque name of an attempt's directory.
fn key(attempt: &Attempt) -> Option<&str> {
    let home = attempt.home_ref.as_deref()?;
    Some(home.rsplit_once(':').map_or(home, |(_, key)| key))
}

/// Returns where the cgroup leaf of an attempt is while it is there.
fn leaf(attempt: &Attempt) -> Option<Utf8PathBuf> {
    if attempt.mechanism != Some(Mechanism::Cgroup) {
        return None;
    }
    let name = format!("placement-{}-", key(attempt)?);
    let mut entries = own_directory().ok()?.read_dir_utf8().ok()?.flatten();
    entries.find(|entry| entry.file_name().starts_with(&name)).map(Utf8DirEntry::into_path)
}
