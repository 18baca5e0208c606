//! The prompt of a real run, all of it; and where a model fails at that, which part of it is too
//! much.

use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::check::chain;
use super::model::mode_word;
use super::trial::Answer;
use super::trial::GROUP;
use super::trial::ask;
use super::trial::seconds;
use super::trial::short;
use podbay_agent::Profile;
use podbay_agent::system_prompt;
use podbay_event::ToolMode;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Message;
use podbay_llm::Prompt;
use podbay_llm::ToolSpec;
use podbay_tools as tools;
use podbay_tools::Catalogue;
use podbay_tools::ToolSet;

const NAME: &str = "full prompt";
/// Most tokens of an answer; a call is shorter.
const MOST: u64 = 256;

/// One way to ask, and what to do if it is the one that works.
struct Way {
    what: String,
    system: String,
    tools: Vec<ToolSpec>,
    mode: ToolMode,
    remedy: String,
}

/// Asks as a run would. Where no call comes of it and the model `can_call`, it is asked with less,
/// one part after the other.
pub(super) async fn check(
    client: &Client,
    options: &tools::Options,
    mode: ToolMode,
    can_call: bool,
    cancel: &CancellationToken,
) -> Check {
    let all = specs(options);
    let whole = Way {
        what: String::new(),
        system: system_prompt(Profile::Standard),
        tools: all.clone(),
        mode,
        remedy: String::new(),
    };
    let problem = match whole.ask(client, cancel).await {
        Ok(called) => {
            return Check::ok(
                GROUP,
                NAME,
                format!("with {} tools it called {called}", all.len()),
            );
        }
        Err(problem) => problem,
    };
    if !can_call {
        return Check::warn(
            GROUP,
            NAME,
            problem,
            "it calls no tool when it knows of one alone: see the lines above",
        );
    }
    let (mut works, mut remedy) = (Vec::new(), None);
    for way in less(options, &all, mode) {
        if way.ask(client, cancel).await.is_ok() {
            works.push(way.what);
            remedy.get_or_insert(way.remedy);
        }
    }
    let works = if works.is_empty() {
        "no part of it is the cause".to_owned()
    } else {
        format!("it does call {}", works.join(", "))
    };
    let remedy =
        remedy.unwrap_or_else(|| "a larger model, or one that is made for tools, helps".to_owned());
    Check::warn(GROUP, NAME, format!("{problem}; {works}"), remedy)
}

/// Returns the ways to ask for less.
fn less(options: &tools::Options, all: &[ToolSpec], mode: ToolMode) -> [Way; 4] {
    let other = if mode == ToolMode::Constrained {
        ToolMode::Native
    } else {
        ToolMode::Constrained
    };
    let one = all
        .iter()
        .filter(|tool| tool.name == "read_file")
        .cloned()
        .collect();
    let way = |what: &str, tools: Vec<ToolSpec>, remedy: &str| Way {
        what: what.to_owned(),
        system: system_prompt(Profile::Standard),
        tools,
        mode,
        remedy: remedy.to_owned(),
    };
    let small = specs(&tools::Options {
        set: ToolSet::Small,
        ..options.clone()
    });
    let larger = "a larger model, or one that is made for tools, helps";
    [
        way(
            "with the set of tools `small`",
            small,
            "tell it of fewer tools: --tools small",
        ),
        way("with one tool", one, larger),
        Way {
            system: String::new(),
            ..way("without the system prompt", all.to_vec(), larger)
        },
        Way {
            mode: other,
            ..way(
                &format!("when tools are told the other way ({})", mode_word(other)),
                all.to_vec(),
                &format!("llm.tool_mode = \"{}\"", mode_word(other)),
            )
        },
    ]
}

impl Way {
    /// Returns what was called, or what came instead.
    async fn ask(&self, client: &Client, cancel: &CancellationToken) -> Result<String, String> {
        let mut prompt =
            Prompt::new(&self.system, &self.tools, self.mode).with_dialect(client.dialect());
        prompt.push(&Message::user(
            "Read the file README.md and say what it is about.",
        ));
        called(&self.tools, &ask(client, &prompt, MOST, cancel).await)
    }
}

fn called(tools: &[ToolSpec], outcome: &Result<Answer, llm::Error>) -> Result<String, String> {
    let answer = outcome.as_ref().map_err(|error| chain(error))?;
    let Some(call) = answer.reply.calls.first() else {
        return Err(format!(
            "it answered without a call ({})",
            seconds(answer.took)
        ));
    };
    let shown = format!(
        "{} {} ({})",
        short(&call.name),
        short(&call.arguments),
        seconds(answer.took)
    );
    let is_known = tools.iter().any(|tool| tool.name == call.name);
    let is_good = is_known && serde_json::from_str::<serde_json::Value>(&call.arguments).is_ok();
    if is_good {
        Ok(shown)
    } else {
        Err(format!(
            "it called {shown}, which is not what it was told of"
        ))
    }
}

fn specs(options: &tools::Options) -> Vec<ToolSpec> {
    let spec = |tool: &tools::Tool| ToolSpec {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    Catalogue::new(options).tools().iter().map(spec).collect()
}
