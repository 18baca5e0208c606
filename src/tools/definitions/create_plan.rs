use serde::Deserialize;
use serde_json::json;

use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::planning::LONGEST;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;
use podbay_policy::PlanCall;

#[derive(Deserialize)]
struct Arguments {
    plan: String,
}

/// Shows the user a plan, who approves, changes or discards it.
pub(super) fn tool() -> Tool {
    Tool::new(
        "create_plan",
        "Show the user your plan, to approve, change or discard. An approved one ends plan mode.",
        object(
            &json!({ "plan": { "type": "string", "description": "The whole plan, in Markdown" } }),
            &["plan"],
        ),
        |arguments, _, _| {
            let Arguments { plan } = parse(arguments)?;
            if plan.len() > LONGEST {
                return Err(format!(
                    "`plan` is longer than {} KiB; leave out what is in the files",
                    LONGEST >> 10
                ));
            }
            Ok(Action::Host(HostCall::Plan(PlanCall::Create {
                text: nonempty("plan", plan)?,
            })))
        },
    )
    .known_as(&["CreatePlan", "exit_plan_mode", "ExitPlanMode"])
    .renamed(&[
        ("text", "plan"),
        ("content", "plan"),
        ("markdown", "plan"),
        ("steps", "plan"),
    ])
    .such_as(r#"{"plan": "1. Change `total` in cart.py.\n2. Run the tests."}"#)
}
