//! Runners of attempts, one step at a time: started, claiming, and on to their end or death.

use super::bed::{Bed, Truth};
use super::life::Lie;
use super::processes::{Stubborn, elsewhere, ended, reused};
use super::runner::{Phase, Recorded, Runner};
use crate::places::CONTROL_SOCKET;
use crate::testing::{recipient, this_process, token};
use placement_contract::{
    AttemptId, EvidenceKind, ExecutionState, Exit, Generation, Mechanism, RunnerId, Secret,
    StreamName,
};
use placement_homes::{HomeKey, LogLimits, LogWriter};
use placement_identity::ProcessIdentity;
use placement_protocol::Token;
use placement_store::{Attachment, Change, Draft, Durability, Fields, RecordError, RunnerClaim};
use placement_transport::bind;
use std::os::fd::AsFd as _;
use std::sync::{Arc, Mutex};

/// Binds a recipient as a start does, and has a runner waiting for its claim.
pub(super) fn bind_first(bed: &Bed, id: &AttemptId) {
    let Ok(Some(row)) = bed.runners.find_any(id) else { return };
    if row.state.execution != ExecutionState::Intended {
        return;
    }
    let generation = row.attachment.generation.next();
    let rows = [Draft::new(EvidenceKind::Attach, format!("generation {generation}"))];
    let attachment = Attachment { generation, recipient: Some(recipient("first")) };
    let fields = Fields { attachment: Some(attachment), ..Fields::default() };
    let secret = Secret::new(token(id).to_vec());
    if bed.runners.authority(id, &secret).is_err() {
        return;
    }
    let change = Change {
        attempt_id: id,
        expect: Some(&[ExecutionState::Intended]),
        expect_generation: Some(row.attachment.generation),
        rows: &rows,
        fields: &fields,
    };
    if bed.runners.record(&change, Durability::Normal).is_ok() {
        bed.note(format!("{id}: a runner is started for generation {generation}"));
        bed.truth(id, |truth| truth.waiting.push(generation));
    }
}

/// Records a claim for one of the runners that wait; returns whether it was had.
fn claim(bed: &Bed, id: &AttemptId, identity: ProcessIdentity) -> Option<Generation> {
    let generation = bed.truth(id, |truth| truth.waiting.pop())?;
    let runner =
        RunnerClaim { id: RunnerId::parse(&format!("runner-{generation}")).unwrap(), identity };
    let fields = Fields { runner: Some(runner), ..Fields::default() };
    let rows = [Draft::new(EvidenceKind::RunnerStarted, "runner")];
    let change = Change {
        attempt_id: id,
        expect: Some(&[ExecutionState::Intended]),
        expect_generation: Some(generation),
        rows: &rows,
        fields: &fields,
    };
    let had = match bed.runners.record(&change, Durability::Durable) {
        Ok(_) => true,
        Err(RecordError::Store(_)) => {
            bed.truth(id, |truth| truth.waiting.push(generation));
            return None;
        }
        Err(_) => false,
    };
    bed.note(format!("{id}: the runner of generation {generation} claims: {had}"));
    if bed.lie == Lie::SecondClaim || had {
        bed.truth(id, |truth| truth.claims += 1);
    }
    had.then_some(generation)
}

/// Takes the next step of an attempt's runner: of one that lives, or of one that has to claim.
pub(super) fn step_runner(bed: &Bed, id: &AttemptId) {
    let (runner, waits, claims) =
        bed.truth(id, |truth| (truth.runner.clone(), !truth.waiting.is_empty(), truth.claims));
    match runner {
        Some(runner) => go_on(bed, id, &runner),
        // Two hosts may start one attempt.
        None if waits && bed.chance(6) => bind_first(bed, id),
        None if waits => take_over(bed, id),
        None if claims == 0 => bind_first(bed, id),
        None => {}
    }
}

