//! Answering what comes over the sockets: control calls, acknowledgments, input.

use crate::desk::{Ask, Brought, Seat};
use crate::input::{Writer, Written};
use crate::runner::Runner;
use crate::stop::StopCause;
use placement_contract::EvidenceKind;
use placement_contract::attempt::RunnerStatus;
use placement_protocol::writes::WriteVerdict;
use placement_protocol::{
    Attach, AttachRefused, AttachReply, ControlAnswer, ControlCall, ControlRequest, FromRecipient,
    FromRunner, InputAck, InputRefused, StdinRefused, StopReply,
};
use std::time::Instant;

/// What becomes of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Judged {
    /// It is new, and there is room for it.
    Queue,
    /// It came before and waits still.
    Waits,
    /// It was written before, which is said again.
    Written,
    /// It is never written.
    Refused(InputRefused),
}

impl Runner {
    /// Serves one seat that is ready.
    pub(crate) fn serve(&mut self, seat: Seat, now: Instant) {
        for ask in self.desk.serve(seat, now) {
            match ask {
                Ask::Control { peer, request, brought } => {
                    self.answer_control(peer, request, brought);
                }
                Ask::DataOpened => self.data_opened(),
                Ask::Data(message) => self.hear(message),
            }
        }
        self.hear_last_words();
    }

    fn hear(&mut self, message: FromRecipient) {
        match message {
            FromRecipient::Ack { generation, through } => {
                let outcome = self.output.acknowledge(generation, through);
                self.note_spool(outcome);
            }
            FromRecipient::Input(input) => self.take_input(input),
            FromRecipient::Resize(resize) => self.take_resize(resize),
        }
    }

    /// Takes what had come over data links that were closed since.
    pub(crate) fn hear_last_words(&mut self) {
        for message in self.desk.take_last_words() {
            self.hear(message);
        }
    }

    fn answer_control(&mut self, peer: u32, request: ControlRequest, brought: Brought) {
        let answer = match request.call {
            ControlCall::Status => ControlAnswer::Status(self.status()),
            ControlCall::Stop(stop) => {
                let grace = stop.grace().unwrap_or(self.request.timeouts.stop_grace());
                self.request_stop(stop.mode, grace, StopCause::Asked);
                let execution = self.state;
                ControlAnswer::Stop(StopReply { accepted: true, recorded: false, execution })
            }
            ControlCall::Attach(attach) => ControlAnswer::Attach(self.attach(attach, brought)),
            ControlCall::CloseStdin => return self.close_stdin(peer, request.probe),
        };
        self.desk.answer(peer, request.probe, answer);
    }

    fn attach(&mut self, attach: Attach, brought: Brought) -> AttachReply {
        let refused = match (&brought, attach.adopt) {
            _ if attach.generation <= self.desk.generation() => Some(AttachRefused::NotNewer),
            (Brought::Nothing, true) => Some(AttachRefused::NoDescriptor),
            (Brought::SomethingElse, _) => Some(AttachRefused::NotMonitorable),
            // Each adoption is a row; a host that makes more than the scribe takes is not heard.
            _ if !self.scribe.has_room() => Some(AttachRefused::NotMonitorable),
            (Brought::Nothing | Brought::ThePeer(_), _) => None,
        };
        if refused.is_none() {
            // While its attachment is still the current one.
            self.desk.drop_data();
            self.hear_last_words();
            self.desk.bind_recipient(attach.generation, attach.recipient);
            let outcome = self.output.reattach(attach.generation);
            self.note_spool(outcome);
            if attach.adopt
                && let Brought::ThePeer(host) = brought
            {
                self.host = Some(host);
                let generation = attach.generation;
                self.record(EvidenceKind::HostAdopted, format!("generation {generation}"));
            }
        }
        AttachReply {
            fenced: refused.is_none(),
            refused,
            consumed_through: self.output.consumed_through(),
            // What waits, or was taken in part, is counted too: under its number another write would
            // pass for it.
            last_write_id: self
                .queued_write
                .max(self.writes.last())
                .max(self.torn_write.unwrap_or_default()),
        }
    }

    fn data_opened(&mut self) {
        self.hear_last_words();
        let outcome = self.output.rewind();
        self.note_spool(outcome);
        self.tell_exit();
    }

    fn status(&self) -> RunnerStatus {
        let members = self.tree.as_ref().and_then(|tree| tree.members().ok());
        RunnerStatus {
            execution: self.state,
            exit: self.exit,
            eof_seen: self.output.eof_seen(),
            unacknowledged_bytes: self.output.unacknowledged_bytes(),
            output_full: self.output.is_full(),
            generation: self.desk.generation(),
            descendants: members.map(|members| u32::try_from(members.len()).unwrap_or(u32::MAX)),
        }
    }

