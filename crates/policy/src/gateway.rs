//! Whether a request names the gateway that the host selects, and allows no more of it.

use crate::refusal::denied;
use placement_contract::definition::LaunchPolicy;
use placement_contract::limits::ENDPOINT_BYTES_MAX;
use placement_contract::request::{Destination, Gateway, HOOK_EVENTS};
use placement_contract::{LaunchRequest, Line, Refusal};
use std::collections::BTreeSet;

/// The gateway of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostGateway {
    /// Its address.
    pub endpoint: Line<ENDPOINT_BYTES_MAX>,
    /// The variable that receives the token for the tools.
    pub destination: Destination,
    /// The variable that receives the token for the hooks.
    pub hook_destination: Destination,
}

/// Compares the request's gateway with what the host and the policy select.
///
/// # Errors
/// DENIED for a gateway that is missing, not selected, or not the selected one.
pub(crate) fn check_gateway(
    request: &LaunchRequest,
    rules: &LaunchPolicy,
    host: Option<&HostGateway>,
) -> Result<(), Refusal> {
    let asked = request.gateway.as_ref();
    if !rules.has_gateway() {
        return match asked {
            None => Ok(()),
            Some(_) => Err(denied("gateway: the launch policy selects none")),
        };
    }
    if rules.gateway_hooks.iter().any(|event| !HOOK_EVENTS.contains(&event.as_str())) {
        return Err(denied("the launch policy has a hook event that no gateway admits"));
    }
    let Some(host) = host else {
        return Err(denied("the launch policy needs a gateway and this host has none"));
    };
    let Some(asked) = asked else {
        return Err(denied("gateway: the launch policy selects one"));
    };
    if selected(asked, rules, host) {
        Ok(())
    } else {
        Err(denied("gateway: is not the one that the host and the launch policy select"))
    }
}

fn selected(asked: &Gateway, rules: &LaunchPolicy, host: &HostGateway) -> bool {
    let hook_destination = (!rules.gateway_hooks.is_empty()).then_some(&host.hook_destination);
    asked.endpoint == host.endpoint
        && asked.destination == host.destination
        && asked.hook_destination.as_ref() == hook_destination
        && same(&asked.tools, &rules.gateway_tools)
        && same(&asked.hooks, &rules.gateway_hooks)
}

/// Compares whatever the order; each is there once.
fn same<T: Ord>(one: &[T], other: &[T]) -> bool {
    one.iter().collect::<BTreeSet<_>>() == other.iter().collect::<BTreeSet<_>>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{policy, request};
    use placement_contract::Code;
    use serde_json::{Value, json};

    fn host() -> HostGateway {
        HostGateway {
            endpoint: Line::parse("http://127.0.0.1:1").unwrap(),
            destination: Destination::parse("TOKEN").unwrap(),
            hook_destination: Destination::parse("HOOK_TOKEN").unwrap(),
        }
    }

    fn selected() -> Value {
        json!({
            "endpoint": "http://127.0.0.1:1", "tools": ["write", "read"], "destination": "TOKEN",
            "hooks": ["Stop"], "hook_destination": "HOOK_TOKEN",
        })
    }

    fn code(asked: Option<Value>, rules: &Value, host: Option<&HostGateway>) -> Option<Code> {
        let request = request(&[], |request| {
            if let Some(asked) = asked {
                request["gateway"] = asked;
            }
        });
        check_gateway(&request, &policy(rules), host).err().map(|refusal| refusal.code)
    }

    #[test]
    fn the_selected_gateway_is_admitted_in_any_order() {
        let rules = json!({ "gateway_tools": ["read", "write"], "gateway_hooks": ["Stop"] });
        assert_eq!(code(Some(selected()), &rules, Some(&host())), None);
    }

    #[test]
    fn any_difference_is_denied() {
        let rules = json!({ "gateway_tools": ["read", "write"], "gateway_hooks": ["Stop"] });
        let differences = [
            ("endpoint", json!("http://127.0.0.1:2")),
            ("tools", json!(["read"])),
            ("tools", json!(["read", "write", "more"])),
            ("destination", json!("OTHER")),
            ("hooks", json!(["SessionStart"])),
            ("hook_destination", json!("OTHER")),
        ];
        for (field, value) in differences {
            let mut asked = selected();
            asked[field] = value;
            assert_eq!(code(Some(asked), &rules, Some(&host())), Some(Code::Denied), "{field}");
        }
    }

    #[test]
    fn a_gateway_is_there_where_it_is_selected_and_only_there() {
        let rules = json!({ "gateway_tools": ["read", "write"], "gateway_hooks": ["Stop"] });
        assert_eq!(code(None, &rules, Some(&host())), Some(Code::Denied));
        assert_eq!(code(Some(selected()), &rules, None), Some(Code::Denied));
        assert_eq!(code(Some(selected()), &json!({}), Some(&host())), Some(Code::Denied));
        assert_eq!(code(None, &json!({}), None), None);
    }

    #[test]
    fn a_hook_of_the_end_is_admitted_by_no_gateway() {
        for event in placement_contract::request::SHUTDOWN_EVENTS {
            let rules = json!({ "gateway_hooks": [event] });
            let asked = json!({
                "endpoint": "http://127.0.0.1:1", "destination": "TOKEN", "hooks": [event],
                "hook_destination": "HOOK_TOKEN",
            });
            assert_eq!(code(Some(asked), &rules, Some(&host())), Some(Code::Denied), "{event}");
        }
    }
}
