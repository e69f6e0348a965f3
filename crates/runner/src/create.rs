//! From the claim to a running program: materialize, the process behind its gate, its identity, the
//! opening of the gate.

use crate::input::{Input, Writer};
use crate::plumbing::Plumbing;
use crate::refused::NotStarted;
use crate::runner::{Also, Gate, Runner};
use crate::scribe::{Entry, NotRecorded};
use crate::stop::StopCause;
use placement_contract::{
    CleanupScope, Code, EvidenceKind, ExecutableKind, ExecutionState, Mechanism, StreamName,
    is_shortage,
};
use placement_crash::point;
use placement_executable::Measured;
use placement_homes::{HomeKey, StreamEnd};
use placement_identity::{IdentityError, ProcessIdentity};
use placement_materialize::{Inputs, Materialization, Progress, Ready, Values};
use placement_process::{
    Birthplace, CgroupLeaf, CgroupSite, Containment, ExecOutcome, ExecWay, Gated, LimitError,
    OnParentDeath, Opened, PidNamespace, Program, Spawn, Tree, spawn,
};
use placement_protocol::StopMode;
use placement_store::{Fields, RecordError};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::{Duration, Instant};

/// Time for the exec itself, after the gate is open.
const EXEC: Duration = Duration::from_secs(10);

/// A process behind its gate and the leaf in which it waits.
pub(crate) struct Created {
    gated: Gated,
    leaf: Option<CgroupLeaf>,
    stdin: Option<OwnedFd>,
    kind: ExecutableKind,
}

impl Runner {
    /// Makes the intent real, answering in between.
    pub(crate) fn materialize(&mut self) -> Result<Ready, NotStarted> {
        let values = self.take_values();
        let root = self.root.take().expect("an intent is made real once");
        let mut materialization = Materialization::new(Inputs {
            request: self.request.clone(),
            grants: std::mem::take(&mut self.grants),
            root,
            temporary_base: self.order.tmp_base.clone(),
            search_path: self.order.search_path.clone(),
            values,
            known_digests: self.known_digests.take(),
        });
        loop {
            self.turn(Some(Instant::now()));
            if self.stop.is_requested() {
                return Err(NotStarted::stopped());
            }
            match materialization.step(&self.attempt_dir) {
                Ok(Progress::Working { evidence }) => {
                    if let Some((kind, detail)) = evidence {
                        self.record(kind, detail);
                    }
                }
                Ok(Progress::Done(ready)) => return Ok(*ready),
                Err(failed) => {
                    return Err(NotStarted::new(failed.kind, failed.code, failed.detail));
                }
            }
        }
    }

    /// Creates the process behind its gate; from `child.creating` on a child may exist.
    pub(crate) fn create_child(&mut self, ready: &Ready) -> Result<Created, NotStarted> {
        let by = self.start_by();
        let site = self.site()?;
        let runner = ProcessIdentity::this_process().map_err(|_| no_containment())?;
        let leaf_name = leaf_name(self.attempt_dir.key(), &runner);
        let leaf_path = match &site {
            Some(site) => Some(site.leaf_path(&leaf_name).map_err(|_| no_containment())?),
            None => None,
        };
        let fields = Fields { leaf_path: leaf_path.map(Into::into), ..Fields::default() };
        let mut detail = self.containment_phrase().to_owned();
        if let Some(window) = &self.request.supervision.window {
            detail = format!("{detail}, in a window of {}", window.size());
        }
        let entry = Entry::row(EvidenceKind::ChildCreating, detail)
            .expecting(&[ExecutionState::Starting])
            .with(fields);
        // A stop that was recorded first has left `stopping` behind, and no child is created.
        self.commit(entry, by).map_err(|error| not_committed(&error))?;
        if self.stop.is_requested() {
            return Err(NotStarted::stopped());
        }
        let leaf = match &site {
            Some(site) => Some(self.create_leaf(site, &leaf_name)?),
            None => None,
        };
        point("runner.child.placed");
        self.spawn(ready, leaf)
    }

    /// Makes the leaf with its limits, before anything is in it.
    fn create_leaf(&self, site: &CgroupSite, name: &str) -> Result<CgroupLeaf, NotStarted> {
        let limits = &self.request.supervision.limits;
        let unsupported =
            |error: LimitError| NotStarted::plain(Code::UnsupportedCapability, error.to_string());
        site.enable(limits.controllers()).map_err(unsupported)?;
        let leaf = site.create(name).map_err(|_| no_containment())?;
        if let Err(error) = leaf.limit(limits) {
            // Empty: it never had a member. If it stays, the next reconcile removes it.
            leaf.remove().ok();
            return Err(unsupported(error));
        }
        Ok(leaf)
    }

