use serde_json::json;

use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::PlanCall;

/// Asks the user once more about the last plan.
pub(super) fn tool() -> Tool {
    Tool::new(
        "implement_plan",
        "Ask the user once more to approve your last plan, so that you can implement it.",
        object(&json!({}), &[]),
        |_, _, _| Ok(Action::Host(HostCall::Plan(PlanCall::Implement))),
    )
    .known_as(&["ImplementPlan"])
    .such_as("{}")
}
