//! A process or group number that is one.

use std::fmt;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

/// Holds a process id or a group id: above zero and within the kernel's range.
///
/// It names a slot, not a process: the kernel gives the number away again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Pid(NonZeroU32);

/// Says that a number is not a process id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a process id")]
pub struct PidError;

impl Pid {
    /// The group number recorded for a process whose group is led from outside the PID namespace,
    /// for which the kernel gives none: no question about that group is answered, and no signal sent
    /// to it.
    pub const GROUP_OUTSIDE: Self = Self(NonZeroU32::MIN);

    /// Returns the number.
    pub fn get(self) -> u32 {
        self.0.get()
    }

    /// Returns the number as the kernel's calls take it.
    pub fn as_raw(self) -> i32 {
        i32::try_from(self.0.get()).expect("a Pid is made from numbers that fit")
    }

    /// Returns the id of the calling process.
    pub fn this_process() -> Self {
        Self::from_rustix(rustix::process::getpid())
    }

    pub(crate) fn from_rustix(pid: rustix::process::Pid) -> Self {
        Self::try_from(pid.as_raw_nonzero().get()).expect("the kernel's process ids are positive")
    }

    pub(crate) fn to_rustix(self) -> rustix::process::Pid {
        rustix::process::Pid::from_raw(self.as_raw()).expect("a Pid is above zero")
    }
}

impl TryFrom<u32> for Pid {
    type Error = PidError;

    fn try_from(number: u32) -> Result<Self, PidError> {
        i32::try_from(number).map_err(|_| PidError)?;
        NonZeroU32::new(number).map(Self).ok_or(PidError)
    }
}

impl TryFrom<i32> for Pid {
    type Error = PidError;

    fn try_from(number: i32) -> Result<Self, PidError> {
        u32::try_from(number).map_err(|_| PidError).and_then(Self::try_from)
    }
}

impl From<Pid> for u32 {
    fn from(pid: Pid) -> Self {
        pid.get()
    }
}

impl fmt::Display for Pid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

#[cfg(test)]
mod tests {
    use super::Pid;

    #[test]
    fn zero_negative_and_oversized_numbers_are_refused() {
        assert!(Pid::try_from(0_u32).is_err());
        assert!(Pid::try_from(-1_i32).is_err());
        assert!(Pid::try_from(u32::MAX).is_err());
        assert!(serde_json::from_str::<Pid>("0").is_err());
    }
}
