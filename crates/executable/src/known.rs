//! Digests that were measured before, known again by the facts of their files.
//!
//! A file of fixed slots: a reader finds its own record or none, a writer replaces one record whole
//! or leaves one that is not read. Nothing waits, nothing grows, and what is damaged is no record.

use crate::facts::Facts;
use crate::limits::{KNOWN_SLOTS, QUIET_MS};
use placement_contract::{Clock, Digest};
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::sync::Arc;

const MAGIC: &[u8; 8] = b"digests1";
const FACTS_BYTES: usize = 7 * 8;
const DIGEST_BYTES: usize = 64;
const CHECKED_BYTES: usize = MAGIC.len() + FACTS_BYTES + DIGEST_BYTES;
const RECORD_BYTES: usize = CHECKED_BYTES + 4;

/// Digests that were measured before, in one file that many processes may have open.
///
/// A digest is kept only where the file had not changed for two seconds and cannot be written by
/// this user, and is used only where it still cannot be: then the same device, inode, size,
/// modification and change time mean the same content. What runs as this user can spoil the file as
/// it can spoil anything below its root; it gains a wrong digest of a program that it cannot change.
#[derive(Debug, Clone)]
pub struct KnownDigests {
    file: Arc<File>,
    clock: Arc<dyn Clock>,
}

impl KnownDigests {
    /// Takes a file, open for reading and writing; an empty one is a beginning.
    pub fn new(file: File, clock: Arc<dyn Clock>) -> Self {
        Self { file: Arc::new(file), clock }
    }

    /// Finds the digest of a file that cannot be written by this user.
    pub(crate) fn find(&self, file: &File, facts: &Facts) -> Option<Digest> {
        if may_be_written(file) {
            return None;
        }
        let mut record = [0; RECORD_BYTES];
        self.file.read_exact_at(&mut record, offset(facts)).ok()?;
        let (checked, sum) = record.split_at(CHECKED_BYTES);
        let digest = checked.get(MAGIC.len() + FACTS_BYTES..)?;
        let digest = Digest::parse(std::str::from_utf8(digest).ok()?)?;
        let is_ours = checked == encode(facts, &digest).get(..CHECKED_BYTES)?
            && sum == crc32fast::hash(checked).to_le_bytes();
        is_ours.then_some(digest)
    }

    /// Says whether a digest that is measured from now on may be kept.
    ///
    /// A change within the clock tick of the last one leaves no trace in the facts, so a file must
    /// have been left alone for a while; a mapping that can be written leaves none for much longer.
    pub(crate) fn may_keep(&self, file: &File, facts: &Facts) -> bool {
        let changed_ms =
            facts.changed.seconds.saturating_mul(1_000) + facts.changed.nanoseconds / 1_000_000;
        let quiet_ms = self.clock.now().unix_ms().saturating_sub(changed_ms);
        quiet_ms >= QUIET_MS && !may_be_written(file)
    }

    /// Keeps a digest; where that fails the file is hashed again the next time.
    pub(crate) fn keep(&self, facts: &Facts, digest: &Digest) {
        self.file.write_all_at(&encode(facts, digest), offset(facts)).ok();
    }
}

fn encode(facts: &Facts, digest: &Digest) -> [u8; RECORD_BYTES] {
    let numbers = [
        facts.device,
        facts.inode,
        facts.size,
        facts.modified.seconds.cast_unsigned(),
        facts.modified.nanoseconds.cast_unsigned(),
        facts.changed.seconds.cast_unsigned(),
        facts.changed.nanoseconds.cast_unsigned(),
    ];
    let mut bytes = Vec::with_capacity(RECORD_BYTES);
    bytes.extend_from_slice(MAGIC);
    bytes.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    bytes.extend_from_slice(digest.as_str().as_bytes());
    let sum = crc32fast::hash(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    bytes.try_into().expect("the parts add up to one record")
}

/// One slot for each file, whatever its state; a file that shares it takes turns.
fn offset(facts: &Facts) -> u64 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&facts.device.to_le_bytes());
    hasher.update(&facts.inode.to_le_bytes());
    u64::from(hasher.finalize() % KNOWN_SLOTS) * RECORD_BYTES as u64
}

