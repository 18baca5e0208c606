use serde_json::json;

use crate::policy::Action;
use crate::tools::tool::Tool;
use crate::tools::tool::object;
use crate::wire::Call;
use crate::wire::Processes;

pub(super) fn tool() -> Tool {
    Tool::new("list_processes", "List the background processes of this session.", object(&json!({}), &[]), |_, _, _| {
        Ok(Action::Box(Call::Processes(Processes::List)))
    })
    .known_as(&["ListProcesses", "list_background_processes"])
    .such_as("{}")
}
