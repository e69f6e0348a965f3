//! Unix sockets by descriptor, peer credentials, descriptor passing and the framed link.
//!
//! **Owns** the way bytes take between two processes of one machine: sockets that are bound and
//! connected through a directory's descriptor ([`bind`], [`connect`], [`pair`]), who is at the
//! other end ([`Stream::peer`], [`Stream::peer_pidfd`]), and the [`Link`] that carries frames over
//! them. **Never** interprets a message but the first of a link ([`Gate`]), signals anybody, or
//! holds more than its bounds for a peer that does not read. **Limits**: Linux; both ends belong to
//! one user; `/proc` must be mounted, since a path through `/proc/self/fd` is what makes a socket in
//! a deep directory reachable at all (`sun_path` has 108 bytes).
//!
//! A link neither blocks nor starts threads: [`Link::fill`], [`Link::next_frame`],
//! [`Link::queue`] and [`Link::flush`] fit any poll loop. [`Link::call`], [`Link::send`] and
//! [`Link::receive`] wait, always with a deadline on the monotonic clock.
//!
//! Reading order: `limits`, `address`, `stream`, `peer`, `bind`, `connect`, `descriptor`, `link`,
//! `wait`, `hello`.
//!
//! ```
//! use placement_contract::AttemptId;
//! use placement_protocol::{Hello, LinkKind, Token};
//! use placement_transport::{Gate, Link, Stream, open, pair};
//! use std::time::{Duration, Instant};
//!
//! let deadline = Instant::now() + Duration::from_secs(2);
//! let attempt = AttemptId::parse("build-17")?;
//! let (near, far) = pair()?;
//! let runner = std::thread::spawn(move || {
//!     let mut link = Link::new(Stream::adopt(far)?, LinkKind::Control);
//!     let token = Token::new([7; 32]);
//!     let attempt = AttemptId::parse("build-17").expect("within bounds");
//!     Gate::attempt(LinkKind::Control, &attempt, &token).admit(&mut link, deadline)?;
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(link)
//! });
//!
//! let mut link = Link::new(Stream::adopt(near)?, LinkKind::Control);
//! let welcome = open(&mut link, &Hello::control(attempt, Token::new([7; 32])), deadline)?;
//! assert_eq!(welcome.version, 1);
//! # runner.join().expect("no panic").expect("admitted");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
