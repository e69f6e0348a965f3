//! One run of the fuzzer for one target.

use super::program::Program;
use crate::command::{Failure, program, run as run_command, shown};
use crate::scratch::Scratch;
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use placement_fuzz::Target;
use std::fmt;
use std::fs::{self, File};
use std::process::{Command, Stdio};
use std::time::Duration;

/// How long one input may take, in seconds: the slowest one takes milliseconds.
const TIMEOUT_S: u32 = 5;
/// What the whole fuzzer may have resident, its own corpus and tables included.
const RESIDENT_MB: u32 = 1_024;
/// Inputs that are kept for a target, and the size of one, so that the repository stays small.
const KEPT_MAX: usize = 24;
const KEPT_BYTES_MAX: u64 = 8 * 1024;
/// How the names begin of inputs that were put there by hand: they stay.
const BY_HAND: &str = "found-";
/// So many lines of what the fuzzer said at its end show a fault.
const SHOWN_LINES: usize = 25;

/// A target with its corpus and what it starts from.
#[derive(Debug)]
pub(super) struct Run {
    name: &'static str,
    program: Utf8PathBuf,
    findings: Utf8PathBuf,
    /// Where new inputs go, and everything that the target writes.
    room: Utf8PathBuf,
    /// Inputs of the decoder's own writing.
    seeds: Utf8PathBuf,
    /// Inputs that are kept in the repository.
    kept: Option<Utf8PathBuf>,
}

/// What a run came to.
#[derive(Debug)]
pub(super) enum Found {
    /// Everything held.
    Nothing(Fed),
    /// Something did not.
    Fault(Fault),
}

/// How much was fed.
#[derive(Debug)]
pub(super) struct Fed {
    inputs: u64,
    edges: u64,
}

/// How a fault showed itself.
#[derive(Debug)]
pub(super) struct Fault {
    fed: Fed,
    output: String,
    command: String,
}

impl Run {
    /// Prepares a run that starts from the kept corpus and the target's own seeds.
    pub(super) fn of(
        target: &Target,
        program: &Program,
        workspace: &Workspace,
        scratch: &Scratch,
    ) -> Result<Self, Failure> {
        let kept = workspace.root.join("fixtures/corpora").join(target.name);
        fs::create_dir_all(&kept).map_err(|error| Failure::io("make", &kept, &error))?;
        Ok(Self { kept: Some(kept), ..Self::without_corpus(target, program, scratch)? })
    }

    /// Prepares a run that starts from the target's own seeds alone.
    pub(super) fn without_corpus(
        target: &Target,
        program: &Program,
        scratch: &Scratch,
    ) -> Result<Self, Failure> {
        let room = scratch.path().join(target.name);
        let seeds = room.join("seeds");
        for directory in [&seeds, &room.join("new"), &room.join("tmp")] {
            fs::create_dir_all(directory).map_err(|e| Failure::io("make", directory, &e))?;
        }
        for (number, seed) in target.seeds().iter().enumerate() {
            let path = seeds.join(number.to_string());
            fs::write(&path, seed).map_err(|error| Failure::io("write", &path, &error))?;
        }
        Ok(Self {
            name: target.name,
            program: program.for_target(target.name)?,
            findings: program.findings.clone(),
            room,
            seeds,
            kept: None,
        })
    }

    /// Feeds the target for a time; the same inputs come again where the start is the same.
    pub(super) fn feed(&self, time: Duration, same_start: bool) -> Result<Found, Failure> {
        let mut command = self.command();
        command.arg(format!("-max_total_time={}", time.as_secs()));
        command.arg(format!("-seed={}", u8::from(same_start)));
        command.arg("-print_final_stats=1");
        command.arg(format!("-artifact_prefix={}/{}-", self.findings, self.name));
        command.arg(self.room.join("new")).arg(&self.seeds).args(&self.kept);
        let log = self.room.join("log");
        let written = File::create(&log).map_err(|error| Failure::io("make", &log, &error))?;
        let status =
            command.stdout(Stdio::null()).stderr(written).status().map_err(|error| {
                Failure::new(format!("cannot run {}: {error}", shown(&command)))
            })?;
        let output = fs::read(&log).map_err(|error| Failure::io("read", &log, &error))?;
        let output = String::from_utf8_lossy(&output).into_owned();
        let fed = Fed::told_by(&output);
        if status.success() && fed.inputs > 0 {
            return Ok(Found::Nothing(fed));
        }
        Ok(Found::Fault(Fault { fed, output, command: shown(&command) }))
    }

