//! An agent at work over a sandbox and a model of the bench's own.

use std::sync::Arc;
use std::time::Duration;

use podbay::agent;
use podbay::agent::Agent;
use podbay::agent::Conversation;
use podbay::agent::Profile;
use podbay::agent::system_prompt;
use podbay::event::Sink;
use podbay::llm;
use podbay::llm::Client;
use podbay::llm::Endpoint;
use podbay::llm::Prompt;
use podbay::llm::ToolSpec;
use podbay::policy;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::session::History;
use podbay::tools;
use podbay::tools::Catalogue;
use podbay::tools::Pipeline;
use podbay::tools::Workspace;
use tokio_util::sync::CancellationToken;

use super::Outcome;
use super::alone::Alone;

/// Returns an agent that continues behind what was said before.
pub(super) async fn agent(
    endpoint: &str,
    history: History,
    workspace: Arc<dyn Workspace>,
    sink: Sink,
    options: agent::Options,
) -> Outcome<Agent> {
    let client = Client::new(Endpoint::parse(endpoint)?, None, llm::Options::default())?;
    let probed = client
        .probe(&CancellationToken::new(), Duration::from_secs(10))
        .await?;
    let of_tools = tools::Options::default();
    let catalogue = Catalogue::new(&of_tools);
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    let specs: Vec<ToolSpec> = catalogue.tools().iter().map(spec).collect();
    let conversation = Conversation::resume(
        Prompt::new(&system_prompt(Profile::Standard), &specs, probed.tools),
        history,
    );
    let policy = Policy::new(Mode::Auto, &policy::Options::default())?;
    let pipeline = Pipeline::new(
        catalogue,
        policy,
        workspace,
        Arc::new(Alone),
        Arc::new(Alone),
        Arc::clone(&sink),
        of_tools,
    );
    pipeline.set_window(probed.context);
    Ok(Agent::new(
        client,
        conversation,
        Arc::new(pipeline),
        8,
        options,
        sink,
    ))
}
