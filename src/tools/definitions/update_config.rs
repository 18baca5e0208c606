use serde::Deserialize;
use serde_json::json;

use crate::arguments::parse;
use crate::tool::Tool;
use crate::tool::object;
use podbay_policy::Action;
use podbay_policy::DocumentSection;
use podbay_policy::HostCall;
use podbay_wire::Call;
use podbay_wire::UpdateConfig;
use podbay_wire::is_hidden;

/// Most bytes of one section; `PODBAY.md` is read up to about this size.
const LARGEST: usize = 20_000;

#[derive(Deserialize)]
struct Arguments {
    section: String,
    content: String,
    #[serde(default)]
    beside: bool,
    #[serde(default)]
    place: Place,
}

/// Where a section is written.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    /// `PODBAY.md`, which all who work on the project get.
    #[default]
    Project,
    /// The project's document in the state folder, which only this user's sessions are shown.
    Memory,
}

/// Writes a section of `PODBAY.md`, or of the project's document in the state folder. Both are read
/// at the start of every session.
pub(super) fn tool() -> Tool {
    Tool::new(
        "update_config",
        "Write a section of PODBAY.md, the instructions that agents read at the start of every session.",
        object(
            &json!({
                "section": { "type": "string", "description": "Its heading" },
                "content": { "type": "string", "description": "The whole text below it; empty removes the section" },
                "place": { "type": "string", "enum": ["project", "memory"], "description": "`memory`: not PODBAY.md, but notes on the project that only this user has" },
                "beside": { "type": "boolean", "description": "Whether to make the file beside the project's other instructions; the user is asked" },
            }),
            &["section", "content"],
        ),
        |arguments, _, _| {
            let Arguments { section, content, beside, place } = parse(arguments)?;
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
            // Such a mark would not be part of a heading in Markdown, or would hide what follows.
            if let Some(mark) = ["<!--", "-->", "```", "~~~"].into_iter().find(|mark| section.contains(mark)) {
                return Err(format!("`section` holds {mark}, which begins or ends something else than a heading; write it without"));
            }
            if content.len() > LARGEST {
                return Err(format!(
                    "`content` has {} bytes, and a section at most {LARGEST}; put long texts in a file and name it",
                    content.len()
                ));
            }
            if place == Place::Memory {
                return Ok(Action::Host(HostCall::WriteSection(DocumentSection { heading: section, content })));
            }
            Ok(Action::Box(Call::UpdateConfig(UpdateConfig { section, content, beside, known: None })))
        },
    )
    .renamed(&[("heading", "section"), ("title", "section"), ("name", "section"), ("text", "content"), ("value", "content")])
    .such_as(r#"{"section": "Tests", "content": "Run them with make test."}"#)
}
