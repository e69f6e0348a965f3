//! Everything the runner answers: the control socket, the data socket, and who is bound.
//!
//! Control and data never mix: control answers while the data link is full, or has nobody.

use placement_contract::{AttemptId, ExecutionState, Generation, RecipientId};
use placement_protocol::{
    ControlAnswer, ControlReply, ControlRequest, Frame, FromRecipient, FromRunner, HelloRefused,
    LinkKind, RefusedWhy, Token,
};
use placement_transport::{Admitted, Filled, Gate, Link, LinkError, Listener, Stream, Verdict};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Connections that are held at once, besides the bound data link: a few services and commands.
const PEERS_MAX: usize = 32;
/// Time in which a connection says hello.
const HELLO: Duration = Duration::from_secs(2);
/// Reads of a link that is closed: more than a socket holds, and no end for one who goes on writing.
const LAST_READS_MAX: usize = 8;
/// Silence after which a connection makes room for another one: a part of the fence, since a call
/// may have to wait for it. Whoever only waits for the end looks for it in another way then.
const SILENT: Duration = Duration::from_millis(500);
/// Time after which a connection without a hello makes room: whoever means to call says it at once,
/// and as many strangers as there is room for must not hold a call up for the fence.
const SPEECHLESS: Duration = Duration::from_millis(100);

/// The runner's sockets and the peers on them.
#[derive(Debug)]
pub(crate) struct Desk {
    attempt_id: AttemptId,
    token: Token,
    generation: Generation,
    recipient: RecipientId,
    sockets: Option<Sockets>,
    peers: Vec<Peer>,
    data: Option<Link>,
    /// What had come over data links that were closed since.
    last_words: Vec<FromRecipient>,
    next_peer: u32,
    /// Until then nobody makes room, and who connects waits in the socket's queue.
    full_until: Option<Instant>,
}

#[derive(Debug)]
struct Sockets {
    control: Listener,
    data: Listener,
}

#[derive(Debug)]
struct Peer {
    number: u32,
    link: Link,
    /// Admitted peers have no deadline.
    hello_by: Option<Instant>,
    /// When it connected, or said something whole: single bytes are no sign of life.
    heard: Instant,
}

impl Peer {
    /// Returns when it makes room for another one.
    fn yields_at(&self) -> Instant {
        self.heard + if self.hello_by.is_some() { SPEECHLESS } else { SILENT }
    }
}

/// What the loop polls for the desk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seat {
    ControlSocket,
    DataSocket,
    Peer(u32),
    Data,
}

/// What a peer asks of the loop.
#[derive(Debug)]
pub(crate) enum Ask {
    /// A control call; answered by [`Desk::answer`].
    Control { peer: u32, request: ControlRequest, brought: Brought },
    /// The bound recipient has a new data link.
    DataOpened,
    /// A message of the bound recipient.
    Data(FromRecipient),
}

/// What came with a control call.
#[derive(Debug)]
pub(crate) enum Brought {
    Nothing,
    /// A descriptor of the very process that is connected.
    ThePeer(OwnedFd),
    /// A descriptor of something else.
    SomethingElse,
}

impl Desk {
    /// Opens no socket yet.
    pub(crate) fn new(
        attempt_id: AttemptId,
        token: Token,
        generation: Generation,
        recipient: RecipientId,
    ) -> Self {
        Self {
            attempt_id,
            token,
            generation,
            recipient,
            sockets: None,
            peers: Vec::new(),
            data: None,
            last_words: Vec::new(),
            next_peer: 0,
            full_until: None,
        }
    }

    /// Answers from here on.
    pub(crate) fn listen(&mut self, control: Listener, data: Listener) {
        self.sockets = Some(Sockets { control, data });
    }

    /// Returns the current attachment.
    pub(crate) fn generation(&self) -> Generation {
        self.generation
    }

    /// Binds another recipient; the data link of the former one is closed before.
    pub(crate) fn bind_recipient(&mut self, generation: Generation, recipient: RecipientId) {
        self.generation = generation;
        self.recipient = recipient;
        self.drop_data();
    }

    /// Lists what to poll, and whether for writing too.
    pub(crate) fn seats(&self) -> impl Iterator<Item = (Seat, BorrowedFd<'_>, bool)> {
        let sockets = self.sockets.iter().filter(|_| self.full_until.is_none());
        let sockets = sockets.flat_map(|sockets| {
            [
                (Seat::ControlSocket, sockets.control.as_fd(), false),
                (Seat::DataSocket, sockets.data.as_fd(), false),
            ]
        });
        let peers = self
            .peers
            .iter()
            .map(|peer| (Seat::Peer(peer.number), peer.link.as_fd(), peer.link.wants_write()));
        let data = self.data.iter().map(|link| (Seat::Data, link.as_fd(), link.wants_write()));
        sockets.chain(peers).chain(data)
    }

