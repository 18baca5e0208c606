use serde_json::json;

use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::Processes;

pub(super) fn tool() -> Tool {
    Tool::new(
        "list_processes",
        "List the background processes of this session.",
        object(&json!({}), &[]),
        |_, _, _| Ok(Action::Box(Call::Processes(Processes::List))),
    )
    .such_as("{}")
}
