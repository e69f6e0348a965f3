//! What came of a scenario, and how that differs from what was expected.

use super::scenario::{Expect, ExpectedExit};
use placement_contract::{CleanupState, Code, Digest, EvidenceKind, Exit};
use std::fmt::Debug;

/// Longest text that a difference shows, in characters.
const SHOWN_MAX: usize = 200;

/// What came of one scenario.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) exit: Option<Exit>,
    pub(super) refused: Option<Code>,
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
    /// The evidence: each row's kind and detail, in order.
    pub(super) evidence: Vec<(EvidenceKind, String)>,
    /// What HOME held when the first action was due.
    pub(super) home_while_running: Option<Vec<String>>,
    /// What is wrong with the record: its chain, or what it claims of the tree.
    pub(super) faults: Vec<String>,
    /// Places of the attempt that are still there though the cleanup is complete.
    pub(super) left_behind: Vec<String>,
    /// Processes of the attempt that live after the cleanup.
    pub(super) survivors: usize,
    /// Where the cleanup stands; nothing where no attempt came to be.
    pub(super) cleanup: Option<CleanupState>,
}

/// Lists every difference, each led by the field that differs.
pub(super) fn differences(expect: &Expect, outcome: &Outcome) -> Vec<String> {
    let mut found = Vec::new();
    let exit = outcome.exit.map(|exit| match exit {
        Exit::Code { code } => ExpectedExit::Code(code),
        Exit::Signal { signal, .. } => ExpectedExit::Signal(signal),
    });
    compare(&mut found, "exit", &expect.exit, &exit);
    compare(&mut found, "refused", &expect.refused, &outcome.refused);
    output_differences(&mut found, expect, outcome);
    evidence_differences(&mut found, expect, outcome);
    if expect.home_while_running.is_some() {
        let wanted = &expect.home_while_running;
        compare(&mut found, "home_while_running", wanted, &outcome.home_while_running);
    }
    compare(&mut found, "survivors", &expect.survivors, &outcome.survivors);
    compare(&mut found, "cleanup", &expect.cleanup(), &outcome.cleanup);
    compare(&mut found, "faults", &Vec::new(), &outcome.faults);
    compare(&mut found, "left_behind", &Vec::new(), &outcome.left_behind);
    found
}

fn output_differences(found: &mut Vec<String>, expect: &Expect, outcome: &Outcome) {
    let stdout = String::from_utf8_lossy(&outcome.stdout);
    if let Some(wanted) = &expect.stdout {
        compare(found, "stdout", &wanted.as_str(), &stdout.as_ref());
    }
    if let Some(wanted) = &expect.stderr {
        let stderr = String::from_utf8_lossy(&outcome.stderr);
        compare(found, "stderr", &wanted.as_str(), &stderr.as_ref());
    }
    if let Some(wanted) = expect.stdout_bytes {
        compare(found, "stdout_bytes", &wanted, &(outcome.stdout.len() as u64));
    }
    if let Some(wanted) = &expect.stdout_sha256 {
        let digest = Digest::of_bytes(&outcome.stdout);
        compare(found, "stdout_sha256", &wanted.as_str(), &digest.as_str());
    }
    if let Some(wanted) = &expect.stdout_names {
        let names = stdout.lines().filter_map(|line| Some(line.split_once('=')?.0.to_owned()));
        let mut names: Vec<String> = names.collect();
        names.sort();
        compare(found, "stdout_names", wanted, &names);
    }
}

fn evidence_differences(found: &mut Vec<String>, expect: &Expect, outcome: &Outcome) {
    let kinds: Vec<EvidenceKind> = outcome.evidence.iter().map(|(kind, _)| *kind).collect();
    let labels = || kinds.iter().map(|kind| kind.label()).collect::<Vec<_>>().join(", ");
    if let Some(wanted) = &expect.evidence
        && *wanted != kinds
    {
        let at = wanted.iter().zip(&kinds).take_while(|(wanted, seen)| wanted == seen).count();
        let wanted = wanted.get(at).map_or("the end", |kind| kind.label());
        found.push(format!("evidence: wanted {wanted} as row {}, got {}", at + 1, labels()));
    }
    if let Some(wanted) = &expect.evidence_includes {
        let mut rest = kinds.iter();
        if let Some(missing) = wanted.iter().find(|wanted| !rest.any(|kind| kind == *wanted)) {
            found
                .push(format!("evidence_includes: {missing} is not there in turn in {}", labels()));
        }
    }
    for unwanted in expect.evidence_lacks.iter().filter(|kind| kinds.contains(kind)) {
        found.push(format!("evidence_lacks: {unwanted} is there in {}", labels()));
    }
    for (kind, wanted) in &expect.details {
        match outcome.evidence.iter().find(|(seen, _)| seen == kind) {
            Some((_, detail)) if detail.contains(wanted) => {}
            Some((_, detail)) => {
                found.push(format!("details: {kind} reads \"{detail}\", not \"{wanted}\""));
            }
            None => found.push(format!("details: {kind} is not there")),
        }
    }
}

fn compare<T: PartialEq + Debug>(found: &mut Vec<String>, field: &str, wanted: &T, seen: &T) {
    if wanted != seen {
        found.push(format!("{field}: wanted {}, got {}", shown(wanted), shown(seen)));
    }
}

fn shown(value: &impl Debug) -> String {
    let text = format!("{value:?}");
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
        None => text,
    }
}

