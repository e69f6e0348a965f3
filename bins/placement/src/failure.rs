//! Why a command did not do what was asked, and how that is said.

use crate::context::Style;
use crate::exit_code;
use placement::{Code, Error, Refusal};
use serde_json::json;
use std::ffi::OsString;
use std::io::{self, Write as _};

/// Why a command did not do what was asked.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Placement refused or failed.
    Refused(Refusal),
    /// A signal asked for the end before there was an attempt.
    Interrupted,
    /// Whoever read the answer has gone.
    StdoutClosed,
}

impl Failure {
    /// Refuses an option of a later version.
    pub(crate) fn unsupported(what: &str) -> Self {
        Refusal::new(Code::Unsupported, format!("this version does not offer {what}")).into()
    }

    /// Refuses a command of a later version.
    pub(crate) fn unsupported_command(name: &str) -> Self {
        Refusal::new(Code::Unsupported, format!("this version does not offer {name}"))
            .with_hint("`placement --help` lists the commands of this version")
            .into()
    }

    /// Refuses what contradicts itself or is out of bounds.
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Refusal::new(Code::Invalid, message).into()
    }

    /// Says it on stderr and returns the exit code.
    pub(crate) fn report(&self, style: Style) -> u8 {
        match self {
            Self::Refused(refusal) => {
                say_refusal(refusal, style);
                exit_code::of_refusal(refusal.code)
            }
            Self::Interrupted => exit_code::INTERRUPTED,
            Self::StdoutClosed => exit_code::STDOUT_CLOSED,
        }
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Refused(error.into())
    }
}

/// Writing the answer failed.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::StdoutClosed;
        }
        Refusal::new(Code::Unavailable, "standard output cannot be written")
            .with_hint("check where the output goes and that there is room")
            .into()
    }
}

/// Says a refusal on stderr: what stood against it and what to do.
pub(crate) fn say_refusal(refusal: &Refusal, style: Style) {
    if style.json {
        let (code, hint) = (refusal.code.label(), refusal.hint());
        let error = json!({"error": {"code": code, "message": refusal.message, "hint": hint}});
        write_stderr(&error.to_string());
        return;
    }
    let mut hint = refusal.hint().to_owned();
    if let Some(first) = hint.get(..1) {
        let upper = first.to_uppercase();
        hint.replace_range(..1, &upper);
    }
    write_stderr(&format!("placement: {}: {}. {hint}.", refusal.code, refusal.message));
}

/// Says something on stderr that is no part of the answer.
pub(crate) fn say(text: &str) {
    write_stderr(&format!("placement: {text}"));
}

/// Says what is wrong with the arguments, in JSON where they ask for it, and returns the exit code.
pub(crate) fn report_usage(error: &clap::Error, arguments: impl Iterator<Item = OsString>) -> u8 {
    let asks_for_json = arguments.take_while(|argument| argument != "--").any(|a| a == "--json");
    if error.use_stderr() && asks_for_json {
        let text = error.to_string();
        let message = text.lines().next().unwrap_or_default().trim_start_matches("error: ");
        let refusal = Refusal::new(Code::Invalid, message)
            .with_hint("`placement --help` lists the commands and their options");
        say_refusal(&refusal, Style { json: true, verbose: false, no_color: true });
        return exit_code::USAGE;
    }
    // Whoever closed the stream does not want to read it.
    error.print().ok();
    if error.use_stderr() { exit_code::USAGE } else { exit_code::SUCCESS }
}

fn write_stderr(line: &str) {
    // Nothing is left to tell it to where stderr is gone.
    writeln!(io::stderr(), "{line}").ok();
}
