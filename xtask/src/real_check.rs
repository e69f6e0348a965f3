//! `real-check`: real clients from npm, run through placement against the stub model.

use crate::command::{Failure, program, run as run_command, shown};
use crate::stub_model;
use crate::workspace::Workspace;
use camino::{Utf8Path, Utf8PathBuf};
use serde_json::Value;
use std::net::SocketAddr;

/// The package of Claude Code.
const CLAUDE_PACKAGE: &str = "@anthropic-ai/claude-code";
/// What the tool starts: a session of its own that outlives the turn and holds no pipe.
const PROMPT: &str = "RUN:setsid sleep 300 >/dev/null 2>&1 & echo started\nSAY:the turn is over";
/// The final answer, as it must come out of the client.
const ANSWER: &str = "the turn is over";

/// What was seen of one client.
#[derive(Debug, Default)]
struct Observed {
    /// Everything that came out of standard output.
    stdout: String,
    /// The exit code, if one was observed.
    exit_code: Option<i32>,
    /// Processes of the attempt while the client ran and its tool was there.
    living: usize,
    /// Processes of the attempt after the cleanup.
    survivors: usize,
    /// Whether HOME is gone after the cleanup.
    home_gone: bool,
}

/// Runs every client that can be had, and fails when one misbehaves or none ran.
pub(crate) fn run(workspace: &Workspace) -> Result<(), Failure> {
    let cache = workspace.target_directory.join("real-check");
    let model = stub_model::start()?;
    match claude(&cache) {
        Ok(client) => {
            let observed = launch(&client, model)?;
            let findings = judge(&observed);
            if !findings.is_empty() {
                return Err(Failure::new(format!("claude: {}", findings.join("; "))));
            }
            println!("claude: passed");
            println!("real-check: 1 client ran");
            Ok(())
        }
        Err(failure) => {
            println!("claude: skipped: {failure}");
            Err(Failure::new("real-check: no client ran, so nothing is shown"))
        }
    }
}

/// Installs Claude Code below the cache unless it is there.
fn claude(cache: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    let folder = cache.join("claude");
    let client = folder.join("node_modules/.bin/claude");
    if client.exists() {
        return Ok(client);
    }
    std::fs::create_dir_all(&folder).map_err(|error| Failure::io("make", &folder, &error))?;
    let mut npm = program("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--prefix", folder.as_str(), CLAUDE_PACKAGE]);
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
fn launch(client: &Utf8Path, model: SocketAddr) -> Result<Observed, Failure> {
    let words = arguments().len() + environment(model).len();
    Err(Failure::new(format!("{client}: the facade cannot launch yet ({words} words)")))
}

/// Lists what is not as it must be.
fn judge(observed: &Observed) -> Vec<String> {
    let mut findings = Vec::new();
    if !observed.stdout.lines().any(is_result) {
        findings.push("no result line with the answer came out".to_owned());
    }
    if observed.exit_code != Some(0) {
        findings.push(format!("the exit is {:?} and must be 0", observed.exit_code));
    }
    if observed.living < 2 {
        findings.push("the tool's process was never seen, so its end shows nothing".to_owned());
    }
    if observed.survivors > 0 {
        findings.push(format!("{} processes survived", observed.survivors));
    }
    if !observed.home_gone {
        findings.push("HOME is still there".to_owned());
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
            exit_code: Some(0),
            living: 3,
            survivors: 0,
            home_gone: true,
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
            (Observed { exit_code: None, ..good() }, "exit"),
            (Observed { exit_code: Some(1), ..good() }, "exit"),
            (Observed { living: 1, ..good() }, "never seen"),
            (Observed { survivors: 1, ..good() }, "survived"),
            (Observed { home_gone: false, ..good() }, "HOME"),
        ] {
            let findings = judge(&broken);
            assert_eq!(findings.len(), 1, "{findings:?}");
            assert!(findings[0].contains(part), "{findings:?}");
        }
    }
}
