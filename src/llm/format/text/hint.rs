//! What is known about a model's template beforehand.

/// The format that a model's template teaches.
/// It never excludes another format; it decides what the text alone leaves ambiguous.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    name: &'static str,
    /// The template opens a thought itself, so that the text begins within one.
    pub(super) thought: Option<&'static [&'static str]>,
    /// The template begins a header that names the recipient of the first part.
    pub(super) addresses: bool,
}

const fn hint(name: &'static str, thought: Option<&'static [&'static str]>) -> Hint {
    Hint {
        name,
        thought,
        addresses: false,
    }
}

const THINK: Option<&[&str]> = Some(&["</think>"]);

const ALL: &[Hint] = &[
    hint("command-r", None),
    hint("command-r7b", None),
    hint("deepseek-r1", THINK),
    hint("deepseek-v3", None),
    Hint {
        name: "functionary",
        thought: None,
        addresses: true,
    },
    hint("gemma", None),
    hint("glm", None),
    hint("gpt-oss", None),
    hint("granite", None),
    hint("hermes", None),
    hint("kimi", None),
    hint("lfm2", None),
    hint("llama3", None),
    hint("llama4", None),
    hint("minimax", Some(&["</think>", "</mm:think>"])),
    hint("mistral", None),
    hint("nemotron", None),
    hint("openmono", None),
    hint("orangutan", None),
    hint("phi4", None),
    hint("qwen", None),
    hint("qwen3-coder", None),
    hint("qwen3-thinking", THINK),
    hint("seed-oss", None),
    hint("xlam", None),
];

impl Hint {
    /// Returns the hint with this name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter()
            .copied()
            .find(|hint| hint.name.eq_ignore_ascii_case(name.trim()))
    }

    /// Returns the names of all hints.
    pub fn names() -> Vec<&'static str> {
        ALL.iter().map(|hint| hint.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_has_a_unique_name() {
        let mut names = Hint::names();
        assert!(names.iter().all(|name| Hint::find(&name.to_uppercase()).is_some_and(|hint| hint.name == *name)));
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(Hint::find("vicuna").is_none());
    }
}
