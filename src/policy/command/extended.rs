//! Patterns of bash's extended kind, which stand for nearly all there is: `!(keep)`. They are no part of the grammar, so the text is looked at.

use std::sync::LazyLock;

use regex::Regex;

use super::ground::Ground;
use super::place;

/// Returns why a text is blocked that gives such a pattern to what takes files away.
pub(super) fn reason(text: &str, grounds: &[Ground]) -> Option<String> {
    static GIVEN: LazyLock<Regex> = LazyLock::new(|| {
        // Any sign but some, or any letter.
        let most = r"\[[!^][^\]]*\]|\[\[:(?:alnum|alpha|graph|lower|print|word):\]\]|\[[^\]]*[A-Za-z]-[A-Za-z][^\]]*\]";
        let pattern = format!(r"(?:!\([^()\s]*\)|[@?*+]\((?:[*?.|]|{most})*\))");
        let given = format!(r#"\b(?:rm|unlink|shred|truncate|chmod)\b[^;&\n]*?\s(?:\./)*{pattern}(?:[\s;&|)'"/]|$)"#);
        Regex::new(&given).expect("a pattern of our own")
    });
    let is_in_project = || grounds.last().is_some_and(|ground| place::whole("*", ground).is_some());
    let is_given = text.contains("extglob") && is_in_project() && GIVEN.is_match(text);
    is_given.then(|| format!("a pattern stands for nearly all of {}; name the files, or choose them with `find`", place::PROJECT))
}
