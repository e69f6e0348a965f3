//! Measuring a program for whoever plans a launch.

use crate::Service;
use crate::refusal::unavailable;
use camino::Utf8Path;
use placement_contract::Refusal;
use placement_contract::limits::ARGUMENT_BYTES_MAX;
use placement_executable::{
    ExecutableMeasurement, MeasureError, Measuring, Progress, STEP_BYTES_MAX, search,
};
use placement_policy::check_measurable;

impl Service {
    /// Measures the file at an absolute path, as a start will measure it again.
    ///
    /// What was measured before and cannot have changed is not hashed again. Nothing is executed.
    ///
    /// # Errors
    /// DENIED for a program that the launch policy does not list, if it lists some; UNAVAILABLE for
    /// everything that cannot be measured, a relative path and a missing file among them.
    pub fn measure_executable(&self, path: &Utf8Path) -> Result<ExecutableMeasurement, Refusal> {
        self.check_measurable(path)?;
        if path.as_str().len() > ARGUMENT_BYTES_MAX || path.as_str().contains('\0') {
            return Err(not_measured("the program's path is longer than a launch may name"));
        }
        let known = self.inner.known_digests.clone();
        let mut measuring = Measuring::open_knowing(path, known).map_err(|e| refuse(&e))?;
        loop {
            match measuring.step(STEP_BYTES_MAX).map_err(|e| refuse(&e))? {
                Progress::More => {}
                Progress::Done(measured) => return Ok(measured.measurement().clone()),
            }
        }
    }

    /// A listed name stands for the file that a launch of it would execute.
    fn check_measurable(&self, path: &Utf8Path) -> Result<(), Refusal> {
        let snapshot = self.snapshot();
        let search_path = snapshot.search_path();
        let stands_for = |name: &str| search(name, search_path).is_ok_and(|found| found == path);
        check_measurable(path, &snapshot, stands_for)
    }
}

fn refuse(error: &MeasureError) -> Refusal {
    not_measured(&error.with_reason())
}

fn not_measured(message: &str) -> Refusal {
    unavailable(message).with_hint("name an executable file that this user can read")
}
