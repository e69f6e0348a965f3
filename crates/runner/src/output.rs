//! Output from the pipes to the recipient: coalesced, spooled, sent within the window.

use crate::memory_spool::MemorySpool;
use placement_contract::limits::{CHUNK_BYTES_MAX, COALESCE_MS};
use placement_contract::{Generation, StreamName};
use placement_crash::point;
use placement_homes::{
    LogItem, LogReader, LogWriter, RECORD_OVERHEAD_BYTES, Record, RecordKind, StreamEnd,
    TAIL_BYTES_MAX,
};
use placement_protocol::{Chunk, Eof, FromRunner, Window};
use placement_transport::Link;
use std::time::{Duration, Instant};

/// How long a full disk is left alone before it is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// Both output streams of one attempt.
#[derive(Debug)]
pub(crate) struct Output {
    spool: Spool,
    window: Window,
    streams: [Stream; 2],
    /// The disk was full; nothing is written to it before this moment.
    retry_at: Option<Instant>,
    /// The tree has ended: what the pipes still hold may go beyond the spool bound.
    tail: bool,
    /// Nobody came in time for what is in memory.
    given_up: bool,
}

/// Where output waits until it is acknowledged.
#[derive(Debug)]
enum Spool {
    File(Box<FileSpool>),
    Memory(MemorySpool),
}

/// The attempt's log, written and read back.
#[derive(Debug)]
struct FileSpool {
    writer: LogWriter,
    reader: LogReader,
    bytes_max: u64,
}

/// One stream: bytes that wait to become a chunk, and its end.
#[derive(Debug, Default)]
struct Stream {
    waiting: Vec<u8>,
    since: Option<Instant>,
    end: End,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum End {
    #[default]
    Open,
    Reached(StreamEnd),
    Recorded,
}

/// The spool could not be written or read: the loop records it once and tries again later.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SpoolFailed(String);

impl SpoolFailed {
    /// Keeps the fixed phrase of an error, never its source.
    fn because(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }

    /// Returns the phrase.
    pub(crate) fn phrase(self) -> String {
        self.0
    }
}

impl Output {
    /// Spools to the attempt's log.
    pub(crate) fn to_file(
        writer: LogWriter,
        bytes_max: u64,
        generation: Generation,
    ) -> Result<Self, SpoolFailed> {
        let reader = writer.reader_from(1).map_err(SpoolFailed::because)?;
        Ok(Self::new(Spool::File(Box::new(FileSpool { writer, reader, bytes_max })), generation))
    }

    /// Spools to memory, at most 256 KiB.
    pub(crate) fn to_memory(generation: Generation) -> Self {
        Self::new(Spool::Memory(MemorySpool::default()), generation)
    }

    fn new(spool: Spool, generation: Generation) -> Self {
        Self {
            spool,
            window: Window::new(generation, 0),
            streams: [Stream::default(), Stream::default()],
            retry_at: None,
            tail: false,
            given_up: false,
        }
    }

    /// Returns how many bytes of a stream may be read now; 0 while the spool is full.
    pub(crate) fn room(&self, stream: StreamName) -> usize {
        let own = &self.streams[place(stream)];
        if own.end != End::Open || self.retry_at.is_some() {
            return 0;
        }
        let waiting: usize = self.streams.iter().map(|stream| stream.waiting.len()).sum();
        let room = match &self.spool {
            Spool::File(file) => {
                let tail = if self.tail { TAIL_BYTES_MAX } else { 0 };
                // What waits becomes at most one record a stream.
                let taken = file.writer.unacknowledged_bytes() + 2 * RECORD_OVERHEAD_BYTES;
                file.bytes_max.saturating_add(tail).saturating_sub(taken)
            }
            Spool::Memory(spool) => spool.room_bytes(),
        };
        let left = usize::try_from(room).unwrap_or(usize::MAX).saturating_sub(waiting);
        left.min(CHUNK_BYTES_MAX - own.waiting.len())
    }

    /// Says whether reads are paused because nobody acknowledges, or because the disk is full.
    pub(crate) fn is_full(&self) -> bool {
        StreamName::ALL.iter().any(|stream| {
            let own = &self.streams[place(*stream)];
            own.end == End::Open && own.waiting.len() < CHUNK_BYTES_MAX && self.room(*stream) == 0
        })
    }

    /// Says whether a write has failed that is going to be tried again.
    pub(crate) fn is_held_up(&self) -> bool {
        self.retry_at.is_some()
    }

