use serde::Deserialize;
use serde::Serialize;

/// A note for later sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Lower-case letters, digits and hyphens.
    pub name: String,
    pub kind: MemoryKind,
    /// One line.
    pub description: String,
    /// Markdown.
    pub content: String,
}

/// What a memory is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemoryKind {
    /// Who the user is, and what they prefer.
    User,
    /// What the user said about how work was done.
    Feedback,
    /// Facts about the project that its files do not say.
    Project,
    /// Where something is documented.
    Reference,
}

impl MemoryKind {
    /// All kinds, by the words that stand for them in files and arguments.
    pub const ALL: [(&str, Self); 4] = [
        ("user", Self::User),
        ("feedback", Self::Feedback),
        ("project", Self::Project),
        ("reference", Self::Reference),
    ];

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(known, _)| *known == word)
            .map(|(_, kind)| *kind)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Feedback => "feedback",
            Self::Project => "project",
            Self::Reference => "reference",
        }
    }
}

/// Says that a model saved a memory, and how the user takes it away.
pub fn memory_saved_words(memory: &Memory, replaced: bool, pruned: &[String]) -> String {
    let Memory {
        name,
        kind,
        description,
        ..
    } = memory;
    let how = if replaced { "changed" } else { "saved" };
    let gone = if pruned.is_empty() {
        String::new()
    } else {
        format!("; removed as the oldest: {}", pruned.join(", "))
    };
    format!(
        "a note for later sessions is {how}: {name} ({}): {description} (`podbay memory show {name}` shows it, `podbay memory forget \
         {name}` removes it{gone})",
        kind.as_str()
    )
}
