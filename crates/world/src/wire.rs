//! The sockets of an attempt's runner, opened by hand beside the service.

use crate::PATIENCE;
use camino::Utf8Path;
use placement::{AttemptId, Generation, SystemClock};
use placement_contract::{RecipientId, Secret};
use placement_protocol::{
    ControlAnswer, ControlCall, ControlReply, ControlRequest, Expected, FromRecipient, FromRunner,
    Hello, Input, InputAck, LinkKind, RefusedWhy, Token,
};
use placement_store::{Role, Store, StorePaths};
use placement_transport::{HelloError, Link, LinkError, connect, open};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Instant;

/// One of the two sockets of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Socket {
    /// Where the runner is asked.
    Control,
    /// Where its recipient gets the output.
    Data,
}

impl Socket {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Control, Self::Data];

    /// Returns its name in the attempt's directory.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Control => "control",
            Self::Data => "data",
        }
    }
}

/// Opens the sockets of one attempt's runner with whatever is claimed.
#[derive(Debug)]
pub struct Door {
    directory: File,
    attempt_id: AttemptId,
    token: Vec<u8>,
}

/// Why a link did not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shut {
    /// The runner closed it without a word.
    Silently,
    /// The runner said why.
    Because(RefusedWhy),
}

/// A control link.
#[derive(Debug)]
pub struct Control {
    link: Link,
    attempt_id: AttemptId,
    probe: u64,
}

/// A data link.
#[derive(Debug)]
pub struct Data {
    link: Link,
    generation: Generation,
}

impl Door {
    /// Finds the sockets of an attempt and its token, as only its user can.
    #[track_caller]
    pub(crate) fn of(root: &Utf8Path, attempt_id: &AttemptId) -> Self {
        let paths = StorePaths::below(root);
        let store = Store::open(&paths, Role::Service, Arc::new(SystemClock));
        let store = store.expect("the store can be opened");
        let row = store.find_any(attempt_id).expect("the store can be read");
        let key = row.and_then(|row| row.home_key).expect("a started attempt has a directory");
        let directory = File::open(root.join("attempts").join(key));
        let directory = directory.expect("the attempt directory can be opened");
        let token = store.find_authority(attempt_id).expect("the store can be read");
        let token = token.expect("a started attempt has a token").expose().to_vec();
        Self { directory, attempt_id: attempt_id.clone(), token }
    }

    /// Returns a door to the same sockets for somebody who does not know the token.
    ///
    /// # Panics
    /// When no descriptor can be had.
    #[must_use]
    pub fn without_the_token(&self) -> Self {
        let mut token = self.token.clone();
        token[0] ^= 1;
        let directory = self.directory.try_clone().expect("a descriptor can be had");
        Self { directory, attempt_id: self.attempt_id.clone(), token }
    }

    /// Returns a door to the same sockets for somebody who has the token of another attempt.
    ///
    /// # Panics
    /// When no descriptor can be had.
    #[must_use]
    pub fn with_the_token_of(&self, other: &Self) -> Self {
        let directory = self.directory.try_clone().expect("a descriptor can be had");
        Self { directory, attempt_id: self.attempt_id.clone(), token: other.token.clone() }
    }

    /// Returns a door to the same sockets for somebody who means another attempt.
    ///
    /// # Panics
    /// When no descriptor can be had.
    #[must_use]
    pub fn in_the_name_of(&self, other: &Self) -> Self {
        let directory = self.directory.try_clone().expect("a descriptor can be had");
        Self { directory, attempt_id: other.attempt_id.clone(), token: other.token.clone() }
    }

    /// Returns the token, for a test that looks where it must not be.
    pub fn token_bytes(&self) -> &[u8] {
        &self.token
    }

    /// Connects and says nothing.
    ///
    /// # Errors
    /// The kernel's answer.
    pub fn knock(&self, socket: Socket) -> std::io::Result<UnixStream> {
        let directory = self.directory.as_raw_fd();
        UnixStream::connect(format!("/proc/self/fd/{directory}/{}", socket.name()))
    }

    /// Returns the bytes of a hello that is right on a socket, for the recipient that is bound.
    ///
    /// # Panics
    /// When the recipient is no id.
    pub fn hello(&self, socket: Socket, recipient: &str, generation: u64) -> Vec<u8> {
        let hello = match socket {
            Socket::Control => Hello::control(self.attempt_id.clone(), self.token()),
            Socket::Data => {
                let recipient = RecipientId::parse(recipient);
                let recipient = recipient.expect("a recipient of a test is an id");
                let generation = Generation::new(generation);
                Hello::data(self.attempt_id.clone(), self.token(), generation, recipient)
            }
        };
        let frame = hello.to_frame().expect("a hello fits a frame");
        [&frame.header_bytes()[..], frame.payload()].concat()
    }

    /// Opens a control link and says no hello.
    ///
    /// # Panics
    /// When there is no socket.
    #[track_caller]
    pub fn control_without_a_hello(&self) -> Control {
        let deadline = Instant::now() + PATIENCE;
        let stream = connect(self.directory.as_fd(), Socket::Control.name(), deadline);
        let link = Link::new(stream.expect("the runner listens"), LinkKind::Control);
        Control { link, attempt_id: self.attempt_id.clone(), probe: 0 }
    }

    /// Opens a control link.
    ///
    /// # Errors
    /// [`Shut`] as the runner answers the hello.
    ///
    /// # Panics
    /// When there is no socket.
    #[track_caller]
    pub fn control(&self) -> Result<Control, Shut> {
        let hello = Hello::control(self.attempt_id.clone(), self.token());
        let link = self.open(Socket::Control, LinkKind::Control, &hello)?;
        Ok(Control { link, attempt_id: self.attempt_id.clone(), probe: 0 })
    }