    /// Takes bytes that were read, at most as many as there was room for.
    pub(crate) fn take(
        &mut self,
        stream: StreamName,
        bytes: &[u8],
        now: Instant,
    ) -> Result<(), SpoolFailed> {
        let own = &mut self.streams[place(stream)];
        own.waiting.extend_from_slice(bytes);
        own.since.get_or_insert(now);
        if own.waiting.len() >= CHUNK_BYTES_MAX { self.write(stream, now) } else { Ok(()) }
    }

    /// Notes the end of a stream.
    pub(crate) fn end(
        &mut self,
        stream: StreamName,
        end: StreamEnd,
        now: Instant,
    ) -> Result<(), SpoolFailed> {
        let own = &mut self.streams[place(stream)];
        if own.end == End::Open {
            own.end = End::Reached(end);
        }
        self.write(stream, now)
    }

    /// Writes what has waited long enough, and what a full disk kept back.
    pub(crate) fn settle(&mut self, now: Instant) -> Result<(), SpoolFailed> {
        if self.retry_at.is_some_and(|at| now < at) {
            return Ok(());
        }
        self.retry_at = None;
        for stream in StreamName::ALL.iter().copied() {
            let own = &self.streams[place(stream)];
            let due = own.since.is_some_and(|since| now >= since + COALESCE);
            if due || matches!(own.end, End::Reached(_)) {
                self.write(stream, now)?;
            }
        }
        Ok(())
    }

    /// Returns when [`Output::settle`] has something to do.
    pub(crate) fn wake_at(&self) -> Option<Instant> {
        let waiting = self.streams.iter().filter_map(|own| own.since).min();
        self.retry_at.or(waiting.map(|since| since + COALESCE))
    }

    fn write(&mut self, stream: StreamName, now: Instant) -> Result<(), SpoolFailed> {
        let outcome = self.try_write(stream);
        if outcome.is_err() {
            self.retry_at = Some(now + RETRY);
        }
        outcome
    }

    fn try_write(&mut self, stream: StreamName) -> Result<(), SpoolFailed> {
        let own = &mut self.streams[place(stream)];
        if !own.waiting.is_empty() {
            self.spool.append(stream, &mut own.waiting, self.tail)?;
            point("runner.output.spooled");
            own.since = None;
        }
        if let End::Reached(end) = own.end {
            self.spool.append_end(stream, end)?;
            own.end = End::Recorded;
        }
        Ok(())
    }

    /// Sends what the window admits.
    ///
    /// # Errors
    /// [`SpoolFailed`] if the spool cannot be read back; the link is then of no use.
    pub(crate) fn send(&mut self, link: &mut Link) -> Result<(), SpoolFailed> {
        while let Some(sequence) = self.window.next_to_send() {
            let Some(record) = self.spool.next(sequence)? else { break };
            assert_eq!(record.sequence, sequence, "the reader follows the window");
            // Never refused: a window is smaller than the room of a link, and only a few small
            // frames go beside it.
            link.queue(frame_of(record, self.window.generation())).map_err(SpoolFailed::because)?;
            self.window.record_sent(sequence);
            point("runner.output.queued");
        }
        Ok(())
    }

    /// Takes an acknowledgment; one of another attachment or outside of what was sent is ignored.
    pub(crate) fn acknowledge(
        &mut self,
        generation: Generation,
        through: u64,
    ) -> Result<(), SpoolFailed> {
        if self.window.acknowledge(generation, through).is_err() {
            return Ok(());
        }
        match &mut self.spool {
            Spool::File(file) => file.writer.acknowledge(through).map_err(SpoolFailed::because)?,
            Spool::Memory(spool) => spool.acknowledge(through),
        }
        point("runner.output.acknowledged");
        Ok(())
    }

    /// Binds a newer attachment; what was not acknowledged is sent again.
    pub(crate) fn reattach(&mut self, generation: Generation) -> Result<(), SpoolFailed> {
        if self.window.reattach(generation).is_err() {
            return Ok(());
        }
        self.rewind()
    }

    /// Sends from the acknowledged cursor again: the same attachment has a new link.
    pub(crate) fn rewind(&mut self) -> Result<(), SpoolFailed> {
        let consumed = self.window.consumed_through();
        self.window = Window::new(self.window.generation(), consumed);
        if let Spool::File(file) = &mut self.spool {
            let reader = file.writer.reader_from(consumed + 1);
            file.reader = reader.map_err(SpoolFailed::because)?;
        }
        Ok(())
    }

