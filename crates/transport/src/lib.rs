#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![cfg(target_os = "linux")]

mod address;
mod bind;
mod connect;
mod descriptor;
mod hello;
pub mod limits;
mod link;
mod outgoing;
mod peer;
mod stream;
mod wait;

pub use address::NameError;
pub use bind::{AcceptError, BindError, Listener, bind};
pub use connect::{ConnectError, connect};
pub use hello::{Admitted, Gate, HelloError, Silence, Verdict, open};
pub use link::{Filled, Link, LinkError};
pub use outgoing::WouldOverflow;
pub use peer::{PeerCredentials, PeerError};
pub use stream::{Stream, StreamError, pair};