    fn spawn(&mut self, ready: &Ready, leaf: Option<CgroupLeaf>) -> Result<Created, NotStarted> {
        let plumbing = Plumbing::of(&self.request).map_err(|_| {
            NotStarted::plain(Code::Unavailable, "the streams of the child could not be made")
        })?;
        // The last look before the process is made: what was measured is still what is there.
        ready.program.seen_again().map_err(|changed| {
            let kind = EvidenceKind::ExecutableChanged;
            NotStarted::new(kind, Code::ExecutableRefused, changed.to_string())
        })?;
        let path = CString::new(ready.program.path().as_str()).expect("a path has no NUL");
        let spawned = spawn(&Spawn {
            program: program(&ready.program, &path),
            argv: c_strings(&ready.argv),
            environment: ready.environment.assignments(),
            working_directory: ready.working_directory.as_fd(),
            stdin: plumbing.theirs.stdin(),
            stdout: plumbing.theirs.stdout(),
            stderr: plumbing.theirs.stderr(),
            birthplace: match (&leaf, self.mechanism) {
                (Some(leaf), _) => Birthplace::Leaf(leaf),
                (None, Some(Mechanism::PidNamespace)) => Birthplace::PidNamespace,
                (None, Some(Mechanism::Cgroup | Mechanism::Subreaper) | None) => Birthplace::Here,
            },
            on_parent_death: OnParentDeath::Die,
            session: plumbing.theirs.session(),
        });
        let gated = match spawned {
            Ok(gated) => gated,
            Err(error) => {
                if let Some(leaf) = leaf {
                    // Empty: it never had a member. If it stays, the next reconcile removes it.
                    leaf.remove().ok();
                }
                return Err(NotStarted::plain(Code::Unavailable, error.to_string()));
            }
        };
        point("runner.child.gated");
        self.pipes = plumbing.pipes;
        self.window = plumbing.theirs.into_window();
        if self.window.is_some() {
            // A terminal is one stream.
            let outcome = self.output.end(StreamName::Stderr, StreamEnd::Whole, Instant::now());
            self.note_spool(outcome);
        }
        let kind = ready.program.measurement().kind;
        Ok(Created { gated, leaf, stdin: plumbing.stdin, kind })
    }

    /// Commits who the process is, and opens its gate: a program never runs unrecorded.
    pub(crate) fn open_gate(&mut self, created: Created) -> Result<(), NotStarted> {
        let Created { gated, leaf, stdin, kind } = created;
        let Ok((identity, init)) = identities(&gated) else {
            drop(gated);
            self.keep_leaf(leaf);
            let phrase = "the child's identity cannot be told";
            return Err(NotStarted::behind_gate(Code::Unavailable, phrase));
        };
        let leaf_id = leaf.as_ref().map(CgroupLeaf::id);
        let mut detail = format!("pid {}, group {}", identity.pid.get(), identity.pgid.get());
        if let Some(init) = &init {
            detail = format!("{detail}, init {}", init.pid.get());
        }
        let fields = Fields { child: Some(identity), init, leaf_id, ..Fields::default() };
        let entry = Entry::row(EvidenceKind::ChildIdentified, detail).with(fields);
        let by = self.start_by();
        let committed = self.commit(entry, by);
        let refused = match committed {
            Err(error) => Some(not_committed(&error)),
            // Dropped behind its gate, the process ends without having run the program.
            Ok(_) if self.stop.is_requested() => Some(NotStarted::behind_gate(
                Code::Conflict,
                "a stop came before the gate was opened",
            )),
            Ok(_) => None,
        };
        if let Some(refused) = refused {
            drop(gated);
            self.keep_leaf(leaf);
            return Err(refused);
        }
        let opened = match self.await_exec(gated) {
            Ok(opened) => opened,
            Err(refused) => {
                self.keep_leaf(leaf);
                return Err(refused);
            }
        };
        let containment = match (leaf, opened.namespace, self.mechanism) {
            (Some(leaf), _, _) => Containment::Cgroup(leaf),
            (None, Some(namespace), _) => Containment::PidNamespace(namespace),
            (None, None, Some(Mechanism::Subreaper)) => Containment::Subreaper,
            (None, None, Some(Mechanism::Cgroup | Mechanism::PidNamespace) | None) => {
                Containment::Group
            }
        };
        self.tree = Some(Tree::new(containment, opened.leader));
        point("runner.program.executed");
        self.publish(way(kind, opened.way), stdin, by);
        Ok(())
    }

