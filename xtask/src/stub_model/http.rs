//! As much of HTTP/1.1 as the clients use.

use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// Longest request line or header line, in bytes: far above what clients send.
const LINE_BYTES_MAX: u64 = 65_536;
/// Most header lines.
const HEADERS_MAX: usize = 128;
/// Largest request body, in bytes: a whole conversation with its tool results.
const BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// One request.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) body: Vec<u8>,
}

/// One client's connection.
#[derive(Debug)]
pub(super) struct Connection {
    reader: BufReader<TcpStream>,
    writer: TcpStream,
    /// Whether the client asked for the end of the connection after this answer.
    closing: bool,
}

impl Connection {
    /// Takes a connection over.
    pub(super) fn new(stream: TcpStream) -> io::Result<Self> {
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { reader, writer: stream, closing: false })
    }

    /// Reads the next request; nothing when the client went or said that it would.
    pub(super) fn read_request(&mut self) -> io::Result<Option<Request>> {
        if self.closing {
            return Ok(None);
        }
        let line = read_line(&mut self.reader)?;
        if line.is_empty() {
            return Ok(None);
        }
        let mut words = line.split(' ');
        let method = words.next().unwrap_or_default().to_owned();
        let path = words.next().ok_or_else(|| malformed("the request line"))?.to_owned();

        let headers = self.read_headers()?;
        let value =
            |name| headers.iter().find(|(header, _)| header == name).map(|(_, v)| v.as_str());
        self.closing = value("connection").is_some_and(|v| v.eq_ignore_ascii_case("close"));
        if value("expect").is_some() {
            self.writer.write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        let chunked = value("transfer-encoding").is_some_and(|v| v.eq_ignore_ascii_case("chunked"));
        let body = if chunked {
            read_chunks(&mut self.reader)?
        } else {
            let length = value("content-length").map_or(Ok(0), str::parse);
            read_exactly(&mut self.reader, length.map_err(|_| malformed("content-length"))?)?
        };
        Ok(Some(Request { method, path, body }))
    }

    /// Answers a HEAD request.
    pub(super) fn send_head(&mut self) -> io::Result<()> {
        self.writer.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    }

    /// Answers with one JSON value.
    pub(super) fn send_json(&mut self, status: u16, value: &Value) -> io::Result<()> {
        let body = value.to_string();
        let length = body.len();
        let answer = format!(
            "HTTP/1.1 {status} Stub\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        self.writer.write_all(answer.as_bytes())
    }

    /// Answers with a stream of server-sent events; each is named by its `type`.
    pub(super) fn send_events(&mut self, events: &[Value]) -> io::Result<()> {
        self.writer.write_all(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nCache-Control: no-cache\r\nTransfer-Encoding: chunked\r\n\r\n",
        )?;
        for event in events {
            let name = event["type"].as_str().unwrap_or("message");
            let text = format!("event: {name}\ndata: {event}\n\n");
            write!(self.writer, "{:x}\r\n{text}\r\n", text.len())?;
        }
        self.writer.write_all(b"0\r\n\r\n")
    }

    fn read_headers(&mut self) -> io::Result<Vec<(String, String)>> {
        let mut headers = Vec::new();
        loop {
            let line = read_line(&mut self.reader)?;
            if line.is_empty() {
                return Ok(headers);
            }
            if headers.len() == HEADERS_MAX {
                return Err(malformed("the number of headers"));
            }
            let (name, value) = line.split_once(':').ok_or_else(|| malformed("a header"))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
    }
}

/// Reads a line without its end; an empty one at the end of the stream.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    reader.take(LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
    if line.len() as u64 == LINE_BYTES_MAX {
        return Err(malformed("the length of a line"));
    }
    while line.last().is_some_and(|byte| b"\r\n".contains(byte)) {
        line.pop();
    }
    String::from_utf8(line).map_err(|_| malformed("a line"))
}

fn read_exactly(reader: &mut impl Read, length: u64) -> io::Result<Vec<u8>> {
    if length > BODY_BYTES_MAX {
        return Err(malformed("the length of the body"));
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    if (body.len() as u64) < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(body)
}

fn read_chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = read_line(reader)?;
        let size = line.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(|_| malformed("a chunk's size"))?;
        if size.saturating_add(body.len() as u64) > BODY_BYTES_MAX {
            return Err(malformed("the length of the body"));
        }
        body.append(&mut read_exactly(reader, size)?);
        read_line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{what} is malformed or out of bounds"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_joined() {
        let body = read_chunks(&mut &b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"[..]).unwrap();
        assert_eq!(body, b"abcde");
    }

    #[test]
    fn a_chunk_above_the_bound_is_refused() {
        let error = read_chunks(&mut &b"ffffffffffffffff\r\n"[..]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
    }

    #[test]
    fn a_body_that_ends_early_is_refused() {
        let error = read_exactly(&mut &b"ab"[..], 3).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }

    #[test]
    fn an_endless_line_is_refused() {
        let line = vec![b'x'; 70_000];
        assert_eq!(read_line(&mut &line[..]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
