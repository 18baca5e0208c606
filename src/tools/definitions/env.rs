use serde::Deserialize;
use serde_json::json;

use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Env;

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Get,
    List,
}

#[derive(Deserialize)]
struct Arguments {
    action: Option<Operation>,
    name: Option<String>,
    prefix: Option<String>,
}

/// Shows the environment variables of commands; values that look like secrets are redacted.
pub(super) fn tool() -> Tool {
    Tool::new(
        "env",
        "Show the environment variables that commands have. Secrets are not shown.",
        object(
            &json!({
                "action": { "type": "string", "enum": ["get", "list"] },
                "name": { "type": "string", "description": "One variable" },
                "prefix": { "type": "string", "description": "Only names that begin so" },
            }),
            &[],
        ),
        |arguments, _, _| {
            let Arguments {
                action,
                name,
                prefix,
            } = parse(arguments)?;
            let name = name.map(|name| nonempty("name", name)).transpose()?;
            match (action, &name, &prefix) {
                (Some(Operation::Get), None, _) => {
                    return Err("`name` is missing: the variable to get".to_owned());
                }
                (Some(Operation::List), Some(_), _) => {
                    return Err("`name` is for get; list takes a `prefix`".to_owned());
                }
                (_, Some(_), Some(_)) => {
                    return Err("give either `name` or `prefix`, not both".to_owned());
                }
                _ => {}
            }
            Ok(Action::Box(Call::Env(Env { name, prefix })))
        },
    )
    .renamed(&[
        ("variable", "name"),
        ("key", "name"),
        ("filter", "prefix"),
        ("operation", "action"),
    ])
    .such_as(r#"{"action": "get", "name": "PATH"}"#)
}