    /// Records that the program runs, and acknowledges the start.
    fn publish(&mut self, way: String, stdin: Option<OwnedFd>, by: Instant) {
        let entry = Entry::row(EvidenceKind::ChildStarted, way);
        // A concurrent stop has left `stopping` behind and wins; the row is recorded all the same.
        if self.commit(entry, by).is_err() {
            // The program must not run unrecorded: it is ended like any other.
            self.request_stop(StopMode::Forced, Duration::ZERO, StopCause::Unrecorded);
        } else if self.state == ExecutionState::Starting {
            self.state = ExecutionState::Running;
        }
        // Not earlier: what is said of the input stands behind the row of the start.
        self.open_input(stdin);
        self.deadline = self.request.supervision.deadline().map(|run| Instant::now() + run);
        self.acknowledge_start();
        point("runner.start.acknowledged");
    }

    fn await_exec(&mut self, gated: Gated) -> Result<Opened, NotStarted> {
        let by = Instant::now() + EXEC;
        self.gate = Gate::Open;
        let mut released = gated.release();
        point("runner.gate.opened");
        loop {
            released = match released.outcome() {
                ExecOutcome::Opened(opened) => return Ok(opened),
                ExecOutcome::Failed(failed) => {
                    let (kind, code) = match failed.errno.name().as_str() {
                        "ENOENT" | "ENOTDIR" => {
                            (EvidenceKind::ExecutableNotFound, Code::ExecutableNotFound)
                        }
                        name if is_shortage(name) => {
                            (EvidenceKind::EnvironmentFailed, Code::Unavailable)
                        }
                        _ => (EvidenceKind::ExecutableRefused, Code::ExecutableRefused),
                    };
                    return Err(NotStarted::not_executed(kind, code, failed.to_string()));
                }
                ExecOutcome::Pending(released) => released,
            };
            if Instant::now() >= by {
                let phrase = "the program was not executed within ten seconds";
                return Err(NotStarted::behind_gate(Code::Unavailable, phrase));
            }
            self.turn_with(Some(by), Also::Exec(&released));
        }
    }

    /// Removes the leaf of a child that never ran; its proof is recorded with the end.
    fn keep_leaf(&mut self, leaf: Option<CgroupLeaf>) {
        if let Some(leaf) = leaf
            && let Ok(gone) = leaf.remove()
        {
            self.gone_without_child = Some(gone);
        }
    }

    fn open_input(&mut self, stdin: Option<OwnedFd>) {
        let Some(stdin) = stdin else {
            self.input = Input::nothing();
            return;
        };
        self.input = Input::open(stdin);
        if let Some(text) = &self.request.launch.stdin {
            let close = self.request.launch.stdin_eof;
            self.input.queue(Writer::Launch, text.clone().into_bytes(), close);
            self.write_input();
        }
    }

    /// Divides the host's values into those that the request refers to and those that pass by
    /// policy.
    fn take_values(&mut self) -> Values {
        let refs = &self.request.environment_refs;
        let mut values = Values { passed: BTreeMap::new(), resolved: BTreeMap::new() };
        for (name, value) in std::mem::take(&mut self.order.environment.0) {
            if refs.contains_key(&name) {
                values.resolved.insert(name, value);
            } else {
                let text = String::from_utf8_lossy(value.expose()).into_owned();
                values.passed.insert(name, text);
            }
        }
        values
    }

    fn start_by(&self) -> Instant {
        Instant::now() + self.request.timeouts.start()
    }

    fn site(&self) -> Result<Option<CgroupSite>, NotStarted> {
        match self.mechanism {
            Some(Mechanism::Cgroup) => CgroupSite::find().map(Some).map_err(|_| no_containment()),
            Some(Mechanism::Subreaper | Mechanism::PidNamespace) | None => Ok(None),
        }
    }