    /// Lets what the pipes still hold go beyond the spool bound: the tree has ended.
    pub(crate) fn admit_tail(&mut self) {
        self.tail = true;
    }

    /// Writes that no record follows; in memory there is nothing to write.
    pub(crate) fn finish(&mut self) -> Result<(), SpoolFailed> {
        match &mut self.spool {
            Spool::File(file) => file.writer.mark_ended().map_err(SpoolFailed::because),
            Spool::Memory(_) => Ok(()),
        }
    }

    /// Says whether output waits in memory only.
    pub(crate) fn is_in_memory(&self) -> bool {
        matches!(self.spool, Spool::Memory(_))
    }

    /// Says whether a stream may still bring bytes.
    pub(crate) fn is_open(&self, stream: StreamName) -> bool {
        self.streams[place(stream)].end == End::Open
    }

    /// Says whether both streams have ended and every byte of them is in the spool.
    pub(crate) fn is_settled(&self) -> bool {
        self.streams.iter().all(|own| own.end == End::Recorded)
    }

    /// Says whether everything in the spool was acknowledged.
    pub(crate) fn is_acknowledged(&self) -> bool {
        self.window.consumed_through() == self.last_sequence()
    }

    /// Counts the streams that have ended.
    pub(crate) fn eof_seen(&self) -> u8 {
        self.streams.iter().map(|own| u8::from(own.end != End::Open)).sum()
    }

    /// Returns the bytes that nobody acknowledged, those that wait to become a chunk included.
    pub(crate) fn unacknowledged_bytes(&self) -> u64 {
        let waiting: usize = self.streams.iter().map(|own| own.waiting.len()).sum();
        let spooled = match &self.spool {
            Spool::File(file) => file.writer.unacknowledged_payload_bytes(),
            Spool::Memory(spool) => spool.unacknowledged_bytes(),
        };
        spooled.saturating_add(waiting as u64)
    }

    /// Waits for nobody any more and words what is lost by that.
    pub(crate) fn give_up(&mut self) -> String {
        self.given_up = true;
        self.loss()
    }

    /// Says whether nobody is waited for.
    pub(crate) fn is_given_up(&self) -> bool {
        self.given_up
    }

    /// Words what is lost when nobody comes for it.
    pub(crate) fn loss(&self) -> String {
        let chunks = match &self.spool {
            Spool::File(_) => 0,
            Spool::Memory(spool) => spool.unacknowledged_chunks(),
        };
        format!(
            "{chunks} chunks, {} bytes, consumed through {}, sent through {}",
            self.unacknowledged_bytes(),
            self.window.consumed_through(),
            self.window.sent_through(),
        )
    }

    /// Returns the last acknowledged sequence.
    pub(crate) fn consumed_through(&self) -> u64 {
        self.window.consumed_through()
    }

    fn last_sequence(&self) -> u64 {
        match &self.spool {
            Spool::File(file) => file.writer.last_sequence(),
            Spool::Memory(spool) => spool.last_sequence(),
        }
    }
}

const COALESCE: Duration = Duration::from_millis(COALESCE_MS);

impl Spool {
    /// Takes bytes out of where they waited; a failure leaves them there.
    fn append(
        &mut self,
        stream: StreamName,
        waiting: &mut Vec<u8>,
        tail: bool,
    ) -> Result<(), SpoolFailed> {
        match self {
            Self::File(file) => {
                let appended = if tail {
                    file.writer.append_tail(stream, waiting)
                } else {
                    file.writer.append(stream, waiting)
                };
                appended.map_err(SpoolFailed::because)?;
                waiting.clear();
            }
            Self::Memory(spool) => spool.append(stream, std::mem::take(waiting)),
        }
        Ok(())
    }

    fn append_end(&mut self, stream: StreamName, end: StreamEnd) -> Result<(), SpoolFailed> {
        match self {
            Self::File(file) => {
                file.writer.append_end(stream, end).map(|_| ()).map_err(SpoolFailed::because)
            }
            Self::Memory(spool) => {
                spool.append_end(stream, end);
                Ok(())
            }
        }
    }

