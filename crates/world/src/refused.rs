//! Commands that are refused, and what they leave behind: nothing.

use crate::facts::{self, CgroupLeaves, Survivors};
use crate::program::{Program, Running, Said};
use camino::Utf8PathBuf;
use placement::AttemptId;
use serde_json::Value;
use std::process::{Command, Stdio};

/// How many attempts, the newest first, are looked for among all processes: more than one command
/// that is run twice makes.
const NEWEST: usize = 4;
/// What the names in an attempt directory are that go with its cleanup.
const GOES: [&str; 4] = ["home", "tmp", "control", "data"];

/// The one error of a refused command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// Its stable code.
    pub code: String,
    /// What stood against it.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl Refused {
    /// Reads the error of a command that was asked for JSON.
    ///
    /// # Panics
    /// When there was an answer, or anything but one error.
    #[track_caller]
    pub fn in_json(said: &Said) -> Self {
        assert_eq!(said.stdout, "", "{said:?}");
        assert_eq!(said.stderr.lines().count(), 1, "one error: {said:?}");
        let told: Value = serde_json::from_str(&said.stderr).expect("the error is JSON");
        let text = |field: &str| {
            let text = told["error"][field].as_str().filter(|text| !text.is_empty());
            text.unwrap_or_else(|| panic!("no {field}: {said:?}")).to_owned()
        };
        Self { code: text("code"), message: text("message"), hint: text("hint") }
    }

    /// Returns the same error as a reader is told it.
    fn in_words(&self) -> String {
        let (first, rest) = self.hint.split_at(1);
        format!("placement: {}: {}. {}{rest}.\n", self.code, self.message, first.to_uppercase())
    }
}

impl Program {
    /// Runs a command that must be refused, for a program and for a reader, and returns the one
    /// error that both are told. Nothing is left behind.
    ///
    /// # Panics
    /// When it ends otherwise, when the two differ, or when something is left.
    #[track_caller]
    pub fn refused(&self, exit_code: i32, arguments: &[&str]) -> Refused {
        self.refused_by(exit_code, arguments, |arguments| self.command(arguments.iter().copied()))
    }

    /// As [`Program::refused`], with a command made of the arguments.
    ///
    /// # Panics
    /// As there.
    #[track_caller]
    pub fn refused_by(
        &self,
        exit_code: i32,
        arguments: &[&str],
        command: impl Fn(&[&str]) -> Command,
    ) -> Refused {
        let said =
            |arguments: &[&str]| Running::start(command(arguments).stdin(Stdio::null())).said();
        let json = said(&[&["--json"], arguments].concat());
        assert_eq!(json.code, exit_code, "{arguments:?}: {json:?}");
        let refused = Refused::in_json(&json);
        let words = said(arguments);
        let expected = Said { code: exit_code, stdout: String::new(), stderr: refused.in_words() };
        assert_eq!(words, expected, "{arguments:?}");
        self.assert_nothing_is_left();
        refused
    }

    /// Returns every attempt of this owner that can be read, as `ps --all` tells it.
    ///
    /// # Panics
    /// When they cannot be listed.
    #[track_caller]
    pub fn attempts(&self) -> Vec<Value> {
        let said = self.run(["--json", "ps", "--all"]);
        assert_eq!(said.code, 0, "{said:?}");
        said.stdout.lines().map(|line| serde_json::from_str(line).expect("a row is JSON")).collect()
    }

    /// Asserts that every attempt has ended and was cleaned up, that nothing of any is left on disk,
    /// and no process of the newest ones.
    ///
    /// Looks at the root itself where it holds no store. Keys must be of this root alone: an attempt
    /// of another root with the same owner and key has the same id.
    ///
    /// # Panics
    /// When something is left.
    #[track_caller]
    pub fn assert_nothing_is_left(&self) {
        let attempts =
            if self.root().join("placement.db").is_file() { self.attempts() } else { Vec::new() };
        let mut known = Vec::new();
        for (number, attempt) in attempts.iter().enumerate() {
            let state = (&attempt["execution_state"], &attempt["cleanup_state"]);
            assert_eq!(state, (&"exited".into(), &"complete".into()), "{attempt}");
            let id = attempt["attempt_id"].as_str().and_then(|id| AttemptId::parse(id).ok());
            let id = id.expect("an attempt has an id");
            if number < NEWEST
                && let Survivors::These(pids) = facts::survivors(&id)
            {
                panic!("{pids:?} survive: {attempt}");
            }
            known.extend(attempt["home_ref"].as_str().and_then(|home| home.strip_prefix("home:")));
        }
        self.assert_no_place_is_left(&known);
    }

    #[track_caller]
    fn assert_no_place_is_left(&self, known: &[&str]) {
        for directory in facts::entries(&self.root().join("attempts")) {
            let key = directory.file_name().unwrap_or_default();
            assert!(known.contains(&key), "{directory} is no recorded attempt's");
            let left: Vec<_> = GOES.iter().filter(|name| directory.join(name).exists()).collect();
            assert!(left.is_empty(), "{directory}: {left:?}");
        }
        assert_eq!(self.temporary_left(), Vec::<Utf8PathBuf>::new());
        if let CgroupLeaves::Left(leaves) = facts::cgroup_leaves_left() {
            let is_ours = |leaf: &&Utf8PathBuf| known.iter().any(|key| leaf.as_str().contains(key));
            assert_eq!(leaves.iter().find(is_ours), None, "a leaf is left");
        }
    }
}
