//! `real-check`: real clients from npm, run through placement against the stub model.
//!
//! Claude Code is told to call its shell tool twice. The first call starts a sleep in a session of
//! its own that holds no pipe; the second one waits until this check has seen that sleep. So the
//! sleep certainly lives when the turn ends, and its end shows something.

use crate::command::{Failure, program, run as run_command, shown};
use crate::proving_ground::{ProvingGround, end, told};
use crate::stub_model;
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use placement::{
    AttemptHandle, CleanupScope, CleanupState, EvidenceKind, Exit, Launch, Mechanism, StreamName,
};
use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use std::{fs, thread};

/// The package of Claude Code.
const CLAUDE_PACKAGE: &str = "@anthropic-ai/claude-code";
/// How long npm may wait for an answer before the client is skipped.
const NPM_PATIENCE: [&str; 2] = ["--fetch-retries=1", "--fetch-timeout=60000"];
/// What the tool is told to do, and the answer that follows.
const PROMPT: &str = "RUN:setsid sleep 300 </dev/null >/dev/null 2>&1 & echo started\n\
    RUN:until [ -e seen ]; do sleep 0.1; done; echo seen\n\
    SAY:the turn is over";
/// The final answer, as it must come out of the client.
const ANSWER: &str = "the turn is over";
/// The words of the process that outlives the turn.
const TOOL: &[u8] = b"sleep\x00300\x00";
/// The file in the working directory that ends the second call.
const SEEN: &str = "seen";
/// Longest turn; a good one takes seconds.
const TURN_MAX: Duration = Duration::from_mins(2);
/// Time between two looks for the tool's process, which no event tells.
const LOOK: Duration = Duration::from_millis(20);
/// The mechanisms under which each client runs.
const MECHANISMS: [Mechanism; 2] = [Mechanism::Cgroup, Mechanism::Subreaper];

/// What was seen of one client.
#[derive(Debug, Default)]
struct Observed {
    /// Everything that came out of standard output.
    stdout: String,
    /// Everything that came out of standard error.
    stderr: String,
    /// How it ended, if that was observed.
    exit: Option<Exit>,
    /// Whether the tool's process was seen while the client ran.
    tool_seen: bool,
    /// How many entries HOME had then.
    home_entries: usize,
    /// Processes of the attempt after the cleanup.
    survivors: usize,
    /// Where the cleanup stands.
    cleanup: Option<CleanupState>,
    /// What the evidence says of the leftovers.
    leftovers: Option<String>,
    /// Places that are still there after the cleanup.
    places_left: Vec<String>,
}

/// Runs every client that can be had, and fails when one misbehaves or none ran.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let cache = workspace.target_directory.join("real-check");
    let client = match claude(&cache) {
        Ok(client) => client,
        Err(failure) => {
            println!("claude: skipped: {failure}");
            return Err(nothing_shown());
        }
    };
    let model = stub_model::start()?;
    let mut ran = 0;
    for mechanism in MECHANISMS {
        let ground = ProvingGround::open(None)?;
        let measured = ground.host().capabilities();
        let measured = measured.map_err(|error| told("measure this machine", &error))?;
        if !measured.report.of(mechanism).is_some_and(|report| report.available) {
            println!("claude ({mechanism}): skipped: {mechanism} does not work here");
            continue;
        }
        let observed = launch(&client, model, mechanism, &ground)?;
        let findings = judge(&observed);
        if !findings.is_empty() {
            let found = findings.join("; ");
            let said = format!("{}{}", observed.stdout, observed.stderr);
            return Err(Failure::new(format!("claude ({mechanism}): {found}\n{said}")));
        }
        println!("claude ({mechanism}): passed");
        ran += 1;
    }
    println!("real-check: {ran} runs");
    if ran == 0 { Err(nothing_shown()) } else { Ok(()) }
}

fn nothing_shown() -> Failure {
    Failure::nothing_shown("real-check: no client ran, so nothing is shown")
}

