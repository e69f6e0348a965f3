//! One frame: a header of 32 bytes, little endian, and its payload.
//!
//! `len u32 | kind u8 | stream u8 | flags u16 | generation u64 | sequence u64 | offset u64`, where
//! `len` counts the payload only.

use crate::kind::{Kind, LinkKind};
use crate::limits::HEADER_BYTES;
use placement_contract::{Generation, StreamName};
use std::fmt;
use zeroize::Zeroize as _;

/// Why bytes are not a frame of this link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// No kind has this number.
    #[error("frame of the unknown kind {0}")]
    UnknownKind(u8),
    /// The kind does not belong to the link.
    #[error("frame of a kind that does not belong to this link")]
    Misplaced {
        /// The kind.
        kind: Kind,
        /// The link.
        link: LinkKind,
    },
    /// The payload is above the bound of the kind.
    #[error("payload of {bytes} bytes is above the bound of {bytes_max}")]
    TooLarge {
        /// Its length, in bytes.
        bytes: usize,
        /// The bound, in bytes.
        bytes_max: usize,
    },
    /// No output stream has this number.
    #[error("frame of the unknown stream {0}")]
    UnknownStream(u8),
    /// A flag is set that the kind does not have.
    #[error("frame with an unknown flag")]
    UnknownFlag,
    /// A header field that the kind carries is missing, or one that it does not carry is set.
    #[error("frame with a wrong {0}")]
    Field(&'static str),
}

/// A set of marks in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No mark.
    pub const NONE: Self = Self(0);
    /// The stream was closed before its end.
    pub const TRUNCATED: Self = Self(1);
    /// Input is closed after these bytes.
    pub const END: Self = Self(2);
    /// The input was accepted.
    pub const ACCEPTED: Self = Self(4);

    /// Returns the mark if it is wanted, and none otherwise.
    #[must_use]
    pub const fn when(self, wanted: bool) -> Self {
        if wanted { self } else { Self::NONE }
    }

    /// Says whether every mark of another set is in this one.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// What a frame says before its payload; a field that the kind does not carry is zero or `None`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// What it is.
    pub kind: Kind,
    /// The output stream.
    pub stream: Option<StreamName>,
    /// Its marks.
    pub flags: Flags,
    /// The attachment.
    pub generation: Generation,
    /// The place in the output, or the write id; from 1.
    pub sequence: u64,
    /// The place of the first byte in its stream, from 0.
    pub offset: u64,
}

impl Header {
    /// Makes a header that carries nothing but its kind.
    pub const fn plain(kind: Kind) -> Self {
        Self {
            kind,
            stream: None,
            flags: Flags::NONE,
            generation: Generation::NONE,
            sequence: 0,
            offset: 0,
        }
    }

    /// Checks that exactly the fields of the kind are there.
    fn check(&self) -> Result<(), FrameError> {
        let carries = self.kind.carries();
        if !carries.flags.has(self.flags) {
            return Err(FrameError::UnknownFlag);
        }
        if self.stream.is_some() != carries.output {
            return Err(FrameError::Field("stream"));
        }
        if self.generation != Generation::NONE && !carries.generation {
            return Err(FrameError::Field("generation"));
        }
        // Sequences and write ids start at 1, so that 0 means "none" in an acknowledgment.
        if (self.sequence != 0) != carries.sequence {
            return Err(FrameError::Field("sequence"));
        }
        if self.offset != 0 && !carries.output {
            return Err(FrameError::Field("offset"));
        }
        Ok(())
    }

