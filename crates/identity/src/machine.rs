//! Which boot of which machine this is.

use std::fs::File;
use std::io::Read as _;

use crate::errno::Errno;
use crate::limits::{ID_BYTES_MAX, LINE_BYTES_MAX};

const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
const MACHINE_IDS: [&str; 2] = ["/etc/machine-id", "/var/lib/dbus/machine-id"];

/// Says why the boot id could not be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MachineError {
    /// The file with the boot id could not be read.
    #[error("cannot read the boot id: {0}")]
    Unreadable(Errno),
    /// The file with the boot id holds something else.
    #[error("the boot id has an unknown form")]
    Malformed,
}

/// Reads the kernel's boot id, a random value that is new at each boot.
///
/// # Errors
/// [`MachineError`] when `/proc` does not give it. See `random(4)`.
pub fn boot_id() -> Result<String, MachineError> {
    let text = read_line(BOOT_ID).map_err(|error| MachineError::Unreadable(Errno::from(&error)))?;
    if is_id(&text) { Ok(text) } else { Err(MachineError::Malformed) }
}

/// Reads the machine id, or `None` where the machine has none.
///
/// Missing, empty, `uninitialized` and malformed all mean none: an id that nobody set must not make
/// two machines look alike. See `machine-id(5)`.
pub fn machine_id() -> Option<String> {
    MACHINE_IDS.iter().find_map(|path| read_line(path).ok().filter(|text| is_id(text)))
}

fn read_line(path: &str) -> std::io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(LINE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text.trim_end_matches('\n').to_owned())
}

fn is_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= ID_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && text.bytes().any(|byte| byte.is_ascii_hexdigit() && byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::{boot_id, is_id};

    #[test]
    fn the_boot_id_stays_the_same_within_a_boot() {
        assert_eq!(boot_id().unwrap(), boot_id().unwrap());
    }

    #[test]
    fn an_id_that_nobody_set_is_none() {
        assert!(!is_id(""));
        assert!(!is_id("uninitialized"));
        assert!(!is_id("00000000000000000000000000000000"));
        assert!(is_id("0439a3ebdae4ca4d3e95827edb4eabb8"));
    }
}
