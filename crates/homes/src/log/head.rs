//! The head of a log: two slots that are replaced in turn, so that one is always whole.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::Offsets;
use super::format::{place, put, u32_at, u64_at};
use crate::limits::HEAD_TRIES_MAX;

/// Bytes of a slot: `magic u32 | version u32 | counter u64 | acknowledged sequence u64 | dropped
/// sequence u64 | dropped stdout bytes u64 | dropped stderr bytes u64 | transcript bound u64 |
/// flags u32 | crc u32`.
const SLOT_BYTES: usize = 64;
/// Distance of the slots: one sector each, so that power loss damages one at most.
const SLOT_DISTANCE: u64 = 512;
const MAGIC: u32 = u32::from_le_bytes(*b"PLH1");
const VERSION: u32 = 1;
const FLAG_ENDED: u32 = 1;
const CRC_AT: usize = SLOT_BYTES - 4;

/// The cursors of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    counter: u64,
    /// Sequence of the last acknowledged record.
    pub(super) consumed_through: u64,
    /// Sequence of the last record that is not kept any more.
    pub(super) dropped_through: u64,
    /// Payload bytes up to and with that record.
    pub(super) dropped: Offsets,
    pub(super) transcript_bytes_max: u64,
    /// Nothing more will be appended.
    pub(super) ended: bool,
}

impl Head {
    pub(super) fn new(transcript_bytes_max: u64) -> Self {
        Self {
            counter: 0,
            consumed_through: 0,
            dropped_through: 0,
            dropped: Offsets::default(),
            transcript_bytes_max,
            ended: false,
        }
    }

    /// Writes the head over the older slot; it becomes the newer one.
    pub(super) fn store(&mut self, file: &File) -> io::Result<()> {
        let next = Self { counter: self.counter + 1, ..*self };
        file.write_all_at(&next.encode(), (next.counter % 2) * SLOT_DISTANCE)?;
        *self = next;
        Ok(())
    }

    /// Reads the newer whole slot, `None` when neither is whole.
    pub(super) fn load(file: &File) -> io::Result<Option<Self>> {
        // While this looks, the writer may replace first the one slot and then the other.
        for _ in 0..HEAD_TRIES_MAX {
            let slots = [load_slot(file, 0)?, load_slot(file, SLOT_DISTANCE)?];
            if let Some(newer) = slots.into_iter().flatten().max_by_key(|head| head.counter) {
                return Ok(Some(newer));
            }
        }
        Ok(None)
    }

    fn encode(&self) -> [u8; SLOT_BYTES] {
        let flags = if self.ended { FLAG_ENDED } else { 0 };
        let mut bytes = [0; SLOT_BYTES];
        put(&mut bytes, 0, &MAGIC.to_le_bytes());
        put(&mut bytes, 4, &VERSION.to_le_bytes());
        put(&mut bytes, 8, &self.counter.to_le_bytes());
        put(&mut bytes, 16, &self.consumed_through.to_le_bytes());
        put(&mut bytes, 24, &self.dropped_through.to_le_bytes());
        put(&mut bytes, 32, &self.dropped.stdout.to_le_bytes());
        put(&mut bytes, 40, &self.dropped.stderr.to_le_bytes());
        put(&mut bytes, 48, &self.transcript_bytes_max.to_le_bytes());
        put(&mut bytes, 56, &flags.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CRC_AT]);
        put(&mut bytes, CRC_AT, &crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; SLOT_BYTES]) -> Option<Self> {
        if u32_at(bytes, 0) != MAGIC
            || u32_at(bytes, 4) != VERSION
            || u32_at(bytes, CRC_AT) != crc32fast::hash(&bytes[..CRC_AT])
        {
            return None;
        }
        Some(Self {
            counter: place(u64_at(bytes, 8))?,
            consumed_through: place(u64_at(bytes, 16))?,
            dropped_through: place(u64_at(bytes, 24))?,
            dropped: Offsets {
                stdout: place(u64_at(bytes, 32))?,
                stderr: place(u64_at(bytes, 40))?,
            },
            transcript_bytes_max: u64_at(bytes, 48),
            ended: u32_at(bytes, 56) & FLAG_ENDED != 0,
        })
    }
}

fn load_slot(file: &File, position: u64) -> io::Result<Option<Head>> {
    let mut bytes = [0; SLOT_BYTES];
    match file.read_exact_at(&mut bytes, position) {
        Ok(()) => Ok(Head::decode(&bytes)),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(times: u64) -> (placement_testkit::TempRoot, File, Head) {
        let root = placement_testkit::TempRoot::new();
        let file = File::options()
            .read(true)
            .write(true)
            .create_new(true)
            .open(root.join("head"))
            .unwrap();
        let mut head = Head::new(5);
        for number in 1..=times {
            head.consumed_through = number;
            head.store(&file).unwrap();
        }
        (root, file, head)
    }

    #[test]
    fn the_newer_slot_is_read() {
        for times in 1..=4 {
            let (_root, file, head) = stored(times);
            assert_eq!(Head::load(&file).unwrap(), Some(head));
        }
    }

    #[test]
    fn a_slot_damaged_at_any_byte_leaves_the_older_one() {
        for times in [3, 4] {
            let (_root, file, head) = stored(times);
            let position = (times % 2) * SLOT_DISTANCE;
            for byte in 0..SLOT_BYTES as u64 {
                let mut old = [0];
                file.read_exact_at(&mut old, position + byte).unwrap();
                file.write_all_at(&[!old[0]], position + byte).unwrap();
                let seen = Head::load(&file).unwrap().unwrap();
                assert_eq!(seen.consumed_through, head.consumed_through - 1);
                file.write_all_at(&old, position + byte).unwrap();
            }
        }
    }

    #[test]
    fn an_empty_file_has_no_head() {
        let (_root, file, _) = stored(0);
        assert_eq!(Head::load(&file).unwrap(), None);
    }
}