/// Installs Claude Code below the cache unless it is there.
fn claude(cache: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let folder = cache.join("claude");
    let client = folder.join("node_modules/.bin/claude");
    if client.exists() {
        return Ok(client);
    }
    fs::create_dir_all(&folder).map_err(|error| Failure::io("make", &folder, &error))?;
    let mut npm = program("npm");
    npm.args(["install", "--no-audit", "--no-fund"]).args(NPM_PATIENCE);
    npm.args(["--prefix", folder.as_str(), CLAUDE_PACKAGE]);
    println!("real-check: {}", shown(&npm));
    run_command(&mut npm)?;
    if client.exists() { Ok(client) } else { Err(Failure::new(format!("npm made no {client}"))) }
}

/// The arguments of one turn.
fn arguments() -> [&'static str; 6] {
    let format = ["--output-format", "stream-json", "--verbose"];
    ["-p", format[0], format[1], format[2], "--dangerously-skip-permissions", PROMPT]
}

/// The environment of one turn: the stub as the model, and nothing that asks the network.
fn environment(model: SocketAddr) -> Vec<(&'static str, String)> {
    let mut variables = vec![
        ("ANTHROPIC_BASE_URL", format!("http://{model}")),
        ("ANTHROPIC_API_KEY", "sk-ant-dummy-0000".to_owned()),
        ("TERM", "xterm-256color".to_owned()),
        ("LANG", "C.UTF-8".to_owned()),
        ("SHELL", "/bin/bash".to_owned()),
    ];
    for flag in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_AUTOUPDATER",
        "DISABLE_TELEMETRY",
        "DISABLE_ERROR_REPORTING",
        "IS_SANDBOX",
    ] {
        variables.push((flag, "1".to_owned()));
    }
    variables
}

/// Runs one turn through the facade.
fn launch(
    client: &Utf8Path,
    model: SocketAddr,
    mechanism: Mechanism,
    ground: &ProvingGround,
) -> Result<Observed, Failure> {
    let mut launch = Launch::program(client.as_str())
        .args(arguments())
        .write(ground.work())
        .require(CleanupScope::ContainedTree)
        .mechanism(mechanism)
        .deadline(TURN_MAX);
    for (name, value) in environment(model) {
        launch = launch.env(name, value);
    }
    let attempt = ground.host().launch(launch).map_err(|error| told("launch claude", &error))?;
    let mut observed = Observed::default();
    let followed = follow(&attempt, ground, &mut observed);
    if followed.is_err() {
        // Nobody waits for it any more; one that has ended needs no stop.
        attempt.stop_forced().ok();
    }
    let ended = attempt.finish().map_err(|error| told("finish", &error));
    followed?;
    let ended = ended?;
    let living = ProvingGround::living(ended.attempt());
    end(&living);
    observed.exit = ended.exit();
    observed.survivors = living.len();
    observed.cleanup = Some(ended.attempt().cleanup_state);
    observed.leftovers = ended.first(EvidenceKind::LeftoversStopped).map(|row| row.detail.clone());
    observed.places_left = ground.places_left(ended.attempt())?;
    Ok(observed)
}

/// Reads the output to its end, and looks for the tool's process meanwhile.
fn follow(
    attempt: &AttemptHandle,
    ground: &ProvingGround,
    observed: &mut Observed,
) -> Result<(), Failure> {
    let recorded = attempt.attempt().map_err(|error| told("read the attempt", &error))?;
    let (stdout, stderr) = thread::scope(|scope| {
        let reader = scope.spawn(|| read_output(attempt));
        while !observed.tool_seen && !reader.is_finished() {
            observed.tool_seen =
                ProvingGround::living(&recorded).iter().any(|process| is_tool(process.pid.get()));
            thread::sleep(LOOK);
        }
        let released = release(observed, ground, &recorded);
        let output = reader.join().expect("a reader does not panic");
        released.and(output)
    })?;
    observed.stdout = stdout;
    observed.stderr = stderr;
    Ok(())
}