    fn containment_phrase(&self) -> &'static str {
        match (self.request.required_cleanup, self.mechanism) {
            (CleanupScope::ContainedTree, Some(Mechanism::Cgroup)) => "in a cgroup leaf",
            (CleanupScope::ContainedTree, Some(Mechanism::Subreaper)) => "under a subreaper",
            (CleanupScope::ContainedTree, Some(Mechanism::PidNamespace)) => "in a PID namespace",
            (CleanupScope::ContainedTree, None) | (CleanupScope::ProcessGroup, _) => {
                "in a process group"
            }
            (CleanupScope::DirectProcess, _) => "by itself",
        }
    }
}

/// Reads who the process is, and its init where it has one.
fn identities(gated: &Gated) -> Result<(ProcessIdentity, Option<ProcessIdentity>), IdentityError> {
    let init = gated.namespace().map(PidNamespace::identity).transpose()?;
    Ok((gated.identity()?, init))
}

/// An ELF file runs through the descriptor that it was measured on; anything else by its path.
fn program<'a>(measured: &'a Measured, path: &'a CStr) -> Program<'a> {
    match measured.measurement().kind {
        ExecutableKind::Elf => {
            Program::Descriptor { file: measured.descriptor(), fallback: Some(path) }
        }
        ExecutableKind::Script | ExecutableKind::Other => Program::Path(path),
    }
}

/// Words the way that [`program`] gave, or the one that was fallen back to.
fn way(kind: ExecutableKind, way: ExecWay) -> String {
    match (kind, way) {
        (ExecutableKind::Elf, ExecWay::AsGiven) => {
            "executed through the descriptor it was measured on".to_owned()
        }
        (ExecutableKind::Script | ExecutableKind::Other, ExecWay::AsGiven) => {
            "executed by its path, seen again as measured".to_owned()
        }
        (
            ExecutableKind::Elf | ExecutableKind::Script | ExecutableKind::Other,
            ExecWay::FellBack(errno),
        ) => format!("executed by its path after {errno}"),
    }
}

fn c_strings(texts: &[String]) -> Vec<CString> {
    texts
        .iter()
        .map(|text| CString::new(text.as_str()).expect("an argument was decoded without NUL"))
        .collect()
}

/// Names the leaf of an attempt's only child.
///
/// Another root may have an attempt of the same name, and another PID namespace a runner of the same
/// number: whoever found a leaf of both under its own path would end a stranger's tree.
fn leaf_name(key: &HomeKey, runner: &ProcessIdentity) -> String {
    let (pid, start_ticks) = (runner.pid.get(), runner.start_ticks);
    format!("placement-{key}-{pid}-{}", runner.pidfd_inode.unwrap_or(start_ticks))
}

fn no_containment() -> NotStarted {
    NotStarted::plain(Code::Unavailable, "the containment could not be made")
}

fn not_committed(error: &NotRecorded) -> NotStarted {
    match error {
        NotRecorded::Record(error) if matches!(**error, RecordError::Expected { .. }) => {
            NotStarted::stopped()
        }
        NotRecorded::Record(_) | NotRecorded::Open(_) | NotRecorded::GivenUp => {
            NotStarted::plain(Code::Storage, "the store could not be written")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use placement_contract::{AttemptId, OwnerId};

    fn key(attempt: &str) -> HomeKey {
        let owner = OwnerId::parse("local:1").unwrap();
        HomeKey::of(&owner, &AttemptId::parse(attempt).unwrap())
    }

    fn runner() -> ProcessIdentity {
        ProcessIdentity { pidfd_inode: Some(77), ..ProcessIdentity::this_process().unwrap() }
    }

    #[test]
    fn a_leaf_is_named_by_what_no_other_process_of_the_boot_has() {
        let ours = leaf_name(&key("a"), &runner());
        assert!(ours.ends_with("-77"), "{ours}");
        // As seen from two PID namespaces: one number, started in one hundredth of a second.
        let other = ProcessIdentity { pidfd_inode: Some(78), ..runner() };
        assert_ne!(leaf_name(&key("a"), &other), ours);
        assert_ne!(leaf_name(&key("b"), &runner()), ours);
        assert_eq!(leaf_name(&key("a"), &runner()), ours);
    }

    #[test]
    fn where_a_pidfd_has_no_inode_of_its_own_the_start_names_the_leaf() {
        let early = ProcessIdentity { pidfd_inode: None, start_ticks: 5, ..runner() };
        let late = ProcessIdentity { start_ticks: 6, ..early.clone() };
        assert!(leaf_name(&key("a"), &early).ends_with("-5"));
        assert_ne!(leaf_name(&key("a"), &early), leaf_name(&key("a"), &late));
    }
}
