//! The status of a call that failed, and what the model is advised to do about it.

use super::ToolSet;
use podbay_event::CallStatus;
use podbay_wire::Fault;
use podbay_wire::Limit;
use podbay_wire::Output;

/// Returns the status of a call that did not succeed.
pub(super) fn failed(output: Option<&Output>, is_cancelled: bool) -> CallStatus {
    match output {
        _ if is_cancelled => CallStatus::Cancelled,
        Some(Output::Fault(Fault::Cancelled)) => CallStatus::Cancelled,
        Some(Output::Command(ended)) if matches!(ended.limit, Some(Limit::Time { .. })) => {
            CallStatus::TimedOut
        }
        Some(Output::Fault(Fault::TimedOut { .. })) => CallStatus::TimedOut,
        Some(Output::Fault(
            Fault::Changed { .. }
            | Fault::Stale { .. }
            | Fault::Outdated { .. }
            | Fault::HunkMissed { applied: true, .. },
        )) => CallStatus::Conflict,
        _ => CallStatus::Failed,
    }
}

/// Returns advice for the model, where the result alone does not say how to continue.
pub(super) fn hint(status: CallStatus, tool: &str, set: ToolSet) -> Option<&'static str> {
    match status {
        CallStatus::Conflict => {
            Some("the file has changed since you read it: read it again, then make the change")
        }
        CallStatus::TimedOut => Some(match (tool, set) {
            // Advice names only arguments that the set lists.
            ("bash", ToolSet::Small) | ("sandbox_run", _) => {
                "to continue, ask for more time, or do less at once"
            }
            ("bash", _) => {
                "to continue, ask for more time, let it run in the background, or do less at once"
            }
            // Tools without a time argument.
            (tool, _) if tool.starts_with("git_") => {
                "to continue, ask for less at once, such as one file or folder, or run git with bash, where you can ask for more time"
            }
            ("network_diagnostics", _) => {
                "to continue, ask for more time, or take it that the host does not answer"
            }
            ("web_fetch", _) => {
                "the server is too slow: continue without the page, or try it once more later"
            }
            _ => "to continue, ask for less at once, such as one file or folder",
        }),
        CallStatus::Cancelled => {
            Some("it was stopped from outside; what it had done until then is done")
        }
        // Faults and denials contain their own remedy; a command's failure is explained by its
        // output.
        CallStatus::Ok | CallStatus::Failed | CallStatus::Invalid | CallStatus::Denied => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Catalogue;
    use crate::Options;

    /// A call that timed out is advised only arguments that its tool has.
    #[test]
    fn advice_after_a_timeout_names_only_arguments_of_the_tool() {
        for set in [ToolSet::Small, ToolSet::Standard, ToolSet::Full] {
            for tool in Catalogue::new(&Options {
                set,
                ..Options::default()
            })
            .tools()
            {
                let hint = hint(CallStatus::TimedOut, tool.name, set).expect("one");
                let tells = |argument: &str| tool.parameters["properties"].get(argument).is_some();
                assert_eq!(
                    hint.contains("in the background"),
                    tool.name == "bash" && tells("background"),
                    "{} {set:?}: {hint}",
                    tool.name
                );
                assert_eq!(
                    hint.starts_with("to continue, ask for more time"),
                    tells("timeout_seconds"),
                    "{} {set:?}: {hint}",
                    tool.name
                );
            }
        }
    }
}
