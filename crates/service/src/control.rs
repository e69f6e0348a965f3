//! Talking to a runner over its control socket.

use crate::Service;
use crate::limits::FENCE;
use crate::places::CONTROL_SOCKET;
use placement_contract::attempt::RunnerStatus;
use placement_contract::{Generation, Refusal};
use placement_protocol::{
    Attach, AttachReply, ControlAnswer, ControlCall, ControlReply, ControlRequest, Expected, Frame,
    Hello, LinkKind, StdinReply, Stop, StopReply, Token,
};
use placement_store::Row;
use placement_transport::{Link, LinkError, connect, open};
use std::os::fd::{AsFd as _, OwnedFd};
use std::time::Instant;

/// Why a runner gave no answer that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoAnswer {
    /// Nothing was asked: there is no socket, nobody listens, or the hello was not answered.
    NotConnected,
    /// It was asked, and what became of that is not known.
    Silent,
    /// It refused the call as a whole.
    Refused(Refusal),
}

impl Service {
    /// Connects to an attempt's control socket and says hello.
    pub(crate) fn open_control(&self, row: &Row, deadline: Instant) -> Result<Link, NoAnswer> {
        let not_connected = |()| NoAnswer::NotConnected;
        let directory = self.attempt_directory(row).map_err(|_| NoAnswer::NotConnected)?;
        let directory = directory.ok_or(NoAnswer::NotConnected)?;
        let token = self.token(row).ok_or(NoAnswer::NotConnected)?;
        let stream = connect(directory.dir().as_fd(), CONTROL_SOCKET, deadline)
            .map_err(|_| ())
            .map_err(not_connected)?;
        let mut link = Link::new(stream, LinkKind::Control);
        let hello = Hello::control(row.attempt_id.clone(), token);
        open(&mut link, &hello, deadline).map_err(|_| NoAnswer::NotConnected)?;
        Ok(link)
    }

    /// Returns the token of an attempt's sockets, if one is recorded and can be read.
    pub(crate) fn token(&self, row: &Row) -> Option<Token> {
        let recorded = self.inner.reader.find_authority(&row.attempt_id).ok()??;
        Token::from_secret(recorded)
    }

    /// Asks what the runner has come to, within the fence.
    pub(crate) fn ask_status(&self, row: &Row) -> Result<RunnerStatus, NoAnswer> {
        let deadline = Instant::now() + FENCE;
        let mut link = self.open_control(row, deadline)?;
        let reply = self.call(&mut link, row, ControlCall::Status, None, deadline)?;
        let ControlAnswer::Status(status) = reply.answer else { return Err(NoAnswer::Silent) };
        Ok(status)
    }

    /// Asks the runner to end the child, within the fence.
    pub(crate) fn ask_stop(&self, row: &Row, stop: Stop) -> Result<StopReply, NoAnswer> {
        let deadline = Instant::now() + FENCE;
        let mut link = self.open_control(row, deadline)?;
        let reply = self.call(&mut link, row, ControlCall::Stop(stop), None, deadline)?;
        let ControlAnswer::Stop(reply) = reply.answer else { return Err(NoAnswer::Silent) };
        Ok(reply)
    }

    /// Asks the runner to close the child's input, within the fence.
    pub(crate) fn ask_close_stdin(&self, row: &Row) -> Result<StdinReply, NoAnswer> {
        let deadline = Instant::now() + FENCE;
        let mut link = self.open_control(row, deadline)?;
        let reply = self.call(&mut link, row, ControlCall::CloseStdin, None, deadline)?;
        let ControlAnswer::CloseStdin(reply) = reply.answer else { return Err(NoAnswer::Silent) };
        Ok(reply)
    }

    /// Asks the runner, over a link that is open, to serve a new recipient.
    pub(crate) fn ask_attach(
        &self,
        link: &mut Link,
        row: &Row,
        attach: Attach,
        host: Option<OwnedFd>,
        deadline: Instant,
    ) -> Result<AttachReply, NoAnswer> {
        let asked = attach.generation;
        let reply = self.call(link, row, ControlCall::Attach(attach), host, deadline)?;
        let ControlAnswer::Attach(answer) = reply.answer else { return Err(NoAnswer::Silent) };
        // Bound to another attachment than the one that was asked for is no fence.
        if answer.fenced && reply.generation != asked {
            return Err(NoAnswer::Silent);
        }
        Ok(answer)
    }

    fn call(
        &self,
        link: &mut Link,
        row: &Row,
        call: ControlCall,
        descriptor: Option<OwnedFd>,
        deadline: Instant,
    ) -> Result<ControlReply, NoAnswer> {
        let probe = self.next_probe();
        let request = ControlRequest { attempt_id: row.attempt_id.clone(), probe, call };
        let frame = request.to_frame().map_err(|_| NoAnswer::NotConnected)?;
        let answer: Result<Frame, LinkError> = match descriptor {
            Some(descriptor) => link.call_with_descriptor(frame, descriptor, deadline),
            None => link.call(frame, deadline),
        };
        let frame = answer.map_err(|_| NoAnswer::Silent)?;
        let generation = generation_of(&frame).ok_or(NoAnswer::Silent)?;
        let expected = Expected { attempt_id: &row.attempt_id, generation, probe };
        let reply = ControlReply::from_frame(&frame, &expected).map_err(|_| NoAnswer::Silent)?;
        if let ControlAnswer::Refused(refusal) = reply.answer {
            return Err(NoAnswer::Refused(refusal));
        }
        Ok(reply)
    }
}

/// Reads which attachment a runner serves: a host that died between its commit and the fence has
/// left the record ahead of the runner, and a stop must reach it all the same.
fn generation_of(frame: &Frame) -> Option<Generation> {
    serde_json::from_slice::<ControlReply>(frame.payload()).ok().map(|reply| reply.generation)
}
