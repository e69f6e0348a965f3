//! An attachment in use: what is written comes back, whatever others do meanwhile.

use placement::{AttemptHandle, Generation};
use placement_world::protocol::{
    Attach, AttachReply, ControlAnswer, ControlCall, FromRunner, InputAck,
};
use placement_world::{Data, Door, RecipientId, World, shell};

pub(crate) const RECIPIENT: &str = "bound";

/// A child that says again what is written to it, with its bound recipient.
pub(crate) struct Living {
    pub(crate) attempt: AttemptHandle,
    pub(crate) door: Door,
    pub(crate) data: Data,
    pub(crate) generation: u64,
    written: u64,
    said: Vec<u8>,
    seen_through: u64,
}

impl Living {
    #[track_caller]
    pub(crate) fn start(world: &World) -> Self {
        let attempt = world.launch(shell("exec cat").stdin_pipe());
        let door = world.door(attempt.id());
        let (_, data) = bind(&door, 2);
        Self { attempt, door, data, generation: 2, written: 0, said: Vec::new(), seen_through: 0 }
    }

    /// Writes a line and waits until it was accepted and has come back, and nothing else has.
    #[track_caller]
    pub(crate) fn echo(&mut self) {
        self.written += 1;
        let line = format!("line {}\n", self.written);
        self.data.write(self.generation, self.written, line.as_bytes());
        let wanted = [self.said.as_slice(), line.as_bytes()].concat();
        let mut answered = false;
        while !answered || self.said != wanted {
            match self.data.receive().expect("the link stays open") {
                FromRunner::InputAck(ack) => {
                    assert_eq!(ack, accepted(self.written, self.generation));
                    answered = true;
                }
                FromRunner::Chunk(chunk) => {
                    assert_eq!(chunk.sequence, self.seen_through + 1, "no gap and no repetition");
                    assert_eq!(chunk.offset, self.said.len() as u64);
                    self.seen_through = chunk.sequence;
                    self.said.extend(chunk.bytes);
                    self.data.acknowledge(chunk.sequence);
                    assert!(wanted.starts_with(&self.said), "{:?}", self.said);
                }
                other @ (FromRunner::Eof(_)
                | FromRunner::Exit { .. }
                | FromRunner::Finished { .. }
                | FromRunner::ResizeAck(_)) => panic!("{other:?}"),
            }
        }
    }
}

/// Asks to bind the recipient of these tests, and opens its link.
#[track_caller]
pub(crate) fn bind(door: &Door, generation: u64) -> (AttachReply, Data) {
    let recipient = RecipientId::parse(RECIPIENT).expect("a short name is an id");
    let attach = Attach { recipient, generation: Generation::new(generation), adopt: false };
    let answer = door.control().expect("the token is right").ask(ControlCall::Attach(attach), None);
    let Some(ControlAnswer::Attach(reply)) = answer else { panic!("{answer:?}") };
    assert!(reply.fenced, "{reply:?}");
    (reply, door.data(RECIPIENT, generation).expect("it is bound"))
}

pub(crate) fn accepted(write_id: u64, generation: u64) -> InputAck {
    InputAck { write_id, generation: Generation::new(generation), refused: None }
}
