//! What all requests of a session begin with.

use crate::resume;
use podbay_agent::Profile;
use podbay_agent::system_prompt;
use podbay_event::Kind;
use podbay_event::ToolMode;
use podbay_event::ToolTold;
use podbay_llm::ProbeResult;
use podbay_llm::Prompt;
use podbay_llm::ToolModeChoice;
use podbay_llm::ToolSpec;
use podbay_session::ResumeState;
use podbay_tools::Catalogue;

/// Continues as an earlier run of the session has learnt that this model must be told about tools.
pub(super) fn keep_mode(probed: &mut ProbeResult, past: &ResumeState, choice: ToolModeChoice) {
    let Some(beginning) = &past.beginning else {
        return;
    };
    let steps = |mode| match mode {
        ToolMode::Native => 0,
        ToolMode::Constrained => 1,
        ToolMode::Text => 2,
    };
    if choice == ToolModeChoice::Auto && steps(beginning.mode) > steps(probed.tools) {
        probed.tools = beginning.mode;
        "as the session has done before".clone_into(&mut probed.reason);
    }
}

/// Returns what all requests begin with, and the event that says so unless the log has it already.
pub(crate) fn first_prompt(
    catalogue: &Catalogue,
    probed: &ProbeResult,
    past: &ResumeState,
    profile: Profile,
) -> (Prompt, Option<Kind>) {
    let tools = catalogue.listed_tools();
    let (mode, thinking) = (probed.tools, probed.replay_thinking());
    if let Some(prompt) = resume::same_beginning(past, &tools, mode, thinking, profile) {
        return (prompt, None);
    }
    let system = system_prompt(profile);
    // A template that knows no system message does not learn of one.
    let folded = past
        .beginning
        .as_ref()
        .is_some_and(|beginning| beginning.folded);
    let prompt = Prompt::new(&system, &tools, mode)
        .with_thinking_replayed(thinking)
        .with_system_folded(folded);
    let told = |tool: ToolSpec| ToolTold {
        name: tool.name,
        description: tool.description,
        parameters: tool.parameters,
    };
    (
        prompt,
        Some(Kind::PromptBegun {
            system,
            tools: tools.into_iter().map(told).collect(),
            mode,
            thinking,
            folded,
        }),
    )
}