#[cfg(test)]
impl Outcome {
    /// An attempt that ended with a code, cleaned and without evidence.
    pub(super) fn ended_with(code: i32) -> Self {
        Self {
            exit: Some(Exit::Code { code }),
            cleanup: Some(CleanupState::Complete),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::scenario::Scenario;
    use super::*;

    /// Compares an outcome with `[expect]` lines that need not name the exit and the evidence.
    fn found(lines: &str, change: impl FnOnce(&mut Outcome)) -> Vec<String> {
        let evidence = if lines.contains("evidence") { "" } else { "evidence_includes = []" };
        let text = format!(
            "name = \"n\"\nprogram = \"p\"\n[expect]\nexit = {{ code = 0 }}\n{evidence}\n{lines}\n"
        );
        let expect = Scenario::parse(&text).expect("the scenario parses").expect;
        let mut outcome = Outcome::ended_with(0);
        change(&mut outcome);
        differences(&expect, &outcome)
    }

    fn seen(outcome: &mut Outcome, kinds: &[EvidenceKind]) {
        outcome.evidence = kinds.iter().map(|kind| (*kind, "code 0".to_owned())).collect();
    }

    #[test]
    fn an_equal_outcome_has_no_difference() {
        let lines = "stdout = \"a\"\nstdout_bytes = 1\nevidence = [\"child.exited\"]\n\
            stdout_sha256 = \"ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb\"\n\
            details = { \"child.exited\" = \"code 0\" }";
        let none = found(lines, |outcome| {
            outcome.stdout = b"a".to_vec();
            seen(outcome, &[EvidenceKind::ChildExited]);
        });
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn every_field_that_differs_is_named() {
        let sha = "stdout_sha256 = \"00\"";
        for (lines, field) in [
            ("stdout = \"b\"", "stdout: "),
            ("stdout_bytes = 2", "stdout_bytes: "),
            (sha, "stdout_sha256: "),
            ("stdout_names = [\"A\"]", "stdout_names: "),
            ("stderr = \"b\"", "stderr: "),
            ("home_while_running = [\"a\"]", "home_while_running: "),
            ("survivors = 1", "survivors: "),
            ("cleanup = \"pending\"", "cleanup: "),
        ] {
            let found = found(lines, |_| {});
            assert_eq!(found.len(), 1, "{lines}: {found:?}");
            assert!(found[0].starts_with(field), "{lines}: {found:?}");
        }
    }

    #[test]
    fn a_refusal_that_did_not_come_is_a_difference() {
        let found = found("refused = \"CONFLICT\"", |outcome| outcome.cleanup = None);
        assert_eq!(found, ["refused: wanted Some(Conflict), got None"]);
    }

    #[test]
    fn a_survivor_nobody_expects_is_a_difference() {
        assert_eq!(found("", |o| o.survivors = 2), ["survivors: wanted 0, got 2"]);
    }

    #[test]
    fn a_place_left_behind_is_a_difference() {
        let found = found("", |o| o.left_behind.push("HOME".to_owned()));
        assert!(found[0].starts_with("left_behind: "), "{found:?}");
    }

    #[test]
    fn a_fault_of_the_record_is_a_difference() {
        let found = found("", |o| o.faults.push("the chain is broken".to_owned()));
        assert!(found[0].starts_with("faults: "), "{found:?}");
    }

    #[test]
    fn a_signal_is_not_a_code() {
        let found = found("", |o| o.exit = Some(Exit::Signal { signal: 9, core: false }));
        assert_eq!(found, ["exit: wanted Some(Code(0)), got Some(Signal(9))"]);
    }

    #[test]
    fn evidence_is_compared_whole_and_in_order() {
        use EvidenceKind::{ChildExited, ChildStarted};
        let lines = "evidence = [\"child.started\", \"child.exited\"]";
        for (kinds, wanted) in [
            (&[ChildStarted][..], "child.exited as row 2"),
            (&[ChildExited, ChildStarted][..], "child.started as row 1"),
            (&[ChildStarted, ChildExited, ChildExited][..], "the end as row 3"),
        ] {
            let found = found(lines, |outcome| seen(outcome, kinds));
            assert!(found[0].contains(wanted), "{found:?}");
        }
    }

    #[test]
    fn included_evidence_must_come_in_turn() {
        use EvidenceKind::{ChildExited, ChildStarted, SignalTerm};
        let lines = "evidence_includes = [\"child.started\", \"child.exited\"]\n\
            evidence_lacks = [\"signal.kill\"]";
        let with = |kinds: &[EvidenceKind]| found(lines, |outcome| seen(outcome, kinds));
        assert!(with(&[ChildStarted, SignalTerm, ChildExited]).is_empty());
        assert!(with(&[ChildExited, ChildStarted])[0].starts_with("evidence_includes: "));
        let unwanted = with(&[ChildStarted, EvidenceKind::SignalKill, ChildExited]);
        assert!(unwanted[0].starts_with("evidence_lacks: "), "{unwanted:?}");
    }

    #[test]
    fn a_detail_must_hold_its_text() {
        let lines = "details = { \"leftovers.stopped\" = \"2\" }";
        assert_eq!(found(lines, |_| {}), ["details: leftovers.stopped is not there"]);
        let wrong = found(lines, |outcome| seen(outcome, &[EvidenceKind::LeftoversStopped]));
        assert!(wrong[0].contains("reads \"code 0\""), "{wrong:?}");
    }
}
