//! Whether the arguments of a launch allow more tools of the gateway than were admitted.

use crate::refusal::denied;
use placement_contract::definition::LaunchPolicy;
use placement_contract::{LaunchRequest, Refusal};

/// The name by which a program knows the gateway.
const SERVER: &str = "bee";
/// The tool that a gateway always has.
const SESSION_TOOL: &str = "session";
/// The options whose values allow tools.
const ALLOWING_OPTIONS: &[&str] = &["--allowedTools", "--allowed-tools"];

/// Scans the arguments for tools of the gateway that are allowed without being admitted.
///
/// # Errors
/// DENIED for a tool that was not admitted, the bare server, and a pattern that may match both.
pub(crate) fn check_allowed_tools(
    request: &LaunchRequest,
    rules: &LaunchPolicy,
) -> Result<(), Refusal> {
    let admitted = |tool: &str| {
        rules.gateway_tools.iter().any(|known| known.as_str() == tool)
            || (rules.has_gateway() && tool == SESSION_TOOL)
    };
    let values = allowing_values(request);
    let mut names = values.iter().flat_map(|value| value.split([',', ' ', '\t', '\n', '\r']));
    match names.find(|name| !is_fine(name, rules.has_gateway(), admitted)) {
        None => Ok(()),
        Some(_) => Err(denied("launch.argv: allows a tool of the gateway that was not admitted")),
    }
}

/// Collects the values of the allowing options: after `=`, or every argument up to the next option.
fn allowing_values(request: &LaunchRequest) -> Vec<&str> {
    let mut values = Vec::new();
    let mut collecting = false;
    for argument in &request.launch.argv {
        let text = argument.as_str();
        if let Some((option, value)) = text.split_once('=')
            && ALLOWING_OPTIONS.contains(&option)
        {
            values.push(value);
            collecting = false;
        } else if text.starts_with('-') {
            collecting = ALLOWING_OPTIONS.contains(&text);
        } else if collecting {
            values.push(text);
        }
    }
    values
}

fn is_fine(name: &str, has_gateway: bool, admitted: impl Fn(&str) -> bool) -> bool {
    let server = format!("mcp__{SERVER}");
    if let Some(start) = name.split_once('*').map(|(start, _)| start)
        && format!("{server}__").starts_with(start)
    {
        // A pattern that matches tools of the gateway, admitted or not. That everything is allowed is
        // said by those too who have no gateway.
        return start.is_empty() && !has_gateway;
    }
    match name.strip_prefix(server.as_str()) {
        None => true,
        Some(rest) => rest.strip_prefix("__").is_some_and(admitted),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{policy, request};
    use serde_json::json;

    fn is_admitted(tools: &[&str], argv: &[&str]) -> bool {
        let rules = policy(&json!({ "gateway_tools": tools }));
        check_allowed_tools(&request(argv, |_| ()), &rules).is_ok()
    }

    #[test]
    fn an_admitted_tool_is_allowed_in_every_form() {
        let forms: [&[&str]; 5] = [
            &["--allowedTools", "mcp__bee__read"],
            &["--allowed-tools=Bash,mcp__bee__read mcp__bee__session"],
            &["--allowedTools", "Bash", "mcp__bee__read", "--verbose", "mcp__bee__other"],
            &["--allowedTools", "mcp__github__write,mcp__other", "-p", "mcp__bee"],
            &["--print", "mcp__bee__other is only spoken of"],
        ];
        for argv in forms {
            assert!(is_admitted(&["read"], argv), "{argv:?}");
        }
    }

    #[test]
    fn what_was_not_admitted_is_denied_in_every_form() {
        assert!(is_admitted(&[], &["--allowedTools", "*"]), "there is no gateway");
        let forms: [&[&str]; 12] = [
            &["--allowedTools", "*"],
            &["--allowedTools", "m*"],
            &["--allowedTools", "mcp*"],
            &["--allowedTools", "mcp__bee__write"],
            &["--allowed-tools=mcp__bee__write"],
            &["--allowedTools=Bash,mcp__bee__write"],
            &["--allowedTools", "Bash\nmcp__bee__write"],
            &["--allowedTools", "Bash", "mcp__bee__write"],
            &["--allowedTools", "mcp__bee"],
            &["--allowedTools", "mcp__bee__*"],
            &["--allowedTools", "mcp__*"],
            &["--allowedTools", "mcp__bee__read(x)"],
        ];
        for argv in forms {
            assert!(!is_admitted(&["read"], argv), "{argv:?}");
        }
    }

    #[test]
    fn the_session_tool_comes_with_a_gateway_only() {
        let argv = ["--allowedTools", "mcp__bee__session"];
        assert!(is_admitted(&["read"], &argv));
        assert!(!is_admitted(&[], &argv));
    }
}
