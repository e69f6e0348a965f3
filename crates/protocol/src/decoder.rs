//! Cutting a stream of bytes into frames, one at a time.

use crate::frame::{Frame, FrameError, Header, Payload};
use crate::kind::LinkKind;
use crate::limits::HEADER_BYTES;
use std::fmt;

/// Decodes the frames of one link from bytes as they come.
///
/// Holds at most one frame: [`Decoder::push`] takes bytes up to the end of one and none after it
/// until that frame was taken. Memory for a payload is set aside only after its length was checked
/// against the bound of its kind. After an error the link is of no use; every later push repeats
/// the error.
pub struct Decoder {
    link: LinkKind,
    header: [u8; HEADER_BYTES],
    header_bytes: usize,
    open: Option<Open>,
    ready: Option<Frame>,
}

/// A frame whose header was read and whose payload is still coming.
struct Open {
    header: Header,
    payload: Payload,
    missing_bytes: usize,
}

impl Decoder {
    /// Makes a decoder for one link.
    pub const fn new(link: LinkKind) -> Self {
        Self { link, header: [0; HEADER_BYTES], header_bytes: 0, open: None, ready: None }
    }

    /// Takes bytes up to the end of one frame and returns how many it took.
    ///
    /// # Errors
    /// [`FrameError`] as soon as a header is not one of this link.
    pub fn push(&mut self, bytes: &[u8]) -> Result<usize, FrameError> {
        if self.ready.is_some() {
            return Ok(0);
        }
        let taken = self.push_header(bytes)?;
        Ok(taken + self.push_payload(&bytes[taken..]))
    }

    /// Takes the frame that is complete, if one is.
    pub fn take_frame(&mut self) -> Option<Frame> {
        self.ready.take()
    }

    /// Says whether the bytes so far ended in the middle of a frame.
    pub const fn is_inside_frame(&self) -> bool {
        self.header_bytes > 0 || self.open.is_some()
    }

    fn push_header(&mut self, bytes: &[u8]) -> Result<usize, FrameError> {
        if self.open.is_some() {
            return Ok(0);
        }
        let taken = bytes.len().min(HEADER_BYTES - self.header_bytes);
        self.header[self.header_bytes..self.header_bytes + taken].copy_from_slice(&bytes[..taken]);
        self.header_bytes += taken;
        if self.header_bytes == HEADER_BYTES {
            // A header that is refused stays, so every later push is refused with it.
            let (header, missing_bytes) = Header::from_bytes(&self.header, self.link)?;
            self.header_bytes = 0;
            // Set aside whole, since growing would leave unwiped copies of a secret payload.
            let payload = Payload::new(header.kind, Vec::with_capacity(missing_bytes));
            self.open = Some(Open { header, payload, missing_bytes });
        }
        Ok(taken)
    }

    fn push_payload(&mut self, bytes: &[u8]) -> usize {
        let Some(mut open) = self.open.take() else { return 0 };
        let taken = bytes.len().min(open.missing_bytes);
        open.payload.extend(&bytes[..taken]);
        open.missing_bytes -= taken;
        if open.missing_bytes == 0 {
            self.ready = Some(Frame::from_checked(open.header, open.payload));
        } else {
            self.open = Some(open);
        }
        taken
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Decoder")
            .field("link", &self.link)
            .field("inside_frame", &self.is_inside_frame())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::limits::ORDER_BYTES_MAX;
    use placement_testkit::Random;

    const LINKS: [LinkKind; 3] = [LinkKind::HostPort, LinkKind::Control, LinkKind::Data];

    /// Counts the bytes that are held for a payload.
    fn held(decoder: &Decoder) -> usize {
        let open = decoder.open.as_ref().map_or(0, |open| open.payload.capacity());
        open + decoder.ready.as_ref().map_or(0, |frame| frame.payload().len())
    }

    fn header(len: u32, kind: Kind) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&len.to_le_bytes());
        bytes[4] = kind.number();
        bytes
    }

    #[test]
    fn a_length_above_the_bound_is_refused_before_memory_is_set_aside() {
        for kind in Kind::ALL {
            let bound = u32::try_from(kind.payload_bytes_max()).unwrap();
            for link in LINKS.into_iter().filter(|link| kind.belongs_to(*link)) {
                for len in [bound + 1, u32::MAX] {
                    let mut decoder = Decoder::new(link);
                    let refused = decoder.push(&header(len, *kind));
                    assert!(matches!(refused, Err(FrameError::TooLarge { .. })), "{kind:?}");
                    assert_eq!(held(&decoder), 0);
                }
            }
        }
    }

    #[test]
    fn no_more_is_held_than_the_length_that_was_checked() {
        let mut random = Random::seeded(0x51ee);
        for _ in 0..20 {
            let length = 1 + usize::try_from(random.below(ORDER_BYTES_MAX as u64)).unwrap();
            let mut decoder = Decoder::new(LinkKind::HostPort);
            let header = header(u32::try_from(length).unwrap(), Kind::Order);
            assert_eq!(decoder.push(&header), Ok(HEADER_BYTES));
            let wire = vec![7; length + 100];
            let mut rest = &wire[..];
            while decoder.ready.is_none() {
                let piece = 1 + usize::try_from(random.below(rest.len() as u64)).unwrap();
                let taken = decoder.push(&rest[..piece]).unwrap();
                assert_eq!(held(&decoder), length);
                rest = &rest[taken..];
            }
            assert_eq!(decoder.push(rest), Ok(0), "nothing behind it before it was taken");
        }
    }
}