    /// Opens a data link as a recipient with an attachment.
    ///
    /// # Errors
    /// [`Shut`] as the runner answers the hello.
    ///
    /// # Panics
    /// When there is no socket.
    #[track_caller]
    pub fn data(&self, recipient: &str, generation: u64) -> Result<Data, Shut> {
        let generation = Generation::new(generation);
        let recipient = RecipientId::parse(recipient).expect("a recipient of a test is an id");
        let hello = Hello::data(self.attempt_id.clone(), self.token(), generation, recipient);
        let link = self.open(Socket::Data, LinkKind::Data, &hello)?;
        Ok(Data { link, generation })
    }

    #[track_caller]
    fn open(&self, socket: Socket, kind: LinkKind, hello: &Hello) -> Result<Link, Shut> {
        let deadline = Instant::now() + PATIENCE;
        let stream = connect(self.directory.as_fd(), socket.name(), deadline);
        let stream = stream.expect("the runner listens");
        let mut link = Link::new(stream, kind);
        match open(&mut link, hello, deadline) {
            Ok(_) => Ok(link),
            Err(HelloError::Refused(refused)) => Err(Shut::Because(refused.reason)),
            Err(HelloError::Link(LinkError::Closed)) => Err(Shut::Silently),
            Err(error) => panic!("neither opened nor shut: {error}"),
        }
    }

    fn token(&self) -> Token {
        Token::from_secret(Secret::new(self.token.clone())).expect("as long as it was recorded")
    }
}

impl Control {
    /// Asks, and returns the answer; nothing where the runner closes the link instead.
    ///
    /// # Panics
    /// When the answer is to something else.
    #[track_caller]
    pub fn ask(&mut self, call: ControlCall, brings: Option<OwnedFd>) -> Option<ControlAnswer> {
        self.probe += 1;
        let attempt_id = self.attempt_id.clone();
        let request = ControlRequest { attempt_id, probe: self.probe, call };
        let frame = request.to_frame().expect("a call fits a frame");
        let deadline = Instant::now() + PATIENCE;
        let answer = match brings {
            Some(descriptor) => self.link.call_with_descriptor(frame, descriptor, deadline),
            None => self.link.call(frame, deadline),
        };
        let frame = match answer {
            Ok(frame) => frame,
            Err(LinkError::Closed) => return None,
            Err(error) => panic!("neither an answer nor an end: {error}"),
        };
        let said: ControlReply =
            serde_json::from_slice(frame.payload()).expect("an answer is JSON");
        let expected = Expected {
            attempt_id: &self.attempt_id,
            generation: said.generation,
            probe: self.probe,
        };
        let reply = ControlReply::from_frame(&frame, &expected).expect("it answers this call");
        Some(reply.answer)
    }
}

impl Data {
    /// Returns the next message; nothing once the runner has closed the link.
    ///
    /// # Panics
    /// When nothing comes in a minute.
    #[track_caller]
    pub fn receive(&mut self) -> Option<FromRunner> {
        match self.link.receive(Instant::now() + PATIENCE) {
            Ok(frame) => Some(FromRunner::from_frame(frame).expect("a message of a runner")),
            Err(LinkError::Closed) => None,
            Err(error) => panic!("neither a message nor an end: {error}"),
        }
    }

    /// Sends a message.
    ///
    /// # Panics
    /// When the runner does not take it in a minute.
    #[track_caller]
    pub fn send(&mut self, message: FromRecipient) {
        let frame = message.into_frame().expect("a message of a test fits a frame");
        self.link.send(frame, Instant::now() + PATIENCE).expect("the runner takes it");
    }

    /// Waits for the answer to a write; output that comes before it is acknowledged and added
    /// to `said`.
    ///
    /// # Panics
    /// When the link or the runner ends.
    #[track_caller]
    pub fn answer(&mut self, said: &mut Vec<u8>) -> InputAck {
        loop {
            match self.receive().expect("the link stays open") {
                FromRunner::InputAck(ack) => return ack,
                FromRunner::Chunk(chunk) => {
                    said.extend(chunk.bytes);
                    self.acknowledge(chunk.sequence);
                }
                FromRunner::Eof(_) | FromRunner::Exit { .. } | FromRunner::ResizeAck(_) => {}
                FromRunner::Finished { .. } => panic!("the runner ended"),
            }
        }
    }

    /// Waits until the child has said this, besides what it said before; acknowledges it.
    ///
    /// # Panics
    /// When it says something else or the link ends.
    #[track_caller]
    pub fn hear(&mut self, said: &mut Vec<u8>, wanted: &[u8]) {
        while said != wanted {
            if let FromRunner::Chunk(chunk) = self.receive().expect("the link stays open") {
                said.extend(chunk.bytes);
                self.acknowledge(chunk.sequence);
            }
            assert!(wanted.starts_with(said), "{}", String::from_utf8_lossy(said));
        }
    }

    /// Acknowledges everything up to a sequence.
    ///
    /// # Panics
    /// As [`Data::send`].
    #[track_caller]
    pub fn acknowledge(&mut self, through: u64) {
        self.send(FromRecipient::Ack { generation: self.generation, through });
    }

    /// Sends input under a number, as an attachment that need not be the own one.
    ///
    /// # Panics
    /// As [`Data::send`].
    #[track_caller]
    pub fn write(&mut self, generation: u64, write_id: u64, bytes: &[u8]) {
        let generation = Generation::new(generation);
        let input = Input { write_id, generation, end: false, bytes: bytes.to_vec() };
        self.send(FromRecipient::Input(input));
    }
}
