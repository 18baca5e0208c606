use serde::Deserialize;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::InstallCall;

pub(crate) const NAME: &str = "install_dependencies";

/// Most package managers that one call names; there are fewer.
const MOST: usize = 20;

#[derive(Deserialize)]
struct Arguments {
    #[serde(default)]
    ecosystems: Vec<String>,
}

/// Gets the project's dependencies in an install phase. Which package managers there are is
/// checked where they run.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Install what the project's manifests and lock files name, from its registries. The user is asked; background commands end.",
        object(
            &json!({
                "ecosystems": {
                    "type": "array", "items": { "type": "string" }, "maxItems": MOST,
                    "description": "Such as npm, pip, cargo (default: those of the manifests)",
                },
            }),
            &[],
        ),
        |arguments, _, _| {
            let Arguments { ecosystems } = parse(arguments)?;
            Ok(Action::Host(HostCall::Install(InstallCall {
                ecosystems,
                ..InstallCall::default()
            })))
        },
    )
    .known_as(&["InstallDependencies"])
    .renamed(&[("ecosystem", "ecosystems"), ("package_managers", "ecosystems"), ("package_manager", "ecosystems")])
    .in_sets_from(ToolSet::Full)
    .such_as(r#"{"ecosystems": ["npm"]}"#)
}
