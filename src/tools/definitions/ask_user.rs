use serde::Deserialize;
use serde_json::Value;
use serde_json::json;

use crate::ToolSet;
use crate::arguments::nonempty;
use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::HostCall;

/// Most options that a question may offer.
const MOST_OPTIONS: usize = 10;
/// Most characters of a question.
const LONGEST: usize = 4000;

#[derive(Deserialize)]
struct Arguments {
    question: String,
    #[serde(default)]
    options: Vec<Value>,
}

/// A question to the user that is not about a permission. Without a user there is no answer, and
/// the call returns at once.
pub(super) fn tool() -> Tool {
    Tool::new(
        "ask_user",
        "Ask the user you work for, when you cannot continue without knowing.",
        object(
            &json!({
                "question": { "type": "string" },
                "options": { "type": "array", "items": { "type": "string" }, "description": "Answers to choose from" },
            }),
            &["question"],
        ),
        |arguments, _, _| {
            let Arguments { question, options } = parse(arguments)?;
            let question = nonempty("question", question)?;
            if question.chars().count() > LONGEST {
                return Err(format!("`question` is longer than {LONGEST} characters; ask for one thing, in a few words"));
            }
            if options.len() == 1 {
                return Err("`options` has one answer, which is no choice; give two or more, or none where any answer will do".to_owned());
            }
            if options.len() > MOST_OPTIONS {
                return Err(format!("`options` has {} answers, and the user can be asked with at most {MOST_OPTIONS}", options.len()));
            }
            let options = options.iter().map(option).collect::<Result<_, _>>()?;
            Ok(Action::Host(HostCall::AskUser { question, options }))
        },
    )
    .known_as(&["AskUser", "AskUserQuestion", "ask_question", "ask"])
    .renamed(&[("prompt", "question"), ("text", "question"), ("message", "question"), ("choices", "options"), ("answers", "options")])
    // Some systems have a label and a description for each.
    .also_takes(&json!({ "options": { "type": "array" } }))
    .in_sets_from(ToolSet::Standard)
    .such_as(r#"{"question": "Which of the two?", "options": ["the first", "the second"]}"#)
}

fn option(given: &Value) -> Result<String, String> {
    let text = given
        .as_str()
        .or_else(|| given["label"].as_str())
        .ok_or("`options` must be texts")?;
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() > 200 {
        return Err(
            "one of `options` is longer than 200 characters; say the rest in the question"
                .to_owned(),
        );
    }
    nonempty("options", text)
}