    /// Replaces the kept corpus by the fewest inputs that reach all that any of them does, at most 24.
    pub(super) fn keep(&self) -> Result<String, Failure> {
        let Some(kept) = &self.kept else { return Ok("it has no corpus".to_owned()) };
        let fewest = self.room.join("fewest");
        fs::create_dir_all(&fewest).map_err(|error| Failure::io("make", &fewest, &error))?;
        let mut command = self.command();
        // By the edges alone: how often each is passed would keep many times as many.
        command.args(["-set_cover_merge=1", "-use_counters=0"]);
        command.arg(&fewest).arg(self.room.join("new")).arg(&self.seeds).arg(kept);
        run_command(command.stdout(Stdio::null()).stderr(Stdio::null()))?;
        replace(kept, &fewest)
    }

    fn command(&self) -> Command {
        let mut command = program(&self.program);
        command.env("TMPDIR", self.room.join("tmp"));
        command.arg(format!("-timeout={TIMEOUT_S}")).arg(format!("-rss_limit_mb={RESIDENT_MB}"));
        command
    }
}

/// Puts the files of one directory in the place of another's; of too many the larger ones, which reach
/// more each.
fn replace(kept: &Utf8Path, by: &Utf8Path) -> Result<String, Failure> {
    let list = |directory: &Utf8Path| -> Result<Vec<_>, Failure> {
        let entries = directory.read_dir_utf8().map_err(|e| Failure::io("list", directory, &e))?;
        Ok(entries.flatten().map(camino::Utf8DirEntry::into_path).collect())
    };
    let by_hand = |file: &Utf8PathBuf| file.file_name().is_some_and(|it| it.starts_with(BY_HAND));
    for old in list(kept)?.into_iter().filter(|file| !by_hand(file)) {
        fs::remove_file(&old).map_err(|error| Failure::io("remove", &old, &error))?;
    }
    let size = |file: &Utf8Path| fs::metadata(file).map_or(0, |metadata| metadata.len());
    let mut files = list(by)?;
    let found = files.len();
    files.retain(|file| size(file) <= KEPT_BYTES_MAX && !by_hand(file));
    files.sort_by_key(|file| std::cmp::Reverse(size(file)));
    files.truncate(KEPT_MAX);
    let mut bytes = 0;
    for file in &files {
        let to = kept.join(file.file_name().unwrap_or_default());
        bytes += fs::copy(file, &to).map_err(|error| Failure::io("copy", &to, &error))?;
    }
    Ok(format!("{} of {found} inputs are kept, {bytes} bytes", files.len()))
}

impl Fed {
    /// Reads the last counts that the fuzzer wrote.
    fn told_by(output: &str) -> Self {
        let last = |before: &str| {
            let (_, rest) = output.rsplit_once(before)?;
            rest.split_whitespace().next()?.parse().ok()
        };
        Self {
            inputs: last("stat::number_of_executed_units:").unwrap_or_default(),
            edges: last(" cov: ").unwrap_or_default(),
        }
    }
}

impl Fault {
    /// Says whether the fuzzer said this.
    pub(super) fn said(&self, text: &str) -> bool {
        self.output.contains(text)
    }

    /// Returns how much was fed before.
    pub(super) const fn fed(&self) -> &Fed {
        &self.fed
    }
}

impl fmt::Display for Fed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} inputs, {} edges", self.inputs, self.edges)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<&str> = self.output.lines().collect();
        let last = &lines[lines.len().saturating_sub(SHOWN_LINES)..];
        write!(
            formatter,
            "{}\n  by: {}\n  The input is in the file that is named above: put it into \
             fixtures/corpora, and `cargo test -p placement-fuzz` feeds it again.",
            last.join("\n    "),
            self.command
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_counts_are_read() {
        let output = "#2 INITED cov: 7 ft: 9\n#64 NEW cov: 12 ft: 20\n\
                      stat::number_of_executed_units: 4096\nstat::average_exec_per_sec: 10\n";
        let fed = Fed::told_by(output);
        assert_eq!((fed.inputs, fed.edges), (4_096, 12));
        assert_eq!(Fed::told_by("nothing").inputs, 0);
    }
}