/// Claims, makes the directory, takes the lock and listens; or ends before that.
fn take_over(bed: &Bed, id: &AttemptId) {
    let far = bed.truth(id, |truth| truth.request.supervision.mechanism) != Some(Mechanism::Cgroup)
        && bed.chance(5);
    let mut identity = this_process();
    if far {
        identity = elsewhere(&identity);
    }
    if bed.earlier_boot.get() {
        "an earlier boot".clone_into(&mut identity.boot_id);
    }
    let dies_early = !far && bed.chance(8);
    if dies_early {
        identity = ProcessIdentity { boot_id: identity.boot_id, ..ended() };
    }
    let Some(generation) = claim(bed, id, identity) else { return };
    bed.truth(id, |truth| truth.elsewhere = far);
    if dies_early {
        return bed.note(format!("{id}: its runner ends before it has a lock"));
    }
    let row = bed.runners.find_any(id).unwrap().unwrap();
    let key = HomeKey::parse(row.home_key.as_deref().unwrap()).unwrap();
    let root = &bed.host(0).inner;
    let Ok(directory) = root.root.create_attempt(&key) else {
        return bed.broke(format!("{id}: two runners have claimed it"));
    };
    let alive = directory.lock_alive().unwrap();
    let log = LogWriter::create(&directory, LogLimits::default()).unwrap();
    let control = bind(directory.dir().as_fd(), CONTROL_SOCKET).unwrap();
    let secret = bed.runners.find_authority(id).unwrap().unwrap();
    let runner = Runner {
        store: Arc::clone(&bed.runners),
        clock: bed.clock.clone(),
        id: id.clone(),
        token: Token::from_secret(secret).unwrap(),
        directory,
        _alive: alive,
        control,
        log,
        generation,
        mechanism: row.mechanism,
        phase: Phase::Claimed,
        child: None,
        stop_requested: false,
        stubborn: bed.chance(6),
        unwritten: Vec::new(),
        committed: row.evidence_count,
    };
    let cell = Arc::new(Mutex::new(Some(runner)));
    bed.living.lock().unwrap().push(Arc::clone(&cell));
    bed.truth(id, |truth| {
        truth.runner = Some(cell);
        truth.supervised = true;
    });
}

fn go_on(bed: &Bed, id: &AttemptId, cell: &Arc<Mutex<Option<Runner>>>) {
    let mut guard = cell.lock().unwrap();
    let Some(runner) = guard.as_mut() else { return };
    match runner.phase {
        Phase::Claimed => {
            if bed.truth(id, |truth| truth.home.is_none()) {
                let home = runner.directory.create_home().unwrap();
                bed.truth(id, |truth| truth.home = Some(home));
            }
            let leaf = (runner.mechanism == Some(Mechanism::Cgroup))
                .then(|| format!("/placement-simulated-{}/{id}", std::process::id()).into());
            let fields = Fields { leaf_path: leaf, ..Fields::default() };
            let expect = Some(&[ExecutionState::Starting][..]);
            match runner.commit(EvidenceKind::ChildCreating, "simulated", &fields, expect) {
                Recorded::Yes => runner.phase = Phase::Creating,
                Recorded::Later => {}
                Recorded::Never => end_without_child(bed, id, cell, guard),
            }
        }
        Phase::Creating => identify(bed, id, cell, guard),
        Phase::Identified => {
            runner.push([Draft::new(EvidenceKind::ChildStarted, "executed")]);
            runner.phase = Phase::Started;
        }
        Phase::Started => run_child(bed, id, runner),
        Phase::Exited => {
            let mut rows = Vec::new();
            if let Some(mechanism) = runner.mechanism {
                bed.truth(id, |truth| truth.escapee_lives &= bed.lie == Lie::TreeGone);
                rows.push(Draft::tree_gone(mechanism, "no process is left"));
            }
            runner.push(rows);
            let runner = guard.take().expect("it was there");
            drop(guard);
            end(bed, id, cell, runner);
            bed.note(format!("{id}: its runner ends in order"));
        }
    }
}

type Held<'a> = std::sync::MutexGuard<'a, Option<Runner>>;

