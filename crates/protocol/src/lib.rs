#![doc = include_str!("../README.md")]
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
pub use order::{
    Environment, LaunchOrder, Order, OrderReply, RUNNER_ARGUMENT, RootId, StoreLocation,
};
pub use reply::{
    AttachRefused, AttachReply, ControlAnswer, ControlReply, Expected, ReplyError, StdinRefused,
    StdinReply, StopReply,
};
pub use resize::{Resize, ResizeAck, ResizeRefused};
pub use token::Token;
pub use version::{SPOKEN, VersionRange};
pub use window::Window;
pub use writes::Writes;
