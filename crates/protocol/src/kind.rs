//! Kinds of frames: their numbers, the links they belong to, and what their header carries.

use crate::frame::Flags;
use crate::limits::{JSON_BYTES_MAX, ORDER_BYTES_MAX};
use placement_contract::limits::{CHUNK_BYTES_MAX, WRITE_BYTES_MAX};
use serde::{Deserialize, Serialize};

/// A connection between two processes of one attempt; links are never mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkKind {
    /// The socket pair over which the runner is given its order.
    HostPort,
    /// Stop, attach, status and closing the input.
    Control,
    /// Output, acknowledgments and input.
    Data,
}

/// What a frame is; the number is its wire form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// The first frame of whoever connected.
    Hello = 1,
    /// The answer that lets the link go on.
    Welcome = 2,
    /// The answer that ends the link.
    HelloRefused = 3,
    /// What the runner is to do.
    Order = 16,
    /// The child runs.
    Started = 17,
    /// The child does not run.
    StartRefused = 18,
    /// What a probe measured.
    ProbeReport = 19,
    /// A call over the control link.
    Request = 32,
    /// The answer to a call.
    Reply = 33,
    /// Bytes of output.
    Chunk = 48,
    /// The end of one output stream.
    Eof = 49,
    /// The exit of the child.
    Exit = 50,
    /// The runner ends in order; nothing more comes on this link.
    Finished = 51,
    /// The recipient has consumed the output up to a sequence.
    Ack = 52,
    /// Bytes for the child's input.
    Input = 53,
    /// Whether input was accepted.
    InputAck = 54,
    /// A new size of the child's window.
    Resize = 55,
    /// Whether the window has it.
    ResizeAck = 56,
}

/// Which fields of the header a kind carries; the others must be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Carries {
    /// Stream and offset.
    pub(crate) output: bool,
    pub(crate) generation: bool,
    pub(crate) sequence: bool,
    pub(crate) flags: Flags,
}

impl Carries {
    const NOTHING: Self =
        Self { output: false, generation: false, sequence: false, flags: Flags::NONE };
    const GENERATION: Self = Self { generation: true, ..Self::NOTHING };
    const SEQUENCE: Self = Self { sequence: true, ..Self::GENERATION };
    const OUTPUT: Self = Self { output: true, ..Self::SEQUENCE };
}

impl Kind {
    /// Every kind.
    pub const ALL: &'static [Self] = &[
        Self::Hello,
        Self::Welcome,
        Self::HelloRefused,
        Self::Order,
        Self::Started,
        Self::StartRefused,
        Self::ProbeReport,
        Self::Request,
        Self::Reply,
        Self::Chunk,
        Self::Eof,
        Self::Exit,
        Self::Finished,
        Self::Ack,
        Self::Input,
        Self::InputAck,
        Self::Resize,
        Self::ResizeAck,
    ];

    /// Finds the kind with a number.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.number() == number)
    }

    /// Returns the number.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// Says whether a frame of this kind may travel on a link.
    pub const fn belongs_to(self, link: LinkKind) -> bool {
        match self {
            Self::Hello | Self::Welcome | Self::HelloRefused => true,
            Self::Order | Self::Started | Self::StartRefused | Self::ProbeReport => {
                matches!(link, LinkKind::HostPort)
            }
            Self::Request | Self::Reply => matches!(link, LinkKind::Control),
            Self::Chunk
            | Self::Eof
            | Self::Exit
            | Self::Finished
            | Self::Ack
            | Self::Input
            | Self::InputAck
            | Self::Resize
            | Self::ResizeAck => matches!(link, LinkKind::Data),
        }
    }

    /// Returns the largest payload, in bytes.
    pub const fn payload_bytes_max(self) -> usize {
        match self {
            Self::Order => ORDER_BYTES_MAX,
            Self::Chunk => CHUNK_BYTES_MAX,
            Self::Input => WRITE_BYTES_MAX,
            Self::Eof | Self::Finished | Self::Ack => 0,
            Self::Hello
            | Self::Welcome
            | Self::HelloRefused
            | Self::Started
            | Self::StartRefused
            | Self::ProbeReport
            | Self::Request
            | Self::Reply
            | Self::Exit
            | Self::InputAck
            | Self::Resize
            | Self::ResizeAck => JSON_BYTES_MAX,
        }
    }

    /// Says whether the payload holds a token or a secret value, and is wiped when dropped.
    pub const fn is_secret(self) -> bool {
        matches!(self, Self::Hello | Self::Order)
    }

    pub(crate) const fn carries(self) -> Carries {
        match self {
            Self::Chunk => Carries::OUTPUT,
            Self::Eof => Carries { flags: Flags::TRUNCATED, ..Carries::OUTPUT },
            Self::Exit | Self::Finished => Carries::GENERATION,
            Self::Ack | Self::Resize => Carries::SEQUENCE,
            Self::Input => Carries { flags: Flags::END, ..Carries::SEQUENCE },
            Self::InputAck | Self::ResizeAck => {
                Carries { flags: Flags::ACCEPTED, ..Carries::SEQUENCE }
            }
            Self::Hello
            | Self::Welcome
            | Self::HelloRefused
            | Self::Order
            | Self::Started
            | Self::StartRefused
            | Self::ProbeReport
            | Self::Request
            | Self::Reply => Carries::NOTHING,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_names_one_kind() {
        let known = (0..=u8::MAX).filter_map(Kind::from_number).collect::<Vec<_>>();
        assert_eq!(known, Kind::ALL);
    }

    #[test]
    fn after_the_hello_a_kind_belongs_to_one_link() {
        let links = [LinkKind::HostPort, LinkKind::Control, LinkKind::Data];
        for kind in Kind::ALL {
            let count = links.iter().filter(|link| kind.belongs_to(**link)).count();
            let hello = matches!(kind, Kind::Hello | Kind::Welcome | Kind::HelloRefused);
            assert_eq!(count, if hello { 3 } else { 1 }, "{kind:?}");
        }
    }

    #[test]
    fn only_an_order_is_larger_than_a_chunk() {
        for kind in Kind::ALL {
            assert_eq!(kind.payload_bytes_max() > CHUNK_BYTES_MAX, *kind == Kind::Order);
        }
    }
}
