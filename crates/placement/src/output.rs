//! Output as an iterator that acknowledges as it goes.

use crate::attempt::AttemptHandle;
use crate::error::Error;
use crate::link::Link;
use placement_contract::StreamName;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// A piece of one stream, at most 64 KiB.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub(crate) stream: StreamName,
    pub(crate) sequence: u64,
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Chunk {
    /// Returns the stream.
    pub const fn stream(&self) -> StreamName {
        self.stream
    }

    /// Returns its place among the pieces of both streams, the same each time it comes.
    pub const fn sequence(&self) -> u64 {
        self.sequence
    }

    /// Returns how many bytes of its stream came before it.
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Returns the bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Takes the bytes out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

/// The output of an attempt, in order; see [`AttemptHandle::output`].
#[derive(Debug)]
pub struct Output<'a> {
    handle: &'a AttemptHandle,
    link: Option<Arc<Link>>,
    over: bool,
}

impl<'a> Output<'a> {
    pub(crate) const fn new(handle: &'a AttemptHandle) -> Self {
        Self { handle, link: None, over: false }
    }

    /// Acknowledges the chunk that came last, without asking for another.
    ///
    /// # Errors
    /// STORAGE where the cursor of an ended attempt's log cannot be written.
    pub fn acknowledge(&mut self) -> Result<(), Error> {
        self.link.as_ref().map_or(Ok(()), |link| link.acknowledge())
    }

    fn advance(&mut self) -> Result<Option<Chunk>, Error> {
        let link = match self.link.take() {
            Some(link) => link,
            None => self.handle.link()?,
        };
        self.link.insert(link).next_chunk()
    }
}

impl Iterator for Output<'_> {
    type Item = Result<Chunk, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let next = self.advance().transpose();
        self.over = !matches!(next, Some(Ok(_)));
        next
    }
}

/// A piece of one stream as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextPiece {
    stream: StreamName,
    text: String,
}

impl TextPiece {
    /// Returns the stream.
    pub const fn stream(&self) -> StreamName {
        self.stream
    }

    /// Returns the text; never empty.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// The output of an attempt as text; see [`AttemptHandle::text`].
#[derive(Debug)]
pub struct Text<'a> {
    output: Output<'a>,
    decoders: BTreeMap<StreamName, Utf8Decoder>,
    rest: VecDeque<TextPiece>,
    over: bool,
}

impl<'a> Text<'a> {
    pub(crate) const fn new(output: Output<'a>) -> Self {
        Self { output, decoders: BTreeMap::new(), rest: VecDeque::new(), over: false }
    }
}

impl Iterator for Text<'_> {
    type Item = Result<TextPiece, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            match self.output.next() {
                Some(Ok(chunk)) => {
                    let decoder = self.decoders.entry(chunk.stream).or_default();
                    let text = decoder.push(&chunk.bytes);
                    if !text.is_empty() {
                        return Some(Ok(TextPiece { stream: chunk.stream, text }));
                    }
                }
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.over = true;
                    for (stream, decoder) in std::mem::take(&mut self.decoders) {
                        let text = decoder.end();
                        if !text.is_empty() {
                            self.rest.push_back(TextPiece { stream, text });
                        }
                    }
                }
            }
        }
        self.rest.pop_front().map(Ok)
    }
}

/// Decodes UTF-8 that comes in pieces; keeps at most three bytes from one to the next.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    begun: Vec<u8>,
}

impl Utf8Decoder {
    /// Decodes a piece up to its last whole character.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut all = std::mem::take(&mut self.begun);
        all.extend_from_slice(bytes);
        let mut text = String::with_capacity(all.len());
        let mut rest = all.as_slice();
        loop {
            match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    text.push_str(std::str::from_utf8(valid).expect("checked up to there"));
                    let Some(invalid) = error.error_len() else {
                        self.begun = after.to_vec();
                        return text;
                    };
                    text.push(char::REPLACEMENT_CHARACTER);
                    rest = after.get(invalid..).unwrap_or_default();
                }
            }
        }
    }

    /// Ends the text; a character that was begun and never came whole is one replacement character.
    pub fn end(self) -> String {
        if self.begun.is_empty() { String::new() } else { char::REPLACEMENT_CHARACTER.to_string() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(pieces: &[&[u8]]) -> String {
        let mut decoder = Utf8Decoder::default();
        let mut text: String = pieces.iter().map(|piece| decoder.push(piece)).collect();
        text.push_str(&decoder.end());
        text
    }

    #[test]
    fn a_character_may_come_in_any_pieces() {
        let text = "a한글 中文 🎉e\u{301}z";
        let bytes = text.as_bytes();
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(decoded(&pieces), text);
            }
        }
    }

    #[test]
    fn only_invalid_bytes_are_replaced() {
        assert_eq!(decoded(&[b"a\xff", b"b"]), "a\u{fffd}b");
        assert_eq!(decoded(&[b"\xed\xa0", b"\x80!"]).trim_start_matches('\u{fffd}'), "!");
        assert_eq!(decoded(&[b"\xf0\x9f", b"\x8e"]), "\u{fffd}");
    }

    #[test]
    fn every_split_of_invalid_bytes_gives_the_same_text() {
        let bytes = b"ok \xf0\x9f\x8e x \xc3\x28 \xff\xfe end\xe2\x82";
        let whole = String::from_utf8_lossy(bytes);
        for at in 0..=bytes.len() {
            assert_eq!(decoded(&[&bytes[..at], &bytes[at..]]), whole);
        }
    }
}
