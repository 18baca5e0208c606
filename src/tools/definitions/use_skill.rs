use serde::Deserialize;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::SkillCall;

pub(crate) const NAME: &str = "use_skill";

#[derive(Deserialize)]
struct Arguments {
    name: String,
}

/// Reads the steps of a skill. Which skills there are is told with the session's tools.
pub(super) fn tool() -> Tool {
    Tool::new(
        NAME,
        "Read the steps of a skill that fits the task, before you begin.",
        object(&json!({ "name": { "type": "string" } }), &["name"]),
        |arguments, _, _| {
            let Arguments { name } = parse(arguments)?;
            let name = nonempty("name", name)?;
            Ok(Action::Host(HostCall::UseSkill(SkillCall { name })))
        },
    )
    .known_as(&["Skill", "skill", "load_skill", "read_skill"])
    .renamed(&[
        ("skill", "name"),
        ("command", "name"),
        ("skill_name", "name"),
    ])
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"name": "release-notes"}"#)
}
