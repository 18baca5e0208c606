use serde::Deserialize;
use serde::Serialize;

use super::CallEffect;
use super::CallFacts;
use super::CallFields;
use super::CallKind;
use super::CallNeed;
use super::CallVerb;
use super::FileMemory;
use super::FileScope;
use super::TimeLimit;
use super::ToolCall;
use super::ToolFacts;
use crate::message::Data;

/// Puts the files of a skill of the user's into the home folder of commands, where the model runs
/// them like any other program. The host sends it as a part of `use_skill`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlaceSkill {
    /// The skill's name, which becomes the name of a folder.
    pub name: String,
    pub files: Vec<PlacedFile>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PlacedFile {
    /// In the skill's folder, with `/` between names.
    pub path: String,
    pub data: Data,
    pub executable: bool,
}

impl ToolCall for PlaceSkill {
    const TOOLS: &'static [ToolFacts] = &[];

    fn facts(&self) -> CallFacts<'_> {
        CallFacts {
            tool: "place_skill",
            kind: CallKind::Session,
            effect: CallEffect::AddsFiles,
            needs: &[CallNeed::ReadFiles],
            paths: Vec::new(),
            scope: FileScope::Named,
            details: None,
            weight: self.files.iter().map(|file| file.data.0.len()).sum(),
            time: TimeLimit::Files,
            memory: FileMemory::Nothing,
            verb: CallVerb::Plain("place the files of a skill"),
        }
    }

    fn fields_mut(&mut self) -> CallFields<'_> {
        CallFields::of(Vec::new())
    }
}
