//! One row of the table.

use super::samples::Series;
use serde::Serialize;

/// What one row has found.
#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    /// What was measured.
    pub(super) lines: Vec<Line>,
    /// What was not, and why.
    pub(super) skipped: Vec<String>,
}

/// One figure of the product, beside what it is compared with.
#[derive(Debug, Serialize)]
pub(super) struct Line {
    /// What was measured.
    pub(super) what: String,
    /// In which unit.
    pub(super) unit: Unit,
    /// The floor and the rivals, the floor first.
    pub(super) beside: Vec<Series>,
    /// The product.
    pub(super) ours: Series,
    /// What it must be, if anything.
    pub(super) must: Option<Must>,
}

/// A bound.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Must {
    /// The bound as it is shown.
    pub(super) text: String,
    /// Whether it is met.
    pub(super) met: bool,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) enum Unit {
    #[serde(rename = "ms")]
    Milliseconds,
    #[serde(rename = "us")]
    Microseconds,
    #[serde(rename = "ns")]
    Nanoseconds,
    #[serde(rename = "MB")]
    Megabytes,
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    #[serde(rename = "count")]
    Count,
    #[serde(rename = "ratio")]
    Ratio,
}

impl Unit {
    const fn label(self) -> &'static str {
        match self {
            Self::Milliseconds => " ms",
            Self::Microseconds => " µs",
            Self::Nanoseconds => " ns",
            Self::Megabytes => " MB",
            Self::MegabytesPerSecond => " MB/s",
            Self::Count => "",
            Self::Ratio => "x",
        }
    }

    /// Shows a figure with as many digits as it is worth.
    pub(super) fn shown(self, figure: f64) -> String {
        let digits = if self == Self::Count || figure.abs() >= 100.0 {
            0
        } else if figure.abs() >= 10.0 {
            1
        } else if figure.abs() >= 0.1 {
            2
        } else {
            3
        };
        format!("{figure:.digits$}{}", self.label())
    }
}

impl Row {
    /// Makes a row that could not be measured.
    pub(super) fn skipped(reason: impl Into<String>) -> Self {
        Self { lines: Vec::new(), skipped: vec![reason.into()] }
    }
}

impl Line {
    /// Begins a line with the product's own figures.
    pub(super) fn new(what: impl Into<String>, unit: Unit, ours: Series) -> Self {
        Self { what: what.into(), unit, beside: Vec::new(), ours, must: None }
    }

    /// Puts a floor or a rival beside it.
    pub(super) fn beside(mut self, other: Series) -> Self {
        self.beside.push(other);
        self
    }

    /// Says what it must be, and whether that is so.
    pub(super) fn must(mut self, text: impl Into<String>, met: bool) -> Self {
        self.must = Some(Must { text: text.into(), met });
        self
    }

    /// Bounds the median from above.
    pub(super) fn at_most(self, bound: f64) -> Self {
        let (text, met) = (format!("≤ {}", plain(bound)), self.ours.median() <= bound);
        let text = format!("{text}{}", self.unit.label());
        self.must(text, met)
    }

    /// Returns the product's median in parts of the floor's.
    pub(super) fn ratio(&self) -> Option<f64> {
        let floor = self.beside.first()?.median();
        (floor > 0.0).then(|| self.ours.median() / floor)
    }
}

/// Shows a bound as it was written.
fn plain(bound: f64) -> String {
    let text = format!("{bound:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(ours: f64) -> Line {
        Line::new("x", Unit::Milliseconds, Series::new("ours", vec![ours]))
    }

    #[test]
    fn a_bound_is_met_up_to_itself() {
        assert!(line(5.0).at_most(5.0).must.unwrap().met);
        let missed = line(5.1).at_most(5.0).must.unwrap();
        assert!(!missed.met);
        assert_eq!(missed.text, "≤ 5 ms");
    }

    #[test]
    fn the_ratio_is_to_the_first_beside_it() {
        let both = line(6.0).beside(Series::new("floor", vec![2.0]));
        let both = both.beside(Series::new("rival", vec![1.0]));
        assert_eq!(both.ratio(), Some(3.0));
        assert_eq!(line(6.0).ratio(), None);
    }

    #[test]
    fn figures_have_the_digits_they_are_worth() {
        assert_eq!(Unit::Milliseconds.shown(123.4), "123 ms");
        assert_eq!(Unit::Milliseconds.shown(1.234), "1.23 ms");
        assert_eq!(Unit::Milliseconds.shown(0.012_34), "0.012 ms");
        assert_eq!(Unit::Count.shown(3.0), "3");
    }
}
