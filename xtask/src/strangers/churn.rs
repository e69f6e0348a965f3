//! A lost attempt whose survivors die, and are replaced by strangers, while a forced stop looks for
//! them: between the look and the signal is where a number could be taken for a process.

use super::Count;
use crate::command::{Failure, program};
use crate::crash::decoy::Decoy;
use crate::crash::processes::reap_orphans;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{AttemptId, EvidenceKind, ExecutionState, Mechanism};
use placement_identity::ProcessIdentity;
use placement_service::{IfUncertain, StopMode};
use placement_store::Fields;
use placement_testkit::Random;
use placement_world::{World, contained};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The variable that marks every process of an attempt.
const MARKER: &str = "PLACEMENT_ATTEMPT_ID";
/// Strangers on one root.
const STRANGERS_MAX: u64 = 100;
/// How long a carrier, and a stranger after it, stays at the most: some stops of their time.
const STAY_MAX_US: u64 = 4_000;

/// What the churn came to.
#[derive(Debug, Default)]
struct Churned {
    strangers: u64,
    killed: u64,
    touched: bool,
}

/// Lets survivors come and go on a fresh root, and stops by force all the time.
pub(super) fn round(runner: &Utf8Path, wanted: u64, count: &mut Count) -> Result<(), Failure> {
    let world = World::new(runner);
    let stage = world.stage();
    let request = contained(stage.request("lost", "true"), Some(Mechanism::Subreaper));
    let id = stage.prepare(&request);
    // This process is older than any survivor, and certainly not gone: nothing of the attempt lives by
    // its number, so only the marker leads anywhere.
    let own = ProcessIdentity::this_process();
    let own =
        own.map_err(|error| Failure::new(format!("strangers: look at this process: {error}")))?;
    let gone = ProcessIdentity { start_ticks: 1, pidfd_inode: None, ..own };
    stage.claim(&id, &gone);
    stage.record(&id, &[(EvidenceKind::ChildCreating, "staged")], &Fields::default());
    let child = Fields { child: Some(gone), ..Fields::default() };
    stage.record(&id, &[(EvidenceKind::ChildIdentified, "staged")], &child);
    stage.record(&id, &[(EvidenceKind::ChildStarted, "staged")], &Fields::default());
    let service = stage.service();
    let lost = service.reconcile(&id).map(|attempt| attempt.execution_state);
    if lost != Ok(ExecutionState::Uncertain) {
        return Err(Failure::new(format!("strangers: a lost attempt is {lost:?}")));
    }
    let home = world.home(&id);
    let (is_over, stops) = (AtomicBool::new(false), AtomicU64::new(0));
    let churned = std::thread::scope(|scope| {
        let churn = scope.spawn(|| {
            let churned = churn(&id, &home, wanted.min(STRANGERS_MAX), count.churned);
            is_over.store(true, Ordering::Release);
            churned
        });
        while !is_over.load(Ordering::Acquire) {
            // What it answers is another's question.
            service.stop(&id, StopMode::Forced, IfUncertain::EndSurvivors).ok();
            stops.fetch_add(1, Ordering::Relaxed);
        }
        churn.join().expect("the churn does not fail")
    })?;
    count.churned += churned.strangers;
    count.carriers_killed += churned.killed;
    count.operations += stops.into_inner();
    let told = world.told(&id);
    drop(stage);
    drop(world);
    reap_orphans(&[]);
    if churned.touched {
        return Err(Failure::found(format!(
            "strangers: a stranger under the number of a survivor was signalled\n{told}"
        )));
    }
    Ok(())
}

fn churn(
    id: &AttemptId,
    home: &Utf8PathBuf,
    strangers: u64,
    seed: u64,
) -> Result<Churned, Failure> {
    let mut random = Random::seeded(seed);
    let mut churned = Churned::default();
    let mut stay = || std::thread::sleep(Duration::from_micros(random.below(STAY_MAX_US)));
    for _ in 0..strangers {
        let mut carrier = program("sleep");
        carrier.arg("300").env_clear().env(MARKER, id.as_str()).env("HOME", home);
        carrier.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let carrier = carrier.spawn();
        let mut carrier = carrier.map_err(|e| Failure::new(format!("run sleep: {e}")))?;
        stay();
        churned.killed += u64::from(!matches!(carrier.try_wait(), Ok(None)));
        // One that was killed takes no signal.
        carrier.kill().ok();
        carrier.wait().ok();
        if let Some(mut stranger) = Decoy::under(carrier.id(), &[]) {
            churned.strangers += 1;
            stay();
            churned.touched |= !stranger.is_untouched();
        }
    }
    Ok(churned)
}
