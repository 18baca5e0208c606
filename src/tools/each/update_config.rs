use serde::Deserialize;
use serde_json::json;

use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_wire::Call;
use podbay_wire::UpdateConfig;
use podbay_wire::is_hidden;

/// Bytes of one section; what is read of all of them together is not much more.
const LARGEST: usize = 20_000;

#[derive(Deserialize)]
struct Arguments {
    section: String,
    content: String,
    #[serde(default)]
    beside: bool,
}

/// Keeps what the person wants known in every session in `PODBAY.md`, a section at a time.
pub(super) fn tool() -> Tool {
    Tool::new(
        "update_config",
        "Write a section of PODBAY.md, the instructions that agents read at the start of every session.",
        object(
            &json!({
                "section": { "type": "string", "description": "Its heading" },
                "content": { "type": "string", "description": "The whole text below it; empty removes the section" },
                "beside": { "type": "boolean", "description": "Whether to make the file beside the project's other instructions; the user is asked" },
            }),
            &["section", "content"],
        ),
        |arguments, _, _| {
            let Arguments { section, content, beside } = parse(arguments)?;
            let section = section.trim().trim_start_matches('#').trim().to_owned();
            if section.is_empty() {
                return Err("`section` is empty: the heading of the section".to_owned());
            }
            if section.chars().any(char::is_control) || section.chars().count() > 100 {
                return Err("`section` is one line of at most 100 characters".to_owned());
            }
            if section.chars().any(is_hidden) {
                return Err(
                    "`section` has a letter in it that cannot be seen or that turns the text around it; write it without".to_owned()
                );
            }
            // What begins with one of these would be no heading to whoever reads the file, or hide
            // what follows it.
            if let Some(mark) = ["<!--", "-->", "```", "~~~"].into_iter().find(|mark| section.contains(mark)) {
                return Err(format!("`section` holds {mark}, which begins or ends something else than a heading; write it without"));
            }
            if content.len() > LARGEST {
                return Err(format!(
                    "`content` has {} bytes, and a section at most {LARGEST}; put long texts in a file and name it",
                    content.len()
                ));
            }
            Ok(Action::Box(Call::UpdateConfig(UpdateConfig { section, content, beside, known: None })))
        },
    )
    .known_as(&["UpdateConfig", "update_instructions"])
    .renamed(&[("heading", "section"), ("title", "section"), ("name", "section"), ("text", "content"), ("value", "content")])
    .such_as(r#"{"section": "Tests", "content": "Run them with make test."}"#)
}
