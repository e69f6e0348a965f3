//! What the last prompt of a conversation asks for.

use serde_json::Value;

/// The prompt that counts and how far its steps have come.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Prompt {
    /// Commands to run, in order.
    commands: Vec<String>,
    /// The final answer.
    text: Option<String>,
    /// Tool results that came after it.
    results: usize,
}

/// The next thing to do.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Call the shell tool.
    Run(String),
    /// End the turn with a text.
    Say(String),
}

impl Prompt {
    /// Reads a conversation; the last user message with a text of its own counts.
    pub(super) fn of(body: &Value) -> Self {
        let mut prompt = Self::default();
        for message in body["messages"].as_array().into_iter().flatten() {
            if message["role"] != "user" {
                continue;
            }
            let results =
                blocks(&message["content"]).filter(|b| b["type"] == "tool_result").count();
            let (commands, text) = markers(&text_of(&message["content"]));
            if !commands.is_empty() || text.is_some() {
                prompt = Self { commands, text, results: 0 };
            } else if results > 0 {
                prompt.results += results;
            }
        }
        prompt
    }

    /// Returns the next step: each command in turn, then the answer.
    pub(super) fn step(&self) -> Step {
        match (self.commands.get(self.results), &self.text) {
            (Some(command), _) => Step::Run(command.clone()),
            (None, Some(text)) => Step::Say(text.clone()),
            (None, None) => Step::Say(format!("STUB-OK after {} results", self.results)),
        }
    }
}

fn markers(text: &str) -> (Vec<String>, Option<String>) {
    let after = |marker: &'static str| {
        text.lines().filter_map(move |line| Some(line.split_once(marker)?.1.trim().to_owned()))
    };
    (after("RUN:").collect(), after("SAY:").next_back())
}

fn blocks(content: &Value) -> impl Iterator<Item = &Value> {
    content.as_array().into_iter().flatten()
}

/// Joins the texts of a message, without what the client slips in for the model.
fn text_of(content: &Value) -> String {
    let texts = blocks(content).filter_map(|block| block["text"].as_str());
    let joined = content.as_str().into_iter().chain(texts).collect::<Vec<_>>().join("\n");
    without_reminders(&joined)
}

fn without_reminders(text: &str) -> String {
    const START: &str = "<system-reminder>";
    const END: &str = "</system-reminder>";
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, inside)) = rest.split_once(START) {
        kept.push_str(before);
        rest = inside.split_once(END).map_or("", |(_, after)| after);
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn step_after(messages: &Value) -> Step {
        Prompt::of(&json!({ "messages": messages })).step()
    }

    #[test]
    fn commands_run_in_turn_and_the_text_comes_last() {
        let mut messages = vec![json!({"role": "user", "content": "RUN:a\nRUN: b\nSAY:done"})];
        for wanted in [Step::Run("a".into()), Step::Run("b".into()), Step::Say("done".into())] {
            assert_eq!(step_after(&json!(messages)), wanted);
            messages.push(json!({"role": "assistant", "content": []}));
            let result = json!([{"type": "tool_result", "content": "RUN:not-this"}]);
            messages.push(json!({"role": "user", "content": result}));
        }
    }

    #[test]
    fn a_later_prompt_replaces_an_earlier_one() {
        let messages = json!([
            {"role": "user", "content": "SAY:first"},
            {"role": "assistant", "content": "first"},
            {"role": "user", "content": [{"type": "text", "text": "SAY:second"}]},
        ]);
        assert_eq!(step_after(&messages), Step::Say("second".into()));
    }

    #[test]
    fn reminders_are_not_prompts() {
        let text = "<system-reminder>RUN:no</system-reminder>SAY:yes<system-reminder>SAY:no";
        let messages = json!([{"role": "user", "content": text}]);
        assert_eq!(step_after(&messages), Step::Say("yes".into()));
    }

    #[test]
    fn a_prompt_without_markers_is_answered() {
        let messages = json!([{"role": "user", "content": "hello"}]);
        assert_eq!(step_after(&messages), Step::Say("STUB-OK after 0 results".into()));
    }
}
