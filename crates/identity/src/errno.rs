//! Operating system errors by name only.

use std::fmt;

/// Names an operating system error; its text never leaves the process, its name may.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Errno(i32);

impl Errno {
    /// Wraps a raw error number.
    pub fn from_raw(raw: i32) -> Self {
        Self(raw)
    }

    /// Returns the raw error number.
    pub fn raw(self) -> i32 {
        self.0
    }

    /// Returns the symbolic name, such as `ENOENT`, or `E<number>` for one without a name.
    pub fn name(self) -> String {
        let named = nix::errno::Errno::from_raw(self.0);
        if named == nix::errno::Errno::UnknownErrno {
            return format!("E{}", self.0);
        }
        format!("{named:?}")
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name())
    }
}

impl From<&std::io::Error> for Errno {
    /// Keeps the number; an error that has none (made by the standard library) becomes `E0`.
    fn from(error: &std::io::Error) -> Self {
        Self(error.raw_os_error().unwrap_or(0))
    }
}

pub(crate) fn of(error: rustix::io::Errno) -> Errno {
    Errno(error.raw_os_error())
}

#[cfg(test)]
mod tests {
    use super::Errno;

    #[test]
    fn an_error_shows_its_name_and_no_text() {
        assert_eq!(Errno::from_raw(2).to_string(), "ENOENT");
        assert_eq!(format!("{:?}", Errno::from_raw(13)), "EACCES");
    }

    #[test]
    fn an_error_keeps_its_number() {
        assert_eq!(Errno::from_raw(13).raw(), 13);
    }

    #[test]
    fn an_unnamed_error_keeps_its_number() {
        assert_eq!(Errno::from_raw(4000).name(), "E4000");
    }
}
