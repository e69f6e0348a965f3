//! What a scenario file may hold; a field that is not here is an error.

use crate::command::Failure;
use placement_contract::{
    CleanupScope, CleanupState, Code, EvidenceKind, Leftovers, Mechanism, OnHostLoss, Timeouts,
};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// One launch, what happens to it, and what must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Scenario {
    /// The fact that it shows.
    pub(super) name: String,
    /// The program; `{dir}` in it and in the arguments is the working directory.
    pub(super) program: String,
    #[serde(default)]
    pub(super) args: Vec<String>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Input that is sent before the input is closed; no input where absent.
    pub(super) stdin: Option<String>,
    /// Executable files that are put into the working directory first, by name.
    #[serde(default)]
    pub(super) files: BTreeMap<String, String>,
    /// The scope that cleanup must prove gone; the strongest measured one where absent.
    pub(super) require: Option<CleanupScope>,
    /// The containment; the host's choice where absent.
    pub(super) mechanism: Option<Mechanism>,
    #[serde(default)]
    pub(super) timeouts: Timeouts,
    #[serde(default)]
    pub(super) supervision: Supervised,
    /// What is done to it from outside, in order.
    #[serde(default)]
    pub(super) happens: Vec<Action>,
    pub(super) expect: Expect,
}

/// The part of the supervision that scenarios set.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Supervised {
    pub(super) on_host_loss: Option<OnHostLoss>,
    pub(super) leftovers: Option<Leftovers>,
    pub(super) deadline_ms: Option<u64>,
}

/// Something done from outside once its moment came.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Action {
    pub(super) after: Moment,
    #[serde(rename = "do")]
    pub(super) act: Act,
}

/// When something is done: `prepared`, `started`, or `output:TEXT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Moment {
    /// The intent is recorded and nothing was started.
    Prepared,
    /// The start was acknowledged.
    Started,
    /// The text came out of standard output.
    Output(String),
}

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Act {
    /// A cooperative stop is asked for.
    Stop,
    /// A forced stop is asked for.
    ForcedStop,
}

/// What must come of it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Expect {
    /// How the program ended; absent when none came to be.
    pub(super) exit: Option<ExpectedExit>,
    /// The code with which the launch is refused or the start fails.
    pub(super) refused: Option<Code>,
    /// Standard output, whole.
    pub(super) stdout: Option<String>,
    /// How many bytes came out of standard output.
    pub(super) stdout_bytes: Option<u64>,
    /// The SHA-256 of standard output, in hexadecimal.
    pub(super) stdout_sha256: Option<String>,
    /// The names of the variables that came out of standard output as `NAME=value` lines, sorted.
    pub(super) stdout_names: Option<Vec<String>>,
    /// Standard error, whole.
    pub(super) stderr: Option<String>,
    /// Every kind of the evidence, in order.
    pub(super) evidence: Option<Vec<EvidenceKind>>,
    /// Kinds that the evidence holds in this order, among others.
    pub(super) evidence_includes: Option<Vec<EvidenceKind>>,
    /// Kinds that the evidence does not hold.
    #[serde(default)]
    pub(super) evidence_lacks: Vec<EvidenceKind>,
    /// Text that the detail of the first evidence of a kind holds.
    #[serde(default)]
    pub(super) details: BTreeMap<EvidenceKind, String>,
    /// What HOME holds when the first action is due, sorted; afterwards HOME must be gone.
    pub(super) home_while_running: Option<Vec<String>>,
    /// Processes of the attempt that live after the cleanup.
    #[serde(default)]
    pub(super) survivors: usize,
    /// Where the cleanup stands in the end: complete where absent, unless the launch is refused.
    pub(super) cleanup: Option<CleanupState>,
    /// A part of the difference with which this scenario must fail.
    pub(super) must_fail: Option<String>,
}

/// How the program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum ExpectedExit {
    /// It returned a code.
    Code(i32),
    /// A signal ended it.
    Signal(i32),
}