    /// Serves one seat that is ready and returns what was asked there.
    pub(crate) fn serve(&mut self, seat: Seat, now: Instant) -> Vec<Ask> {
        match seat {
            Seat::ControlSocket | Seat::DataSocket => {
                self.accept(seat, now);
                Vec::new()
            }
            Seat::Peer(number) => self.serve_peer(number, now),
            Seat::Data => self.serve_data(),
        }
    }

    /// Closes connections that said no hello in time, and listens again where there is room.
    pub(crate) fn expire(&mut self, now: Instant) {
        self.peers.retain(|peer| peer.hello_by.is_none_or(|by| now < by));
        if self.peers.len() < PEERS_MAX {
            self.full_until = None;
        }
        self.full_until = self.full_until.filter(|until| now < *until);
    }

    /// Returns when [`Desk::expire`] has something to do.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        self.peers.iter().filter_map(|peer| peer.hello_by).chain(self.full_until).min()
    }

    /// Answers a control call; a peer that does not take its answer is closed.
    pub(crate) fn answer(&mut self, peer: u32, probe: u64, answer: ControlAnswer) {
        let reply = ControlReply {
            attempt_id: self.attempt_id.clone(),
            generation: self.generation,
            probe,
            answer,
        };
        let frame = reply.to_frame().expect("an answer is within the bounds of a frame");
        let Some(index) = self.peers.iter().position(|known| known.number == peer) else { return };
        let link = &mut self.peers[index].link;
        if link.queue(frame).is_err() || link.flush().is_err() {
            self.peers.swap_remove(index);
        }
    }

    /// Returns the bound recipient's link.
    pub(crate) fn data(&mut self) -> Option<&mut Link> {
        self.data.as_mut()
    }

    /// Closes the bound recipient's link; what came over it before is not lost with it.
    ///
    /// A host that acknowledged and was killed then must not cause that to be sent again.
    pub(crate) fn drop_data(&mut self) {
        let Some(mut link) = self.data.take() else { return };
        for _ in 0..LAST_READS_MAX {
            let Ok(frames) = read(&mut link) else { return };
            let frames = frames.into_iter().map(|(frame, _)| frame);
            let messages = frames.map_while(|frame| FromRecipient::from_frame(frame).ok());
            self.last_words.extend(messages);
        }
    }

    /// Returns what had come over data links that were closed since.
    pub(crate) fn take_last_words(&mut self) -> Vec<FromRecipient> {
        std::mem::take(&mut self.last_words)
    }

    /// Sends the bound recipient a message beside the output.
    pub(crate) fn tell(&mut self, message: FromRunner) {
        let frame = message.into_frame().expect("a notice is within the bounds of a frame");
        if self.data.as_mut().is_some_and(|link| link.queue(frame).is_err()) {
            self.drop_data();
        }
        self.flush_data();
    }

    /// Writes to the bound recipient what its socket takes.
    pub(crate) fn flush_data(&mut self) {
        if self.data.as_mut().is_some_and(|link| link.flush().is_err()) {
            self.drop_data();
        }
    }

    /// Accepts one connection; the next one is accepted in the next turn, after those that have
    /// something to say.
    fn accept(&mut self, seat: Seat, now: Instant) {
        if !self.make_room(now) {
            return;
        }
        let Some(sockets) = &self.sockets else { return };
        let (listener, kind) = match seat {
            Seat::DataSocket => (&sockets.data, LinkKind::Data),
            Seat::ControlSocket | Seat::Peer(_) | Seat::Data => {
                (&sockets.control, LinkKind::Control)
            }
        };
        // A stranger's connection is closed by the accept; the listener goes on.
        if let Ok(Some(stream)) = listener.accept() {
            self.next_peer = self.next_peer.wrapping_add(1);
            let (number, link) = (self.next_peer, Link::new(stream, kind));
            self.peers.push(Peer { number, link, hello_by: Some(now + HELLO), heard: now });
        }
    }

    /// Closes the connection whose turn to make room it was first, if it has come; says whether there
    /// is room now.
    fn make_room(&mut self, now: Instant) -> bool {
        if self.peers.len() < PEERS_MAX {
            return true;
        }
        let peers = self.peers.iter().enumerate();
        let Some((index, first)) = peers.min_by_key(|(_, peer)| peer.yields_at()) else {
            return true;
        };
        let until = first.yields_at();
        if now < until {
            self.full_until = Some(until);
            return false;
        }
        self.peers.swap_remove(index);
        true
    }

    fn serve_peer(&mut self, number: u32, now: Instant) -> Vec<Ask> {
        let Some(index) = self.peers.iter().position(|peer| peer.number == number) else {
            return Vec::new();
        };
        let mut asks = Vec::new();
        let Ok(frames) = read(&mut self.peers[index].link) else {
            self.peers.swap_remove(index);
            return asks;
        };
        if !frames.is_empty() {
            self.peers[index].heard = now;
        }
        for (frame, descriptor) in frames {
            let admitted = self.peers[index].hello_by.is_none();
            let kind = self.peers[index].link.kind();
            if !admitted {
                if !self.greet(index, kind, &frame) {
                    self.peers.swap_remove(index);
                    return asks;
                }
                if kind == LinkKind::Data {
                    let peer = self.peers.swap_remove(index);
                    self.drop_data();
                    self.data = Some(peer.link);
                    asks.push(Ask::DataOpened);
                    return asks;
                }
                continue;
            }
            match ControlRequest::from_frame(&frame) {
                Ok(request) if request.attempt_id == self.attempt_id => {
                    let brought = examine(self.peers[index].link.stream(), descriptor);
                    asks.push(Ask::Control { peer: number, request, brought });
                }
                Ok(_) | Err(_) => {
                    self.peers.swap_remove(index);
                    return asks;
                }
            }
        }
        if self.peers[index].link.flush().is_err() {
            self.peers.swap_remove(index);
        }
        asks
    }

    /// Judges a hello and answers it; says whether the peer stays.
    fn greet(&mut self, index: usize, kind: LinkKind, frame: &Frame) -> bool {
        let verdict = Gate::attempt(kind, &self.attempt_id, &self.token).judge(frame);
        let refused = match verdict {
            Verdict::Silent(_) => return false,
            Verdict::Refused(why) => Some(why),
            Verdict::Admitted(ref admitted) if kind == LinkKind::Data => self.unfit(admitted),
            Verdict::Admitted(_) => None,
        };
        let peer = &mut self.peers[index];
        let answer = match (verdict, refused) {
            (Verdict::Admitted(admitted), None) => admitted.welcome(),
            (_, Some(why)) => HelloRefused::new(why).to_frame().expect("a refusal fits a frame"),
            (Verdict::Refused(_) | Verdict::Silent(_), None) => return false,
        };
        peer.hello_by = None;
        peer.link.queue(answer).is_ok() && peer.link.flush().is_ok() && refused.is_none()
    }

    /// Says why an admitted data link is not the bound recipient's.
    fn unfit(&self, admitted: &Admitted) -> Option<RefusedWhy> {
        if admitted.generation != Some(self.generation) {
            return Some(RefusedWhy::Generation);
        }
        if admitted.recipient.as_ref() != Some(&self.recipient) {
            return Some(RefusedWhy::Recipient);
        }
        None
    }

    fn serve_data(&mut self) -> Vec<Ask> {
        let Some(link) = &mut self.data else { return Vec::new() };
        let Ok(frames) = read(link) else {
            self.data = None;
            return Vec::new();
        };
        let mut asks = Vec::new();
        for (frame, _) in frames {
            let Ok(message) = FromRecipient::from_frame(frame) else {
                self.data = None;
                return asks;
            };
            asks.push(Ask::Data(message));
        }
        self.flush_data();
        asks
    }
}

