use serde::Deserialize;
use serde_json::json;

use super::web_fetch::web;
use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_wire::WebAction;
use podbay_wire::WebRequest;

pub(crate) const NAME: &str = "network_diagnostics";

/// Seconds where the model says nothing, and at most.
const SECONDS: u64 = 5;
const MAX_SECONDS: u64 = 60;

#[derive(Deserialize)]
struct Arguments {
    action: WebAction,
    target: String,
    timeout_seconds: Option<u64>,
}

/// Says what the rules say of a host, and tries it.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Find out why a host is not reached: whether a rule allows it, and whether it answers.",
        object(
            &json!({
                "action": { "type": "string", "enum": [WebAction::DnsLookup, WebAction::CheckConnection, WebAction::Ping] },
                "target": { "type": "string", "description": "HOST, HOST:PORT or a URL" },
                "timeout_seconds": { "type": "integer", "minimum": 1, "maximum": MAX_SECONDS, "description": format!("Default {SECONDS}") },
            }),
            &["action", "target"],
        ),
        |arguments, options, _| {
            let Arguments { action, target, timeout_seconds } = parse(arguments)?;
            let target = nonempty("target", target)?;
            if target.contains('\0') {
                return Err("`target` holds a NUL byte".to_owned());
            }
            let seconds = timeout_seconds.unwrap_or(SECONDS);
            Ok(web(WebRequest::Diagnose { action, target }, seconds * 1000, options))
        },
    )
    .renamed(&[("host", "target"), ("url", "target"), ("hostname", "target"), ("timeout", "timeout_seconds")])
    .in_sets_from(ToolSet::Full)
    .such_as(r#"{"action": "check_connection", "target": "registry.example.org:443"}"#)
}