impl Expect {
    /// Returns where the cleanup must stand; nothing where no attempt came to be.
    pub(super) fn cleanup(&self) -> Option<CleanupState> {
        let unless_refused = self.refused.is_none().then_some(CleanupState::Complete);
        self.cleanup.or(unless_refused)
    }
}

impl Scenario {
    /// Reads a scenario and refuses one that would prove nothing.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let scenario: Self = toml::from_str(text).map_err(|e| Failure::new(e.to_string()))?;
        let expect = &scenario.expect;
        if expect.exit.is_none() && expect.refused.is_none() && expect.evidence.is_none() {
            return Err(Failure::new("expects no exit, no refusal and no evidence"));
        }
        if expect.refused.is_none()
            && expect.evidence.is_none()
            && expect.evidence_includes.is_none()
        {
            return Err(Failure::new("expects nothing of the evidence"));
        }
        if expect.must_fail.as_deref() == Some("") {
            return Err(Failure::new("must_fail is empty: every failure would do"));
        }
        let prepared = |action: &Action| action.after == Moment::Prepared;
        if scenario.happens.iter().any(prepared) && !scenario.happens.iter().all(prepared) {
            return Err(Failure::new("what is stopped before its start has no later moment"));
        }
        Ok(scenario)
    }

    /// Says whether something happens to it before it is started.
    pub(super) fn is_prepared_apart(&self) -> bool {
        self.happens.iter().any(|action| action.after == Moment::Prepared)
    }

    /// Says whether it may be contained; a smaller scope takes no mechanism.
    pub(super) fn contains_a_tree(&self) -> bool {
        self.require.is_none_or(|scope| scope == CleanupScope::ContainedTree)
    }
}

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "prepared" => Ok(Self::Prepared),
            "started" => Ok(Self::Started),
            _ => match text.strip_prefix("output:") {
                Some(output) if !output.is_empty() => Ok(Self::Output(output.to_owned())),
                Some(_) | None => {
                    Err(D::Error::custom("must be `prepared`, `started` or `output:TEXT`"))
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str =
        "name = \"n\"\nprogram = \"p\"\n[expect]\nexit = { code = 0 }\nevidence = []\n";

    #[test]
    fn actions_name_their_moment() {
        let text = SMALL.replace(
            "[expect]",
            "[[happens]]\nafter = \"output:ready\"\ndo = \"forced_stop\"\n[expect]",
        );
        let wanted = Action { after: Moment::Output("ready".into()), act: Act::ForcedStop };
        assert_eq!(Scenario::parse(&text).unwrap().happens, [wanted]);
        for moment in ["output:", "later", ""] {
            assert!(Scenario::parse(&text.replace("output:ready", moment)).is_err(), "{moment}");
        }
        let both =
            text.replace("[expect]", "[[happens]]\nafter = \"prepared\"\ndo = \"stop\"\n[expect]");
        assert!(Scenario::parse(&both).is_err());
    }

    #[test]
    fn an_unknown_field_is_refused_at_every_level() {
        for (from, to) in [
            ("program", "colour = 1\nprogram"),
            ("[expect]", "[supervision]\ncolour = 1\n[expect]"),
            ("[expect]", "[timeouts]\ncolour = 1\n[expect]"),
            ("[expect]", "[expect]\ncolour = 1"),
            ("code = 0", "colour = 0"),
        ] {
            assert!(Scenario::parse(&SMALL.replace(from, to)).is_err(), "{to}");
        }
    }

    #[test]
    fn a_scenario_that_proves_nothing_is_refused() {
        for (line, reason) in [
            ("evidence = []\n", "nothing of the evidence"),
            ("exit = { code = 0 }\nevidence = []\n", "no exit"),
        ] {
            let refused = Scenario::parse(&SMALL.replace(line, "")).unwrap_err().to_string();
            assert!(refused.contains(reason), "{refused}");
        }
        assert!(Scenario::parse(&format!("{SMALL}must_fail = \"\"\n")).is_err());
    }

    #[test]
    fn an_unknown_kind_of_evidence_is_refused() {
        let text = SMALL.replace("evidence = []", "evidence = [\"child.vanished\"]");
        assert!(Scenario::parse(&text).is_err());
    }
}
