//! `stub-model`: a model on the loopback address that does what the prompt says.
//!
//! It speaks as much of the Anthropic Messages protocol as Claude Code needs: messages with and
//! without streaming, token counts, the list of models. A prompt holds one marker a line:
//!
//! * `RUN:command` calls the client's shell tool; several are called one after the other,
//! * `SAY:text` is the final answer.
//!
//! Limits: loopback only, no authentication, one thread a connection.

mod http;
mod messages;
mod prompt;

use crate::command::Failure;
use http::{Connection, Request};
use serde_json::{Value, json};
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

/// Numbers the answers, so that each has an id of its own.
static ANSWERS: AtomicU64 = AtomicU64::new(1);

/// Prints `LISTENING port` and serves until the process is ended.
pub(crate) fn run(port: u16) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure::new(format!("stub-model on port {port}: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).map_err(failed)?;
    println!("LISTENING {}", listener.local_addr().map_err(failed)?.port());
    io::stdout().flush().map_err(failed)?;
    serve(&listener);
    Ok(())
}

/// Serves from a thread of its own for the rest of the process; returns where.
pub(crate) fn start() -> Result<SocketAddr, Failure> {
    let failed = |error: io::Error| Failure::new(format!("stub-model: {error}"));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    thread::spawn(move || serve(&listener));
    Ok(address)
}

fn serve(listener: &TcpListener) {
    for stream in listener.incoming().flatten() {
        thread::spawn(move || {
            if let Err(error) = converse(stream) {
                eprintln!("stub-model: a connection ended: {error}");
            }
        });
    }
}

/// Answers the requests of one connection until the client goes.
fn converse(stream: TcpStream) -> io::Result<()> {
    let mut connection = Connection::new(stream)?;
    while let Some(request) = connection.read_request()? {
        answer(&mut connection, &request)?;
    }
    Ok(())
}

fn answer(connection: &mut Connection, request: &Request) -> io::Result<()> {
    let path = request.path.split('?').next().unwrap_or_default();
    match request.method.as_str() {
        "HEAD" => connection.send_head(),
        "GET" if path.ends_with("/models") => connection.send_json(200, &models()),
        "POST" if path.ends_with("/messages/count_tokens") => {
            connection.send_json(200, &json!({"input_tokens": request.body.len() / 4}))
        }
        "POST" if path.ends_with("/messages") => answer_messages(connection, request),
        _ => connection.send_json(404, &error("not_found_error", "no such path in the stub")),
    }
}

fn answer_messages(connection: &mut Connection, request: &Request) -> io::Result<()> {
    let Ok(body) = serde_json::from_slice::<Value>(&request.body) else {
        let refusal = error("invalid_request_error", "the body is not JSON");
        return connection.send_json(400, &refusal);
    };
    let number = ANSWERS.fetch_add(1, Ordering::Relaxed);
    let message = messages::Message::answering(&body, number);
    if body["stream"].as_bool() == Some(true) {
        connection.send_events(&message.events())
    } else {
        connection.send_json(200, &message.whole())
    }
}

fn models() -> Value {
    let model = json!({"id": "stub-model", "type": "model", "display_name": "Stub",
        "created_at": "2025-01-01T00:00:00Z"});
    json!({"data": [model], "has_more": false, "first_id": "stub-model", "last_id": "stub-model"})
}

fn error(kind: &str, message: &str) -> Value {
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    /// Sends one request that closes the connection, and returns the whole answer.
    fn ask(request: &str) -> String {
        let mut stream = TcpStream::connect(start().unwrap()).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn post(path: &str, body: &Value) -> String {
        let body = body.to_string();
        let length = body.len();
        ask(&format!(
            "POST {path} HTTP/1.1\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ))
    }

    #[test]
    fn a_plain_prompt_is_answered_with_its_text() {
        let body = json!({"model": "m", "messages": [{"role": "user", "content": "SAY: hello"}]});
        let answer = post("/v1/messages?beta=true", &body);
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
        assert!(answer.contains(r#""text":"hello""#), "{answer}");
        assert!(answer.contains(r#""stop_reason":"end_turn""#), "{answer}");
    }

    #[test]
    fn a_streamed_prompt_calls_the_tool() {
        let body = json!({"model": "m", "stream": true,
            "tools": [{"name": "Bash", "input_schema": {"properties": {"command": {}}}}],
            "messages": [{"role": "user", "content": "RUN: echo hi"}]});
        let answer = post("/v1/messages", &body);
        let order = ["event: message_start", r#""name":"Bash""#, "echo hi", "event: message_stop"];
        let places: Vec<_> = order.iter().map(|part| answer.find(part).expect(part)).collect();
        assert!(places.is_sorted(), "{answer}");
        assert!(answer.ends_with("0\r\n\r\n"), "{answer}");
    }

    #[test]
    fn tokens_models_and_heads_are_answered() {
        assert!(post("/v1/messages/count_tokens", &json!({})).contains("input_tokens"));
        let get =
            |method| ask(&format!("{method} /v1/models HTTP/1.1\r\nConnection: close\r\n\r\n"));
        assert!(get("GET").contains("stub-model"));
        assert!(get("HEAD").starts_with("HTTP/1.1 200 "));
    }

    #[test]
    fn another_path_is_not_found() {
        assert!(post("/v1/other", &json!({})).starts_with("HTTP/1.1 404 "));
    }

    #[test]
    fn a_body_that_is_not_json_is_refused() {
        let answer =
            ask("POST /v1/messages HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\n{");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{answer}");
    }
}
