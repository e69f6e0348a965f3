//! One program under a limit, and what must hold of it then and afterwards.

use placement_world::{Program, Running, Said, through};
use std::process::{Command, Stdio};

/// How the child ends, as nothing else does.
const CHILD: i32 = 43;
/// The program could not be executed.
const NOT_EXECUTED: i32 = 126;
/// Refused or failed before there was a child; uncertain.
const REFUSED: i32 = 125;
const UNCERTAIN: i32 = 120;

/// What may end a program that its limit keeps from coming to itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Death {
    /// Nothing: a limit of this kind is answered for.
    None,
    /// The want of memory, which nobody can answer for.
    OutOfMemory,
}

/// How many launches came to what.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    /// The limit was too low for the loader, the shell or the wrapper: no word of placement.
    pub(crate) not_begun: usize,
    pub(crate) refused: usize,
    pub(crate) ran: usize,
    pub(crate) uncertain: usize,
    pub(crate) died: usize,
}

/// Launches under limits, each with a key of its own, on one root.
pub(crate) struct Bed<'a> {
    pub(crate) program: &'a Program,
    /// Wraps every command, limited or not.
    pub(crate) wrapper: Vec<String>,
    pub(crate) death: Death,
    pub(crate) outcomes: Outcomes,
    pub(crate) launches: usize,
}

impl<'a> Bed<'a> {
    pub(crate) fn of(program: &'a Program, death: Death) -> Self {
        let outcomes = Outcomes::default();
        Self { program, wrapper: Vec::new(), death, outcomes, launches: 0 }
    }

    /// Launches under a limit, which words that run another program set, and asserts all that must hold.
    #[track_caller]
    pub(crate) fn launch_under(&mut self, limit: &[&str]) {
        let name = format!("launch-{}", self.launches);
        self.launches += 1;
        let said = self.say(limit, &run(&name));
        let ran = self.children(&name);
        let told = format!("under {limit:?}: {said:?}, the child ran {ran} times");
        assert!(ran <= 1, "{told}");
        assert!(!said.stderr.contains("panicked"), "{told}");
        match said.code {
            _ if is_no_word_of_ours(&said) => {
                assert_eq!(ran, 0, "{told}");
                self.outcomes.not_begun += 1;
            }
            CHILD => {
                assert_eq!(ran, 1, "{told}");
                self.outcomes.ran += 1;
            }
            REFUSED => {
                let codes = ["placement: UNAVAILABLE: ", "placement: STORAGE: "];
                assert!(codes.iter().any(|code| said.stderr.contains(code)), "{told}");
                assert_eq!(ran, 0, "{told}");
                self.outcomes.refused += 1;
            }
            UNCERTAIN => self.outcomes.uncertain += 1,
            _ if self.death == Death::OutOfMemory => self.outcomes.died += 1,
            _ => panic!("{told}"),
        }
        self.settle(&name, &told);
    }

    /// Without the limit: what was begun is settled, and the key gives what there is.
    #[track_caller]
    fn settle(&self, name: &str, told: &str) {
        let before = self.children(name);
        let settled = self.say(&[], &["reconcile", "--all"]);
        assert_eq!(settled.code, 0, "{told}, then {settled:?}");
        let again = self.say(&[], &run(name));
        let ran = self.children(name);
        let told = format!("{told}, then {again:?} and {ran} times");
        match again.code {
            CHILD => assert_eq!(ran, 1, "{told}"),
            // There was an attempt, and it is decided that no child was.
            REFUSED | NOT_EXECUTED => assert_eq!((before, ran), (0, 0), "{told}"),
            _ => panic!("{told}"),
        }
        assert!(!again.stderr.contains("panicked"), "{told}");
    }

    /// Runs a command, under a limit if there is one.
    #[track_caller]
    pub(crate) fn say(&self, limit: &[&str], arguments: &[&str]) -> Said {
        let mut command = self.program.command(arguments.iter().copied());
        if !limit.is_empty() {
            command = through(limit, &command);
        }
        if !self.wrapper.is_empty() {
            let wrapper: Vec<&str> = self.wrapper.iter().map(String::as_str).collect();
            command = through(&wrapper, &command);
        }
        said(&mut command)
    }

    fn children(&self, name: &str) -> usize {
        let path = self.program.work().join(format!("children-{name}"));
        std::fs::read_to_string(path).map_or(0, |text| text.lines().count())
    }
}

fn run(name: &str) -> [&str; 9] {
    let script = "echo x >> \"children-$1\"; exit 43";
    ["run", "--key", name, "--", "/bin/sh", "-c", script, "sh", name]
}

fn said(command: &mut Command) -> Said {
    Running::start(command.stdin(Stdio::null())).said()
}

/// What could not be loaded says so itself; so do the programs that set the limit.
fn is_no_word_of_ours(said: &Said) -> bool {
    let loader = "error while loading shared libraries";
    said.stderr.contains(loader)
        || ["sh: ", "/bin/sh: ", "prlimit: "].iter().any(|it| said.stderr.starts_with(it))
}

/// Makes the words by which a shell sets a limit of its own (`ulimit`) and becomes the program.
pub(crate) fn ulimit(limit: &str) -> [String; 4] {
    let script = format!("ulimit {limit} || exit 126; exec \"$@\"");
    ["/bin/sh".to_owned(), "-c".to_owned(), script, "sh".to_owned()]
}
