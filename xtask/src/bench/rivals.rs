//! Programs that wrap another one, as far as they are installed here.

use crate::command::program;
use std::process::{Command, Stdio};

/// What runs a program behind its own arguments.
const WRAPPERS: &[(&str, &[&str])] = &[
    ("bwrap", &["--dev-bind", "/", "/", "--"]),
    ("catatonit", &["--"]),
    ("dumb-init", &["--"]),
    ("tini", &["-s", "--"]),
    ("systemd-run", &["--scope", "--quiet", "--collect", "--"]),
];
/// What needs more than a command line to run a program.
const UNDRIVEN: &[&str] = &["conmon", "runc", "containerd"];

/// A program that wraps another one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rival {
    /// Its name.
    pub(super) name: &'static str,
    arguments: &'static [&'static str],
}

impl Rival {
    /// Makes the command that runs `/bin/true` through it.
    pub(super) fn command(self) -> Command {
        let mut command = program(self.name);
        command.args(self.arguments).arg("/bin/true");
        command
    }
}

/// Finds those that work here, and says of the others why they are not measured.
pub(super) fn rivals() -> (Vec<Rival>, Vec<String>) {
    let mut work = Vec::new();
    let mut skipped = Vec::new();
    for (name, arguments) in WRAPPERS.iter().copied() {
        let rival = Rival { name, arguments };
        let mut command = rival.command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.status() {
            Ok(status) if status.success() => work.push(rival),
            Ok(_) => skipped.push(format!("{name} does not run a program here")),
            Err(_) => skipped.push(format!("{name} is not installed")),
        }
    }
    skipped.push(format!("{} need a bundle or a daemon", UNDRIVEN.join(", ")));
    (work, skipped)
}
