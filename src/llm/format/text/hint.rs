//! What is known of a template beforehand.

/// The format that a model's template teaches.
///
/// It never hides another format; it settles what a text alone leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hint {
    name: &'static str,
    /// The template opens a thought itself, so that the text begins within one.
    pub(super) thought: Option<&'static [&'static str]>,
    /// Its calls stand in the open, so that one in the open or in a fence is certain.
    pub(super) open: bool,
    /// It begins a header that says to whom the first part goes.
    pub(super) addresses: bool,
}

const fn hint(name: &'static str, thought: Option<&'static [&'static str]>, open: bool) -> Hint {
    Hint { name, thought, open, addresses: false }
}

const THINK: Option<&[&str]> = Some(&["</think>"]);

const ALL: &[Hint] = &[
    hint("command-r", None, true),
    hint("command-r7b", None, false),
    hint("deepseek-r1", THINK, false),
    hint("deepseek-v3", None, false),
    Hint { name: "functionary", thought: None, open: true, addresses: true },
    hint("gemma", None, true),
    hint("glm", None, true),
    hint("gpt-oss", None, false),
    hint("granite", None, false),
    hint("hermes", None, false),
    hint("kimi", None, false),
    hint("lfm2", None, false),
    hint("llama3", None, true),
    hint("llama4", None, true),
    hint("minimax", Some(&["</think>", "</mm:think>"]), false),
    hint("mistral", None, false),
    hint("nemotron", None, false),
    hint("openmono", None, true),
    hint("orangutan", None, false),
    hint("phi4", None, true),
    hint("qwen", None, false),
    hint("qwen3-coder", None, false),
    hint("qwen3-thinking", THINK, false),
    hint("seed-oss", None, false),
    hint("xlam", None, true),
];

impl Hint {
    /// Returns the hint of that name.
    pub fn find(name: &str) -> Option<Self> {
        ALL.iter().copied().find(|hint| hint.name.eq_ignore_ascii_case(name.trim()))
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