    fn to_bytes(self, payload_bytes: usize) -> [u8; HEADER_BYTES] {
        let len = u32::try_from(payload_bytes).expect("bounded by the kind, below 4 GiB");
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&len.to_le_bytes());
        bytes[4] = self.kind.number();
        bytes[5] = stream_number(self.stream);
        bytes[6..8].copy_from_slice(&self.flags.0.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.generation.number().to_le_bytes());
        bytes[16..24].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    /// Reads a header and the length of its payload, which is within the bound of its kind.
    pub(crate) fn from_bytes(
        bytes: &[u8; HEADER_BYTES],
        link: LinkKind,
    ) -> Result<(Self, usize), FrameError> {
        let kind = Kind::from_number(bytes[4]).ok_or(FrameError::UnknownKind(bytes[4]))?;
        if !kind.belongs_to(link) {
            return Err(FrameError::Misplaced { kind, link });
        }
        let len = usize::try_from(u32::from_le_bytes(array(bytes, 0))).unwrap_or(usize::MAX);
        check_length(kind, len)?;
        let header = Self {
            kind,
            stream: stream_from_number(bytes[5])?,
            flags: Flags(u16::from_le_bytes(array(bytes, 6))),
            generation: Generation::new(u64::from_le_bytes(array(bytes, 8))),
            sequence: u64::from_le_bytes(array(bytes, 16)),
            offset: u64::from_le_bytes(array(bytes, 24)),
        };
        header.check()?;
        Ok((header, len))
    }
}

/// The bytes of a frame after its header; wiped when dropped if the kind holds secrets.
pub struct Payload {
    bytes: Vec<u8>,
    secret: bool,
}

impl Payload {
    pub(crate) fn new(kind: Kind, bytes: Vec<u8>) -> Self {
        Self { bytes, secret: kind.is_secret() }
    }

    #[cfg(test)]
    pub(crate) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Appends within the capacity that was set aside.
    pub(crate) fn extend(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the bytes.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes
    }

    /// Gives the bytes away; what was secret is then the caller's to wipe.
    pub fn into_vec(mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }
}

impl Drop for Payload {
    fn drop(&mut self) {
        if self.secret {
            self.bytes.zeroize();
        }
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Payload({} bytes)", self.bytes.len())
    }
}

/// One checked frame.
#[derive(Debug)]
pub struct Frame {
    header: Header,
    payload: Payload,
}

impl Frame {
    /// Makes a frame without a copy of its payload.
    ///
    /// # Errors
    /// [`FrameError::TooLarge`] above the bound of the kind; [`FrameError::Field`] and
    /// [`FrameError::UnknownFlag`] if the header has what its kind does not carry, or lacks what
    /// it does.
    pub fn new(header: Header, payload: Vec<u8>) -> Result<Self, FrameError> {
        let payload = Payload::new(header.kind, payload);
        check_length(header.kind, payload.as_slice().len())?;
        header.check()?;
        Ok(Self { header, payload })
    }

    /// Joins a header that was checked with a payload of the length that it gave.
    pub(crate) const fn from_checked(header: Header, payload: Payload) -> Self {
        Self { header, payload }
    }

    /// Returns the header.
    pub const fn header(&self) -> &Header {
        &self.header
    }

    /// Returns the kind.
    pub const fn kind(&self) -> Kind {
        self.header.kind
    }

    /// Returns the payload's bytes.
    pub fn payload(&self) -> &[u8] {
        self.payload.as_slice()
    }

    /// Gives the payload away.
    pub fn into_payload(self) -> Payload {
        self.payload
    }

    /// Returns the header as it travels, so that a payload can be written behind it without a copy.
    pub fn header_bytes(&self) -> [u8; HEADER_BYTES] {
        self.header.to_bytes(self.payload().len())
    }

    /// Returns how many bytes the frame takes on the wire.
    pub fn wire_bytes(&self) -> usize {
        HEADER_BYTES + self.payload().len()
    }
}

/// Appends a frame as it travels.
pub fn encode(frame: &Frame, out: &mut Vec<u8>) {
    out.reserve(frame.wire_bytes());
    out.extend_from_slice(&frame.header_bytes());
    out.extend_from_slice(frame.payload());
}