/// Asks by the effective ids, which knows access lists and read-only mounts. The superuser may
/// write everything; then the mode decides, whose change leaves a trace in the facts.
fn may_be_written(file: &File) -> bool {
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    match accessat(CWD, by_descriptor.as_str(), Access::WRITE_OK, AtFlags::EACCESS) {
        Err(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => false,
        Ok(()) => file.metadata().map_or(true, |metadata| metadata.mode() & 0o222 != 0),
        Err(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Moment;
    use placement_contract::Timestamp;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    #[derive(Debug)]
    struct At(i64);

    impl Clock for At {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_ms(self.0)
        }
    }

    fn known(now_ms: i64) -> KnownDigests {
        KnownDigests::new(tempfile::tempfile().unwrap(), Arc::new(At(now_ms)))
    }

    /// A program with a mode, held open, and its facts.
    fn program(mode: u32) -> (File, Facts) {
        let file = tempfile::tempfile().unwrap();
        file.set_permissions(Permissions::from_mode(mode)).unwrap();
        let facts = Facts::of(&file.metadata().unwrap());
        (file, facts)
    }

    fn changed_ms(facts: &Facts) -> i64 {
        facts.changed.seconds * 1_000 + facts.changed.nanoseconds / 1_000_000
    }

    #[test]
    fn a_digest_is_found_again_by_all_facts_and_by_nothing_less() {
        let (known, digest) = (known(0), Digest::of_bytes(b"x"));
        let (file, facts) = program(0o555);
        assert_eq!(known.find(&file, &facts), None);
        known.keep(&facts, &digest);
        assert_eq!(known.find(&file, &facts), Some(digest));
        let later = |moment: Moment| Moment { nanoseconds: moment.nanoseconds ^ 1, ..moment };
        for other in [
            Facts { size: facts.size + 1, ..facts },
            Facts { modified: later(facts.modified), ..facts },
            Facts { changed: later(facts.changed), ..facts },
            Facts { inode: facts.inode + 1, ..facts },
            Facts { device: facts.device + 1, ..facts },
        ] {
            assert_eq!(known.find(&file, &other), None, "{other:?}");
        }
    }

    #[test]
    fn a_file_that_this_user_may_write_is_never_known() {
        let known = known(i64::MAX);
        let (file, facts) = program(0o755);
        assert!(!known.may_keep(&file, &facts));
        known.keep(&facts, &Digest::of_bytes(b"forged"));
        assert_eq!(known.find(&file, &facts), None);
    }

    #[test]
    fn a_file_is_kept_only_after_two_quiet_seconds() {
        let (file, facts) = program(0o555);
        for (age_ms, may) in [(-1, false), (0, false), (1_999, false), (2_000, true), (9_999, true)]
        {
            let known = known(changed_ms(&facts) + age_ms);
            assert_eq!(known.may_keep(&file, &facts), may, "{age_ms}");
        }
    }

    #[test]
    fn a_damaged_record_is_none() {
        let (known, digest) = (known(0), Digest::of_bytes(b"x"));
        let (file, facts) = program(0o555);
        for position in 0..RECORD_BYTES as u64 {
            known.keep(&facts, &digest);
            let mut byte = [0];
            let at = offset(&facts) + position;
            known.file.read_exact_at(&mut byte, at).unwrap();
            known.file.write_all_at(&[byte[0] ^ 0x20], at).unwrap();
            assert_eq!(known.find(&file, &facts), None, "byte {position}");
        }
    }

    #[test]
    fn the_file_never_grows_beyond_its_slots() {
        let known = known(0);
        let (_, facts) = program(0o555);
        for inode in 0..2_000 {
            known.keep(&Facts { inode, ..facts }, &Digest::of_bytes(b"x"));
        }
        let bytes = known.file.metadata().unwrap().len();
        assert!(bytes <= u64::from(KNOWN_SLOTS) * RECORD_BYTES as u64, "{bytes}");
    }
}
