//! Answers in the Anthropic Messages form.

use super::prompt::{Prompt, Step};
use serde_json::{Map, Value, json};

/// One answer of the model.
#[derive(Debug)]
pub(super) struct Message {
    id: String,
    model: Value,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Tool { id: String, name: String, input: Value },
}

impl Message {
    /// Answers a request; the number makes its ids unique.
    pub(super) fn answering(body: &Value, number: u64) -> Self {
        let content = match Prompt::of(body).step() {
            Step::Say(text) => Content::Text(text),
            Step::Run(command) => match shell_tool(body) {
                Some(tool) => Content::Tool {
                    id: format!("toolu_stub{number:06}"),
                    name: tool["name"].as_str().unwrap_or_default().to_owned(),
                    input: shell_input(tool, &command),
                },
                None => Content::Text("STUB: the client offers no shell tool".to_owned()),
            },
        };
        Self { id: format!("msg_stub{number:06}"), model: body["model"].clone(), content }
    }

    /// Returns the answer in one piece.
    pub(super) fn whole(&self) -> Value {
        let block = match &self.content {
            Content::Text(text) => json!({"type": "text", "text": text}),
            Content::Tool { id, name, input } => {
                json!({"type": "tool_use", "id": id, "name": name, "input": input})
            }
        };
        let mut message = self.head();
        message["content"] = json!([block]);
        message["stop_reason"] = json!(self.stop_reason());
        message["usage"]["output_tokens"] = json!(20);
        message
    }

    /// Returns the answer as the events of a stream.
    pub(super) fn events(&self) -> Vec<Value> {
        let (block, delta) = match &self.content {
            Content::Text(text) => {
                (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
            }
            Content::Tool { id, name, input } => (
                json!({"type": "tool_use", "id": id, "name": name, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            ),
        };
        vec![
            json!({"type": "message_start", "message": self.head()}),
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
            json!({"type": "content_block_delta", "index": 0, "delta": delta}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "usage": {"output_tokens": 20},
                "delta": {"stop_reason": self.stop_reason(), "stop_sequence": null}}),
            json!({"type": "message_stop"}),
        ]
    }

    fn head(&self) -> Value {
        json!({"id": self.id, "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": {"input_tokens": 100, "output_tokens": 1,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}})
    }

    const fn stop_reason(&self) -> &'static str {
        match self.content {
            Content::Text(_) => "end_turn",
            Content::Tool { .. } => "tool_use",
        }
    }
}

/// Finds the client's shell tool: the one called Bash, else the first that takes a command.
fn shell_tool(body: &Value) -> Option<&Value> {
    let tools = body["tools"].as_array()?;
    let takes_command = |tool: &&Value| tool["input_schema"]["properties"].get("command").is_some();
    tools.iter().find(|tool| tool["name"] == "Bash").or_else(|| tools.iter().find(takes_command))
}

/// Makes the tool's input; whatever else it requires gets a harmless value of its type.
fn shell_input(tool: &Value, command: &str) -> Value {
    let schema = &tool["input_schema"];
    let mut input = Map::new();
    for name in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let value = match schema["properties"][name]["type"].as_str() {
            Some("number" | "integer") => json!(1),
            Some("boolean") => json!(false),
            Some("array") => json!([]),
            Some("object") => json!({}),
            Some(_) | None => json!("stub"),
        };
        input.insert(name.to_owned(), value);
    }
    input.insert("command".to_owned(), json!(command));
    Value::Object(input)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_inputs_have_their_type() {
        let tool = json!({"name": "Bash", "input_schema": {
            "properties": {"command": {"type": "string"}, "description": {"type": "string"},
                "background": {"type": "boolean"}},
            "required": ["command", "description", "background"]}});
        let wanted = json!({"command": "ls", "description": "stub", "background": false});
        assert_eq!(shell_input(&tool, "ls"), wanted);
    }

    #[test]
    fn a_client_without_a_shell_is_told_so() {
        let body = json!({"messages": [{"role": "user", "content": "RUN:ls"}]});
        let whole = Message::answering(&body, 1).whole();
        assert_eq!(whole["content"][0]["text"], "STUB: the client offers no shell tool");
    }

    #[test]
    fn another_shell_tool_is_found_by_its_input() {
        let body = json!({"tools": [
            {"name": "Read", "input_schema": {"properties": {"path": {}}}},
            {"name": "Terminal", "input_schema": {"properties": {"command": {}}}}]});
        assert_eq!(shell_tool(&body).unwrap()["name"], "Terminal");
    }
}