fn check_length(kind: Kind, bytes: usize) -> Result<(), FrameError> {
    let bytes_max = kind.payload_bytes_max();
    if bytes > bytes_max {
        return Err(FrameError::TooLarge { bytes, bytes_max });
    }
    // An empty chunk would take a place in the output and move nothing.
    if kind == Kind::Chunk && bytes == 0 {
        return Err(FrameError::Field("length"));
    }
    Ok(())
}

const fn stream_number(stream: Option<StreamName>) -> u8 {
    match stream {
        None => 0,
        Some(StreamName::Stdout) => 1,
        Some(StreamName::Stderr) => 2,
    }
}

const fn stream_from_number(number: u8) -> Result<Option<StreamName>, FrameError> {
    match number {
        0 => Ok(None),
        1 => Ok(Some(StreamName::Stdout)),
        2 => Ok(Some(StreamName::Stderr)),
        unknown => Err(FrameError::UnknownStream(unknown)),
    }
}

fn array<const N: usize>(bytes: &[u8; HEADER_BYTES], start: usize) -> [u8; N] {
    bytes[start..start + N].try_into().expect("the range has N bytes within the header")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk_header() -> Header {
        Header {
            kind: Kind::Chunk,
            stream: Some(StreamName::Stderr),
            flags: Flags::NONE,
            generation: Generation::new(7),
            sequence: 3,
            offset: 1 << 40,
        }
    }

    #[test]
    fn the_header_has_fixed_places() {
        let frame = Frame::new(chunk_header(), vec![1, 2, 3]).unwrap();
        let bytes = frame.header_bytes();
        assert_eq!(&bytes[..8], &[3, 0, 0, 0, 48, 2, 0, 0]);
        assert_eq!(bytes[8..16], 7_u64.to_le_bytes());
        assert_eq!(bytes[16..24], 3_u64.to_le_bytes());
        assert_eq!(bytes[24..32], (1_u64 << 40).to_le_bytes());
        assert_eq!(Header::from_bytes(&bytes, LinkKind::Data), Ok((chunk_header(), 3)));
    }

    #[test]
    fn a_payload_above_its_bound_is_refused() {
        let bytes_max = Kind::Chunk.payload_bytes_max();
        assert!(Frame::new(chunk_header(), vec![0; bytes_max]).is_ok());
        let refused = Frame::new(chunk_header(), vec![0; bytes_max + 1]);
        assert_eq!(refused.unwrap_err(), FrameError::TooLarge { bytes: bytes_max + 1, bytes_max });
    }

    #[test]
    fn an_empty_chunk_is_refused() {
        assert_eq!(
            Frame::new(chunk_header(), Vec::new()).unwrap_err(),
            FrameError::Field("length")
        );
    }

    #[test]
    fn a_field_that_the_kind_lacks_or_needs_is_refused() {
        let plain = Header::plain(Kind::Request);
        let wrong = [
            (Header { stream: Some(StreamName::Stdout), ..plain }, FrameError::Field("stream")),
            (Header { generation: Generation::FIRST, ..plain }, FrameError::Field("generation")),
            (Header { sequence: 1, ..plain }, FrameError::Field("sequence")),
            (Header { offset: 1, ..plain }, FrameError::Field("offset")),
            (Header { flags: Flags::END, ..plain }, FrameError::UnknownFlag),
            (Header { stream: None, ..chunk_header() }, FrameError::Field("stream")),
            (Header { sequence: 0, ..chunk_header() }, FrameError::Field("sequence")),
            (Header { flags: Flags::TRUNCATED, ..chunk_header() }, FrameError::UnknownFlag),
        ];
        for (header, error) in wrong {
            assert_eq!(Frame::new(header, vec![1]).unwrap_err(), error, "{header:?}");
        }
    }

    #[test]
    fn a_payload_is_not_printed() {
        let frame = Frame::new(Header::plain(Kind::Hello), b"canary-7f3a".to_vec()).unwrap();
        assert!(!format!("{frame:?}").contains("canary"));
        assert!(!format!("{frame:?}").contains("99, 97"));
    }
}
