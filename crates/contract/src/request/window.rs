//! A terminal as the child's standard streams.

use crate::exact::ranged;
use crate::limits::{TERM_BYTES_MAX, WINDOW_COLUMNS_MAX, WINDOW_ROWS_MAX};
use serde::{Deserialize, Deserializer, Serialize, de};
use std::fmt;

/// The terminal that a child is given as all three of its standard streams.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its width in characters, 1 to 1000.
    #[serde(deserialize_with = "columns")]
    columns: u16,
    /// Its height in characters, 1 to 500.
    #[serde(deserialize_with = "rows")]
    rows: u16,
    /// What kind of terminal it is: the child's TERM, 1 to 64 printable ASCII characters.
    #[serde(deserialize_with = "term")]
    term: String,
}

impl Window {
    /// Describes a terminal; nothing for a name that is no terminal's.
    pub fn new(size: WindowSize, term: &str) -> Option<Self> {
        let WindowSize { columns, rows } = size;
        is_term(term).then(|| Self { columns, rows, term: term.to_owned() })
    }

    /// Returns the size that it has before the program runs.
    pub const fn size(&self) -> WindowSize {
        WindowSize { columns: self.columns, rows: self.rows }
    }

    /// Returns the kind of terminal.
    pub fn term(&self) -> &str {
        &self.term
    }
}

/// The size of a window in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSize {
    #[serde(deserialize_with = "columns")]
    columns: u16,
    #[serde(deserialize_with = "rows")]
    rows: u16,
}

impl WindowSize {
    /// Makes a size of 1 to 1000 columns and 1 to 500 rows; nothing for any other.
    pub fn new(columns: u16, rows: u16) -> Option<Self> {
        let fits = (1..=WINDOW_COLUMNS_MAX).contains(&u64::from(columns))
            && (1..=WINDOW_ROWS_MAX).contains(&u64::from(rows));
        fits.then_some(Self { columns, rows })
    }

    /// Returns the width.
    pub const fn columns(self) -> u16 {
        self.columns
    }

    /// Returns the height.
    pub const fn rows(self) -> u16 {
        self.rows
    }
}

impl fmt::Display for WindowSize {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} columns, {} rows", self.columns, self.rows)
    }
}

fn is_term(term: &str) -> bool {
    (1..=TERM_BYTES_MAX).contains(&term.len())
        && term.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ')
}

fn columns<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    ranged::<D, 1, WINDOW_COLUMNS_MAX>(deserializer).map(narrowed)
}

fn rows<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u16, D::Error> {
    ranged::<D, 1, WINDOW_ROWS_MAX>(deserializer).map(narrowed)
}

fn narrowed(value: u64) -> u16 {
    u16::try_from(value).expect("the bounds of a window lie below 65536")
}

fn term<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let term = String::deserialize(deserializer)?;
    if is_term(&term) {
        Ok(term)
    } else {
        let rule = format_args!("must be 1 to {TERM_BYTES_MAX} printable ASCII characters");
        Err(de::Error::custom(rule))
    }
}

#[cfg(test)]
mod tests {
    use super::{Window, WindowSize};

    #[test]
    fn a_size_is_within_its_bounds() {
        for (columns, rows) in [(1, 1), (1000, 500), (80, 24)] {
            let size = WindowSize::new(columns, rows).map(|it| (it.columns(), it.rows()));
            assert_eq!(size, Some((columns, rows)));
        }
        for (columns, rows) in [(0, 1), (1, 0), (1001, 1), (1, 501), (65_535, 65_535)] {
            assert_eq!(WindowSize::new(columns, rows), None, "{columns}x{rows}");
        }
    }

    #[test]
    fn a_kind_of_terminal_is_printable() {
        let size = WindowSize::new(80, 24).expect("a usual size");
        for term in ["xterm-256color", "x", "a b", &"x".repeat(64)] {
            assert_eq!(
                Window::new(size, term).map(|it| it.term().to_owned()).as_deref(),
                Some(term)
            );
        }
        for term in ["", "a\nb", "\u{e9}", "a\u{1b}[c", &"x".repeat(65)] {
            assert_eq!(Window::new(size, term), None, "{term:?}");
        }
    }
}
