//! What was measured, and measuring in turn.

use crate::command::Failure;
use std::time::{Duration, Instant};

/// Raw figures of one thing, in the order in which they were measured.
#[derive(Debug, Clone, serde::Serialize)]
pub(super) struct Series {
    /// What was measured.
    pub(super) name: String,
    /// One figure each round.
    pub(super) samples: Vec<f64>,
}

impl Series {
    /// Names figures.
    pub(super) fn new(name: impl Into<String>, samples: Vec<f64>) -> Self {
        Self { name: name.into(), samples }
    }

    /// Returns the middle figure.
    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// Returns the largest figure.
    pub(super) fn worst(&self) -> f64 {
        self.at(1.0)
    }

    /// Returns the figure below which this part of all of them lies.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into a handful of figures, below their number"
    )]
    pub(super) fn at(&self, part: f64) -> f64 {
        let mut sorted = self.samples.clone();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().saturating_sub(1);
        let index = (part * last as f64).ceil() as usize;
        sorted.get(index.min(last)).copied().unwrap_or(f64::NAN)
    }
}

/// Something that is measured in turn with others.
pub(super) struct Contender<'a> {
    name: String,
    measure: Box<dyn FnMut() -> Result<f64, Failure> + 'a>,
}

impl<'a> Contender<'a> {
    /// Names a measurement.
    pub(super) fn new(
        name: impl Into<String>,
        measure: impl FnMut() -> Result<f64, Failure> + 'a,
    ) -> Self {
        Self { name: name.into(), measure: Box::new(measure) }
    }
}

/// Measures everybody once each round, so that what disturbs the machine disturbs all of them.
///
/// A first round is not counted.
pub(super) fn alternate(
    rounds: usize,
    mut contenders: Vec<Contender<'_>>,
) -> Result<Vec<Series>, Failure> {
    for contender in &mut contenders {
        (contender.measure)()?;
    }
    let mut all: Vec<Vec<f64>> = vec![Vec::with_capacity(rounds); contenders.len()];
    for _ in 0..rounds {
        for (contender, samples) in contenders.iter_mut().zip(&mut all) {
            samples.push((contender.measure)()?);
        }
    }
    let names = contenders.into_iter().map(|contender| contender.name);
    Ok(names.zip(all).map(|(name, samples)| Series { name, samples }).collect())
}

/// Measures how long something takes, in milliseconds.
pub(super) fn timed<T>(action: impl FnOnce() -> Result<T, Failure>) -> Result<f64, Failure> {
    let started = Instant::now();
    action()?;
    Ok(milliseconds(started.elapsed()))
}

/// Returns a duration in milliseconds.
pub(super) fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Returns a count as a figure.
#[expect(clippy::cast_precision_loss, reason = "a figure to be shown with three digits")]
pub(super) const fn figure(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_and_the_tail_are_found() {
        let series = Series::new("x", vec![5.0, 1.0, 4.0, 2.0, 3.0]);
        assert!((series.median() - 3.0).abs() < f64::EPSILON);
        assert!((series.worst() - 5.0).abs() < f64::EPSILON);
        assert!((series.at(0.95) - 5.0).abs() < f64::EPSILON);
        assert!(Series::new("nothing", Vec::new()).median().is_nan());
    }

    #[test]
    fn contenders_take_turns_and_the_first_round_is_not_counted() {
        let order = std::cell::RefCell::new(String::new());
        let contender = |name: &'static str, figure: f64| {
            let order = &order;
            Contender::new(name, move || {
                order.borrow_mut().push_str(name);
                Ok(figure)
            })
        };
        let all = alternate(2, vec![contender("a", 1.0), contender("b", 2.0)]).unwrap();
        assert_eq!(order.borrow().as_str(), "ababab");
        assert_eq!(all[1].samples, [2.0, 2.0]);
    }
}