/// Reads once and takes every whole frame, each with the descriptor that came with it.
fn read(link: &mut Link) -> Result<Vec<(Frame, Option<OwnedFd>)>, LinkError> {
    let mut frames = Vec::new();
    if link.fill()? == Filled::Nothing {
        return Ok(frames);
    }
    while let Some(frame) = link.next_frame()? {
        let descriptor = link.take_descriptor();
        frames.push((frame, descriptor));
    }
    Ok(frames)
}

/// Compares a descriptor with the one that the kernel gives for the peer: two pidfds of one process
/// share an inode. Before Linux 6.5 there is nothing to compare with.
fn examine(stream: &Stream, descriptor: Option<OwnedFd>) -> Brought {
    let Some(descriptor) = descriptor else { return Brought::Nothing };
    let inode = |of: &OwnedFd| rustix::fs::fstat(of).ok().map(|stat| (stat.st_dev, stat.st_ino));
    let same = match stream.peer_pidfd() {
        Ok(Some(peer)) => inode(&peer) == inode(&descriptor),
        Ok(None) => true,
        Err(_) => false,
    };
    if same { Brought::ThePeer(descriptor) } else { Brought::SomethingElse }
}

/// What a status answer starts from, before anything is known.
pub(crate) const FIRST_STATE: ExecutionState = ExecutionState::Starting;
