//! Wall time, for display and records only; waiting uses the monotonic clock.

use jiff::fmt::temporal::DateTimePrinter;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// A moment in UTC with milliseconds, in the one form `YYYY-MM-DDTHH:MM:SS.mmmZ`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Timestamp(String);

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

impl Timestamp {
    /// Makes a timestamp from milliseconds since 1970 in UTC.
    ///
    /// Moments outside the years 0000 to 9999 become the nearest one inside.
    pub fn from_unix_ms(unix_ms: i64) -> Self {
        const YEAR_0_MS: i64 = -62_167_219_200_000;
        const YEAR_9999_END_MS: i64 = 253_402_207_199_999;
        let bounded = unix_ms.clamp(YEAR_0_MS, YEAR_9999_END_MS);
        let moment =
            jiff::Timestamp::from_millisecond(bounded).expect("clamped to the years 0-9999");
        Self(PRINTER.timestamp_to_string(&moment))
    }

    /// Parses the one form; the text must read back exactly as given.
    pub fn parse(text: &str) -> Option<Self> {
        let moment: jiff::Timestamp = text.parse().ok()?;
        let made = Self::from_unix_ms(moment.as_millisecond());
        (made.0 == text).then_some(made)
    }

    /// Returns the text form.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns milliseconds since 1970 in UTC.
    pub fn unix_ms(&self) -> i64 {
        let moment: jiff::Timestamp = self.0.parse().expect("checked when it was made");
        moment.as_millisecond()
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text)
            .ok_or_else(|| serde::de::Error::custom("must be a UTC time with milliseconds"))
    }
}

/// Tells the wall time; the host supplies it, tests replace it.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Returns the current moment.
    fn now(&self) -> Timestamp;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_exact() {
        let epoch = Timestamp::from_unix_ms(0);
        assert_eq!(epoch.as_str(), "1970-01-01T00:00:00.000Z");
        assert_eq!(
            Timestamp::parse("2026-11-30T10:02:11.204Z").map(|t| t.unix_ms() % 1000),
            Some(204)
        );
        for wrong in
            ["2026-11-30T10:02:11Z", "2026-11-30 10:02:11.204Z", "2026-02-30T00:00:00.000Z", ""]
        {
            assert_eq!(Timestamp::parse(wrong), None, "{wrong}");
        }
    }
}
