//! Counting how often a program waits for the disk.

use std::process::{Command, Stdio};

/// The path whose removal, which fails, ends a round of a program that is counted.
pub const MARK: &str = "/nonexistent/end-of-round";

/// What was counted in one round.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Round {
    /// Calls of `fsync(2)` and its kin before the last program of the round was executed.
    pub syncs_until_program: usize,
    /// All of them.
    pub syncs: usize,
}

/// Runs a command, with everything that it starts, under strace, and counts its syncs: one round up
/// to each removal of [`MARK`].
///
/// # Errors
/// Says why nothing could be counted: strace is missing or may not trace here.
///
/// # Panics
/// When the command fails.
#[track_caller]
pub fn rounds(command: &Command) -> Result<Vec<Round>, String> {
    let log = tempfile::NamedTempFile::new().expect("the temporary directory is writable");
    let mut strace = strace();
    strace.args(["-f", "-qq", "-o"]).arg(log.path());
    strace.args(["-e", "signal=none", "-e"]);
    strace.arg("trace=fsync,fdatasync,sync_file_range,msync,execve,execveat,unlink,unlinkat");
    strace.arg(command.get_program()).args(command.get_args());
    if let Some(directory) = command.get_current_dir() {
        strace.current_dir(directory);
    }
    let output = strace.stdin(Stdio::null()).output();
    let output = output.map_err(|_| "strace is not installed".to_owned())?;
    let text = std::fs::read_to_string(log.path()).expect("strace wrote text");
    if text.is_empty() {
        return Err("strace may not trace here".to_owned());
    }
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(counted(&text))
}

#[expect(clippy::disallowed_methods, reason = "testkit imports nothing of ours")]
fn strace() -> Command {
    Command::new("strace")
}

fn counted(text: &str) -> Vec<Round> {
    let mut rounds = Vec::new();
    let mut round = Round::default();
    for line in text.lines() {
        let call = line.split_once(' ').map_or("", |(_, call)| call.trim_start());
        if call.starts_with("exec") {
            // The mark is among the arguments of the program that is counted.
            round.syncs_until_program = round.syncs;
        } else if call.contains(MARK) {
            rounds.push(std::mem::take(&mut round));
        } else if !call.starts_with("unlink") && !call.starts_with('<') {
            round.syncs += 1;
        }
    }
    rounds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_round_ends_with_its_mark() {
        let text = "7 fdatasync(3) = 0\n\
            8 execve(\"/bin/runner\", [\"x\"], 0x7f /* 0 vars */) = 0\n\
            8  fdatasync(4 <unfinished ...>\n7 unlinkat(9, \"socket\", 0) = 0\n\
            8 <... fdatasync resumed>) = 0\n\
            9 execveat(5, \"\", [\"true\"], 0x7f /* 2 vars */, AT_EMPTY_PATH) = 0\n\
            8 fsync(4) = 0\n7 unlink(\"/nonexistent/end-of-round\") = -1 ENOENT (No such file)\n\
            7 fdatasync(3) = 0\n";
        assert_eq!(counted(text), [Round { syncs_until_program: 2, syncs: 3 }]);
    }
}
