//! Messages and framing between service, runner and recipient, without any I/O.
//!
//! **Owns** the one frame header that every link uses, the messages of the three links (host port,
//! control, data), and the two memories that make delivery exact: the acknowledgment [`window`]
//! and the ids of input [`writes`]. **Never** reads, writes, waits or allocates by a length that
//! was not checked. **Limits**: this build speaks protocol version 1 only; authority calls over the
//! host port are not part of it.
//!
//! A link starts with a [`Hello`] from whoever connected, answered by [`Welcome`] or
//! [`HelloRefused`], each with its version pair. After that every frame must be of a kind that
//! belongs to the link, so control and data are never mixed.
//!
//! | link | towards the runner | from the runner |
//! |---|---|---|
//! | host port | [`Order`] | [`OrderReply`] |
//! | control | [`ControlRequest`] | [`ControlReply`] |
//! | data | [`FromRecipient`] | [`FromRunner`] |
//!
//! Reading order: `limits`, `kind`, `frame`, `decoder`, `version`, `token`, `hello`, `order`,
//! `control`, `reply`, `data`, `resize`, [`window`], [`writes`].
//!
//! ```
//! use placement_contract::{Generation, StreamName};
//! use placement_protocol::{Chunk, Decoder, FromRunner, LinkKind, encode};
//!
//! let chunk = Chunk {
//!     stream: StreamName::Stdout,
//!     sequence: 1,
//!     offset: 0,
//!     generation: Generation::FIRST,
//!     bytes: b"hello".to_vec(),
//! };
//! let mut wire = Vec::new();
//! encode(&FromRunner::Chunk(chunk).into_frame()?, &mut wire);
//!
//! let mut decoder = Decoder::new(LinkKind::Data);
//! assert_eq!(decoder.push(&wire)?, wire.len());
//! let frame = decoder.take_frame().expect("one whole frame was pushed");
//! assert!(matches!(FromRunner::from_frame(frame)?, FromRunner::Chunk(c) if c.bytes == b"hello"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod control;
mod data;
mod decoder;
mod frame;
mod hello;
mod hex;
mod json;
mod kind;
pub mod limits;
mod order;
mod reply;
mod resize;
mod token;
mod version;
pub mod window;
pub mod writes;

pub use control::{Attach, ControlCall, ControlRequest, Stop, StopMode};
pub use data::{Chunk, Eof, ExitNotice, FromRecipient, FromRunner, Input, InputAck, InputRefused};
pub use decoder::Decoder;
pub use frame::{Flags, Frame, FrameError, Header, Payload, encode};
pub use hello::{Hello, HelloRefused, RefusedWhy, Welcome};
pub use json::MessageError;
pub use kind::{Kind, LinkKind};
pub use order::{Environment, LaunchOrder, Order, OrderReply, RUNNER_ARGUMENT, StoreLocation};
pub use reply::{
    AttachRefused, AttachReply, ControlAnswer, ControlReply, Expected, ReplyError, StdinRefused,
    StdinReply, StopReply,
};
pub use resize::{Resize, ResizeAck, ResizeRefused};
pub use token::Token;
pub use version::{SPOKEN, VersionRange};
pub use window::Window;
pub use writes::Writes;
