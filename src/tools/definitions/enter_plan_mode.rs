use serde_json::json;

use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::PlanCall;

/// Makes the project read-only until a user approved a plan.
pub(super) fn tool() -> Tool {
    Tool::new(
        "enter_plan_mode",
        "Make the project read-only until the user approved your plan. For large tasks that need one first.",
        object(&json!({ "reason": { "type": "string" } }), &[]),
        |_, _, _| Ok(Action::Host(HostCall::Plan(PlanCall::Enter))),
    )
    .known_as(&["EnterPlanMode"])
    .such_as(r#"{"reason": "The change touches three modules."}"#)
}