/// Notes what HOME holds, and ends the call that waits for that.
fn release(
    observed: &mut Observed,
    ground: &ProvingGround,
    recorded: &placement::Attempt,
) -> Result<(), Failure> {
    let noted = ground.home_entries(recorded).map(|entries| observed.home_entries = entries.len());
    let seen = ground.work().join(SEEN);
    fs::write(&seen, "").map_err(|error| Failure::io("write", &seen, &error))?;
    noted
}

fn read_output(attempt: &AttemptHandle) -> Result<(String, String), Failure> {
    let (mut stdout, mut stderr) = (String::new(), String::new());
    for piece in attempt.text() {
        let piece = piece.map_err(|error| told("read the output", &error))?;
        match piece.stream() {
            StreamName::Stdout => stdout.push_str(piece.text()),
            StreamName::Stderr => stderr.push_str(piece.text()),
        }
    }
    Ok((stdout, stderr))
}

fn is_tool(pid: u32) -> bool {
    fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == TOOL)
}

/// Lists what is not as it must be.
fn judge(observed: &Observed) -> Vec<String> {
    let mut findings = Vec::new();
    if !observed.stdout.lines().any(is_result) {
        findings.push("no result line with the answer came out".to_owned());
    }
    if observed.exit != Some(Exit::Code { code: 0 }) {
        findings.push(format!("the exit is {:?} and must be code 0", observed.exit));
    }
    if !observed.tool_seen {
        findings.push("the tool's process was never seen, so its end shows nothing".to_owned());
    }
    if observed.home_entries == 0 {
        findings.push("HOME held nothing while it ran, so its end shows nothing".to_owned());
    }
    if observed.leftovers.is_none() {
        findings.push("no leftover was recorded as stopped".to_owned());
    }
    if observed.survivors > 0 {
        findings.push(format!("{} processes survived", observed.survivors));
    }
    if observed.cleanup != Some(CleanupState::Complete) {
        findings.push(format!("the cleanup is {:?}", observed.cleanup));
    }
    if !observed.places_left.is_empty() {
        findings.push(format!("{} is still there", observed.places_left.join(" and ")));
    }
    findings
}

/// Says whether a line is the turn's result and carries the answer.
fn is_result(line: &str) -> bool {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["type"] == "result" && line["is_error"] == false && line["result"] == ANSWER
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Observed {
        Observed {
            stdout: json!({"type": "result", "is_error": false, "result": ANSWER}).to_string(),
            stderr: String::new(),
            exit: Some(Exit::Code { code: 0 }),
            tool_seen: true,
            home_entries: 2,
            survivors: 0,
            cleanup: Some(CleanupState::Complete),
            leftovers: Some("1 process, by SIGTERM".to_owned()),
            places_left: Vec::new(),
        }
    }

    #[test]
    fn a_clean_turn_passes() {
        assert!(judge(&good()).is_empty());
    }

    #[test]
    fn each_misbehaviour_is_found() {
        for (broken, part) in [
            (Observed { stdout: String::new(), ..good() }, "answer"),
            (Observed { exit: None, ..good() }, "exit"),
            (Observed { exit: Some(Exit::Code { code: 1 }), ..good() }, "exit"),
            (Observed { tool_seen: false, ..good() }, "never seen"),
            (Observed { home_entries: 0, ..good() }, "HOME held nothing"),
            (Observed { leftovers: None, ..good() }, "no leftover"),
            (Observed { survivors: 1, ..good() }, "survived"),
            (Observed { cleanup: Some(CleanupState::Pending), ..good() }, "cleanup"),
            (Observed { places_left: vec!["HOME".to_owned()], ..good() }, "HOME is still there"),
        ] {
            let findings = judge(&broken);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains(part), "{findings:?}");
        }
    }

    #[test]
    fn an_error_or_another_answer_is_no_result() {
        let line = |error: bool, text: &str| {
            json!({"type": "result", "is_error": error, "result": text}).to_string()
        };
        assert!(is_result(&line(false, ANSWER)));
        assert!(!is_result(&line(true, ANSWER)));
        assert!(!is_result(&line(false, "something else")));
        assert!(!is_result("no JSON"));
    }
}
