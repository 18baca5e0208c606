//! The last question of `--model`: whether code for a file comes as a call, and if it comes as
//! text, whether one word of ours helps.

use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::check::Check;
use super::trial::GROUP;
use super::trial::ask;
use super::trial::seconds;
use podbay_agent::nudge;
use podbay_event::ToolMode;
use podbay_llm as llm;
use podbay_llm::Client;
use podbay_llm::Message;
use podbay_llm::Prompt;
use podbay_llm::Reply;
use podbay_llm::ToolSpec;

const NAME: &str = "code as a call";
/// Most tokens of an answer: a short file, and words around it.
const MOST: u64 = 256;

/// What became of it.
#[derive(Debug, PartialEq, Eq)]
enum Came {
    /// As a call at once.
    AtOnce,
    /// As text, and as a call when it was asked again.
    WhenAsked,
    /// As text both times.
    Never,
    /// There was neither code nor a call.
    Nothing,
}

/// Asks for a file in the way that a run would tell of its tools. Nothing carries a call out.
pub(super) async fn check(client: &Client, mode: ToolMode, cancel: &CancellationToken) -> Check {
    match tries(client, mode, cancel).await {
        Ok((came, took)) => judge(&came, &took),
        Err(error) => Check::error(
            GROUP,
            NAME,
            &error,
            error.hint(),
            "the server's own log says more",
        ),
    }
}

async fn tries(
    client: &Client,
    mode: ToolMode,
    cancel: &CancellationToken,
) -> Result<(Came, String), llm::Error> {
    let parameters = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "content": { "type": "string" } },
        "required": ["path", "content"],
        "additionalProperties": false,
    });
    let tool = ToolSpec {
        name: "write_file".to_owned(),
        description: "Writes a file.".to_owned(),
        parameters,
    };
    let mut prompt = Prompt::new(
        "You use tools. To make a file, call write_file.",
        &[tool],
        mode,
    )
    .with_dialect(client.dialect());
    prompt.push(&Message::user(
        "Create the file hello.py, which prints hello.",
    ));
    let first = ask(client, &prompt, MOST, cancel).await?;
    if !first.reply.calls.is_empty() {
        return Ok((Came::AtOnce, seconds(first.took)));
    }
    let Some(words) = nudge(&first.reply.text, false) else {
        return Ok((Came::Nothing, seconds(first.took)));
    };
    let Reply { text, thinking, .. } = first.reply;
    prompt.push(&Message::Assistant {
        text,
        thinking,
        calls: Vec::new(),
        raw: None,
    });
    prompt.push(&Message::user(words));
    let second = ask(client, &prompt, MOST, cancel).await?;
    let came = if second.reply.calls.is_empty() {
        Came::Never
    } else {
        Came::WhenAsked
    };
    Ok((came, seconds(first.took + second.took)))
}

fn judge(came: &Came, took: &str) -> Check {
    match came {
        Came::AtOnce => Check::ok(
            GROUP,
            NAME,
            format!("it called write_file at once ({took})"),
        ),
        Came::WhenAsked => Check::ok(
            GROUP,
            NAME,
            format!("it showed code first, and called write_file when it was asked ({took})"),
        ),
        Came::Nothing => Check::ok(
            GROUP,
            NAME,
            format!("not seen: it answered with neither code nor a call ({took})"),
        ),
        Came::Never => {
            let remedy = "say in the task that files are to be written with tools, or try a model that is made for tools";
            Check::warn(
                GROUP,
                NAME,
                format!("it showed code for a file, twice, and called nothing ({took})"),
                remedy,
            )
        }
    }
}
