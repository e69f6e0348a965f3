//! Tables, times and colours.

use crate::context::Style;
use crate::failure::Failure;
use placement::{Attempt, CleanupScope, ExecutionState, Mechanism, Timestamp};
use serde::Serialize;
use std::io::{self, IsTerminal as _, Write as _};

/// Columns apart, in characters.
const GAP: usize = 2;

/// Prints a line of the answer.
pub(crate) fn line(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.write_all(b"\n")?;
    Ok(stdout.flush()?)
}

/// Prints a value as one line of JSON.
pub(crate) fn json<T: Serialize>(value: &T) -> Result<(), Failure> {
    line(&serde_json::to_string(value).expect("values of the contract have text keys"))
}

/// Prints rows in columns; the last one is not padded.
pub(crate) fn table(rows: &[Vec<String>], style: Style) -> Result<(), Failure> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            let widths = rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count());
            widths.max().unwrap_or(0)
        })
        .collect();
    for (number, row) in rows.iter().enumerate() {
        let mut text = String::new();
        for (column, cell) in row.iter().enumerate() {
            text.push_str(cell);
            if column + 1 < row.len() {
                let width = widths.get(column).copied().unwrap_or(0);
                let padding = width.saturating_sub(cell.chars().count()) + GAP;
                text.extend(std::iter::repeat_n(' ', padding));
            }
        }
        line(&if number == 0 { bold(&text, style) } else { text })?;
    }
    Ok(())
}

/// Makes a text bold on a terminal.
pub(crate) fn bold(text: &str, style: Style) -> String {
    if style.no_color || !io::stdout().is_terminal() {
        return text.to_owned();
    }
    format!("\u{1b}[1m{text}\u{1b}[0m")
}

/// Says how an attempt is contained.
pub(crate) fn contained(attempt: &Attempt) -> String {
    match (attempt.required_cleanup, attempt.mechanism) {
        (CleanupScope::ContainedTree, Some(mechanism)) => format!("tree ({mechanism})"),
        (CleanupScope::ContainedTree, None) => "tree".to_owned(),
        (CleanupScope::ProcessGroup, _) => "group".to_owned(),
        (CleanupScope::DirectProcess, _) => "process".to_owned(),
    }
}

/// Says an attempt's state, with its exit where there is one.
pub(crate) fn state(attempt: &Attempt) -> String {
    match (attempt.execution_state, attempt.exit) {
        (ExecutionState::Exited, Some(exit)) => format!("exited ({exit})"),
        (state, _) => state.to_string(),
    }
}

/// Says a mechanism in words.
pub(crate) const fn mechanism(mechanism: Mechanism) -> &'static str {
    match mechanism {
        Mechanism::Cgroup => "cgroup v2 leaf",
        Mechanism::Subreaper => "subreaper",
        Mechanism::PidNamespace => "PID namespace",
    }
}

/// Says how long ago a moment was, in its largest unit.
pub(crate) fn age(then: &Timestamp, now: &Timestamp) -> String {
    let seconds = now.unix_ms().saturating_sub(then.unix_ms()).max(0) / 1_000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Says a duration with its milliseconds.
pub(crate) fn elapsed(then: &Timestamp, now: &Timestamp) -> String {
    let ms = now.unix_ms().saturating_sub(then.unix_ms());
    let sign = if ms < 0 { '-' } else { '+' };
    format!("{sign}{}.{:03}s", ms.unsigned_abs() / 1_000, ms.unsigned_abs() % 1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(unix_ms)
    }

    #[test]
    fn an_age_has_one_unit() {
        for (ms, text) in
            [(-5, "0s"), (59_999, "59s"), (60_000, "1m"), (3_600_000, "1h"), (90_000_000, "1d")]
        {
            assert_eq!(age(&at(0), &at(ms)), text);
        }
    }

    #[test]
    fn a_step_keeps_its_milliseconds() {
        assert_eq!(elapsed(&at(0), &at(1_204)), "+1.204s");
        assert_eq!(elapsed(&at(5), &at(0)), "-0.005s");
    }
}