    fn take_input(&mut self, input: placement_protocol::Input) {
        let write_id = input.write_id;
        let refused = match self.judge_write(&input) {
            Judged::Queue => {
                self.queued_write = write_id;
                self.input.queue(Writer::Recipient(write_id), input.bytes, input.end);
                self.write_input();
                return;
            }
            // Its answer comes when it is written.
            Judged::Waits => return,
            Judged::Written => None,
            Judged::Refused(why) => Some(why),
        };
        let ack = InputAck { write_id, generation: input.generation, refused };
        self.desk.tell(FromRunner::InputAck(ack));
    }

    /// Judges a write. What became of one that came before is said first: whose answer was lost must
    /// not take it for one that was never written because the child ended since.
    fn judge_write(&self, input: &placement_protocol::Input) -> Judged {
        if input.generation != self.desk.generation() {
            return Judged::Refused(InputRefused::NotBound);
        }
        match self.writes.judge(input.write_id) {
            WriteVerdict::Again => Judged::Written,
            WriteVerdict::Forgotten => Judged::Refused(InputRefused::Forgotten),
            WriteVerdict::New if self.torn_write == Some(input.write_id) => {
                Judged::Refused(InputRefused::Uncertain)
            }
            WriteVerdict::New | WriteVerdict::OutOfOrder if self.has_exited() => {
                Judged::Refused(InputRefused::Exited)
            }
            WriteVerdict::OutOfOrder => Judged::Refused(InputRefused::OutOfOrder),
            WriteVerdict::New if input.write_id <= self.queued_write => Judged::Waits,
            WriteVerdict::New if input.end && self.has_window() => {
                Judged::Refused(InputRefused::NoEnd)
            }
            WriteVerdict::New if !self.input.is_open() => Judged::Refused(InputRefused::Closed),
            WriteVerdict::New if !self.input.has_room(input.bytes.len()) => {
                Judged::Refused(InputRefused::Full)
            }
            WriteVerdict::New => Judged::Queue,
        }
    }

    /// Writes what the child's input takes and answers what is finished.
    pub(crate) fn write_input(&mut self) {
        let finished = self.input.pump();
        self.answer_writes(finished);
    }

    /// Answers writes that are finished, or that will never be.
    pub(crate) fn answer_writes(&mut self, finished: Vec<Written>) {
        for written in finished {
            match written {
                Written::Whole { writer: Writer::Launch, bytes } => {
                    self.record(EvidenceKind::StdinAccepted, format!("{bytes} bytes"));
                }
                // It has no bytes; that it is closed comes next.
                Written::Whole { writer: Writer::Control, .. } => {}
                Written::Whole { writer: Writer::Recipient(write_id), .. } => {
                    self.writes.remember(write_id);
                    self.acknowledge_write(write_id, None);
                }
                Written::Broken { writer, written } => {
                    if written > 0 || writer == Writer::Launch {
                        let detail = format!("the child took {written} bytes of a write");
                        self.record(EvidenceKind::StdinUncertain, detail);
                    }
                    self.answer_broken(writer, written);
                }
                Written::Closed { writer } => {
                    self.record(EvidenceKind::StdinClosed, closed_phrase(writer));
                }
            }
        }
        if self.input.is_closed() {
            // Whoever's close it was, or the child's own.
            self.answer_closings(self.has_exited().then_some(StdinRefused::Exited));
        }
    }

    fn answer_broken(&mut self, writer: Writer, written: usize) {
        match writer {
            Writer::Launch => {}
            Writer::Recipient(write_id) => {
                // Nothing waits any more: whoever asks again is answered, and not held off.
                self.queued_write = self.writes.last();
                let refused = if written > 0 {
                    self.torn_write = Some(write_id);
                    InputRefused::Uncertain
                } else {
                    InputRefused::Closed
                };
                self.acknowledge_write(write_id, Some(refused));
            }
            Writer::Control if self.has_exited() => {}
            Writer::Control => self.record(EvidenceKind::StdinClosed, "the child had closed it"),
        }
    }

    fn acknowledge_write(&mut self, write_id: u64, refused: Option<InputRefused>) {
        let ack = InputAck { write_id, generation: self.desk.generation(), refused };
        self.desk.tell(FromRunner::InputAck(ack));
    }
}

const fn closed_phrase(writer: Writer) -> &'static str {
    match writer {
        Writer::Launch => "after the initial input",
        Writer::Recipient(_) => "asked for by the recipient",
        Writer::Control => "asked for",
    }
}