    /// Returns the record with this sequence once there is one.
    fn next(&mut self, sequence: u64) -> Result<Option<Record>, SpoolFailed> {
        match self {
            // The reader would look for a segment that follows.
            Self::File(file) if sequence > file.writer.last_sequence() => Ok(None),
            Self::File(file) => loop {
                match file.reader.next_item().map_err(SpoolFailed::because)? {
                    Some(LogItem::Record(record)) => return Ok(Some(record)),
                    // Only what was acknowledged is trimmed, and that is not asked for.
                    Some(LogItem::Gap(_)) => {}
                    None => return Ok(None),
                }
            },
            Self::Memory(spool) => Ok(spool.get(sequence).cloned()),
        }
    }
}

fn frame_of(record: Record, generation: Generation) -> placement_protocol::Frame {
    let Record { sequence, offset, kind, stream, truncated, bytes } = record;
    let message = match kind {
        RecordKind::Chunk => {
            FromRunner::Chunk(Chunk { stream, sequence, offset, generation, bytes })
        }
        RecordKind::Eof => FromRunner::Eof(Eof { stream, sequence, offset, generation, truncated }),
    };
    message.into_frame().expect("a record is within the bounds of a frame")
}

/// Returns the place of a stream among the two.
pub(crate) fn place(stream: StreamName) -> usize {
    match stream {
        StreamName::Stdout => 0,
        StreamName::Stderr => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn in_memory() -> Output {
        Output::to_memory(Generation::FIRST)
    }

    fn record(output: &Output, sequence: u64) -> Option<&Record> {
        match &output.spool {
            Spool::Memory(spool) => spool.get(sequence),
            Spool::File(_) => None,
        }
    }

    #[test]
    fn bytes_are_put_together_to_whole_chunks() {
        let now = Instant::now();
        let mut output = in_memory();
        output.take(StreamName::Stdout, &vec![1; 65_000], now).unwrap();
        assert_eq!((output.last_sequence(), output.room(StreamName::Stdout)), (0, 536));
        output.take(StreamName::Stdout, &[2; 536], now).unwrap();
        let whole = [vec![1; 65_000], vec![2; 536]].concat();
        assert_eq!(record(&output, 1).map(|record| &record.bytes), Some(&whole));
        assert_eq!(output.room(StreamName::Stdout), 65_536);
    }

    #[test]
    fn a_part_of_a_chunk_waits_five_milliseconds() {
        let now = Instant::now();
        let mut output = in_memory();
        output.take(StreamName::Stdout, b"one", now).unwrap();
        output.take(StreamName::Stdout, b"two", now + Duration::from_millis(4)).unwrap();
        let due = now + Duration::from_millis(5);
        assert_eq!(output.wake_at(), Some(due));
        output.settle(now + Duration::from_millis(4)).unwrap();
        assert_eq!(output.last_sequence(), 0);
        output.settle(due).unwrap();
        assert_eq!(record(&output, 1).map(|record| record.bytes.as_slice()), Some(&b"onetwo"[..]));
        assert_eq!(output.wake_at(), None);
    }

    #[test]
    fn the_end_of_a_stream_follows_its_last_bytes_at_once() {
        let now = Instant::now();
        let mut output = in_memory();
        output.take(StreamName::Stdout, b"tail", now).unwrap();
        output.take(StreamName::Stderr, b"other", now).unwrap();
        output.end(StreamName::Stdout, StreamEnd::Whole, now).unwrap();
        let told = |sequence| {
            record(&output, sequence).map(|record| (record.kind, record.stream, record.offset))
        };
        assert_eq!(told(1), Some((RecordKind::Chunk, StreamName::Stdout, 0)));
        assert_eq!(told(2), Some((RecordKind::Eof, StreamName::Stdout, 4)));
        assert_eq!(told(3), None, "the other stream waits for more");
        assert_eq!((output.eof_seen(), output.unacknowledged_bytes()), (1, 9));
    }

    #[test]
    fn what_waits_to_become_a_chunk_counts_against_the_bound() {
        let now = Instant::now();
        let mut output = in_memory();
        for _ in 0..3 {
            output.take(StreamName::Stdout, &vec![0; 65_536], now).unwrap();
        }
        output.take(StreamName::Stdout, &vec![0; 65_000], now).unwrap();
        output.take(StreamName::Stderr, &[0; 500], now).unwrap();
        assert_eq!((output.room(StreamName::Stdout), output.room(StreamName::Stderr)), (36, 36));
        assert!(!output.is_full());
        output.take(StreamName::Stderr, &[0; 36], now).unwrap();
        assert!(output.is_full());
        assert_eq!(output.unacknowledged_bytes(), 256 * 1024);
    }
}
