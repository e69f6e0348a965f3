//! Listing a directory.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use crate::Dir;
use crate::failure::{IoFailure, Place};

/// The names of a directory's entries, read as they are asked for.
///
/// Names are raw bytes: what lives below a directory may be anybody's. Memory does not grow with
/// the directory. An entry made or removed meanwhile may or may not be seen.
#[derive(Debug)]
pub struct Entries {
    listing: rustix::fs::Dir,
    place: Place,
}

impl Entries {
    pub(crate) fn of(directory: &Dir) -> Result<Self, IoFailure> {
        let place = directory.itself();
        let listing = rustix::fs::Dir::read_from(directory)
            .map_err(|errno| IoFailure::new("list", place, errno))?;
        Ok(Self { listing, place })
    }
}

impl Iterator for Entries {
    type Item = Result<OsString, IoFailure>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let entry = match self.listing.read()? {
                Ok(entry) => entry,
                Err(errno) => return Some(Err(IoFailure::new("list", self.place, errno))),
            };
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                return Some(Ok(OsString::from_vec(name.to_vec())));
            }
        }
    }
}