/// Records who the child is, and opens its gate.
fn identify(bed: &Bed, id: &AttemptId, cell: &Arc<Mutex<Option<Runner>>>, mut guard: Held<'_>) {
    let runner = guard.as_mut().expect("it was there");
    let far = bed.truth(id, |truth| truth.elsewhere);
    let stranger = bed.stranger.borrow().identity.clone();
    let real = !far && !bed.earlier_boot.get() && bed.chance(4);
    let child = if real {
        let started = Stubborn::start();
        let identity = started.identity.clone();
        runner.child = Some(started);
        identity
    } else if far {
        elsewhere(&stranger)
    } else if bed.chance(2) {
        reused(&stranger)
    } else {
        ended()
    };
    let boot =
        if bed.earlier_boot.get() { "an earlier boot".into() } else { child.boot_id.clone() };
    let child = ProcessIdentity { boot_id: boot, ..child };
    let init = (runner.mechanism == Some(Mechanism::PidNamespace)).then(|| ProcessIdentity {
        observer: child.observer.clone(),
        boot_id: child.boot_id.clone(),
        ..ended()
    });
    let fields = Fields { child: Some(child), init, ..Fields::default() };
    let recorded = runner.commit(EvidenceKind::ChildIdentified, "simulated", &fields, None);
    if recorded == Recorded::Later {
        // What waits behind the gate waits on; the next step makes another one here.
        runner.child = None;
        return;
    }
    if recorded == Recorded::Never || runner.stop_requested {
        runner.child = None;
        return end_without_child(bed, id, cell, guard);
    }
    runner.phase = Phase::Identified;
    bed.truth(id, |truth| {
        truth.ran = true;
        truth.leader_lives = real || far;
    });
}

fn end_without_child(
    bed: &Bed,
    id: &AttemptId,
    cell: &Arc<Mutex<Option<Runner>>>,
    mut guard: Held<'_>,
) {
    let mut runner = guard.take().expect("it was there");
    drop(guard);
    runner.push([Draft::new(EvidenceKind::ChildNotStarted, "no child was created")]);
    end(bed, id, cell, runner);
    bed.note(format!("{id}: its runner ends without a child"));
}

fn end(bed: &Bed, id: &AttemptId, cell: &Arc<Mutex<Option<Runner>>>, runner: Runner) {
    runner.end();
    // The ends of both streams.
    bed.truth(id, |truth| truth.output.extend([Vec::new(), Vec::new()]));
    forget(bed, id, cell);
}

/// Writes, acknowledges, leaves something behind, or exits.
fn run_child(bed: &Bed, id: &AttemptId, runner: &mut Runner) {
    runner.flush();
    let killed = runner.child.as_ref().is_some_and(|child| !child.is_alive());
    let choice = if killed || runner.stop_requested { 0 } else { bed.below(9) };
    match choice {
        0 => {
            let exit = match runner.child.take() {
                Some(mut child) => {
                    child.kill();
                    Exit::Signal { signal: 9, core: false }
                }
                None => Exit::Code { code: 3 },
            };
            bed.truth(id, |truth| truth.leader_lives = false);
            runner.push([Draft::exited(Some(exit))]);
            runner.phase = Phase::Exited;
        }
        1 | 3 if matches!(runner.mechanism, None | Some(Mechanism::Subreaper)) => {
            bed.truth(id, |truth| truth.escapee_lives = true);
            bed.note(format!("{id}: something leaves the group"));
        }
        2 => {
            let through = bed.truth(id, |truth| truth.output.len());
            let through = u64::try_from(bed.below(through + 1)).unwrap();
            runner.log.acknowledge(through).unwrap();
            bed.truth(id, |truth| truth.acknowledged = truth.acknowledged.max(through));
        }
        _ => {
            let bytes = format!("{id} {}", bed.below(1_000)).into_bytes();
            runner.log.append(StreamName::Stdout, &bytes).unwrap();
            bed.truth(id, |truth| truth.output.push(bytes));
        }
    }
}

/// Ends a runner as SIGKILL does: what it had not written is lost, and its child dies with it.
pub(super) fn kill_runner(bed: &Bed, id: &AttemptId) {
    let Some(cell) = bed.truth(id, |truth| truth.runner.clone()) else { return };
    let Some(mut runner) = cell.lock().unwrap().take() else { return };
    if let Some(child) = &mut runner.child {
        child.kill();
    }
    drop(runner);
    forget(bed, id, &cell);
    bed.note(format!("{id}: its runner is killed"));
}

fn forget(bed: &Bed, id: &AttemptId, cell: &Arc<Mutex<Option<Runner>>>) {
    bed.living.lock().unwrap().retain(|other| !Arc::ptr_eq(other, cell));
    bed.truth(id, |truth: &mut Truth| {
        truth.runner = None;
        truth.supervised = false;
        truth.leader_lives = false;
        // The kernel ends a PID namespace with its init, and that with the runner.
        if truth.request.supervision.mechanism == Some(Mechanism::PidNamespace) {
            truth.escapee_lives = false;
        }
    });
}
