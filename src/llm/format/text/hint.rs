//! What is known of a template beforehand.

/// The format that a model's template teaches.
///
/// It never hides another format; it settles what a text alone leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    name: &'static str,
    /// The template opens a thought itself, so that the text begins within one.
    pub(super) thought: Option<&'static [&'static str]>,
    /// It begins a header that says to whom the first part goes.
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
    /// Returns the hint of that name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter()
            .copied()
            .find(|hint| hint.name.eq_ignore_ascii_case(name.trim()))
    }

    /// Returns the names there are.
    pub fn names() -> Vec<&'static str> {
        ALL.iter().map(|hint| hint.name).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_hint_is_found_by_its_name_and_once() {
        let mut names = Hint::names();
        assert!(names.iter().all(|name| Hint::find(&name.to_uppercase()).is_some_and(|hint| hint.name == *name)));
        names.dedup();
        assert_eq!(names.len(), ALL.len());
        assert!(Hint::find("vicuna").is_none());
    }
}
