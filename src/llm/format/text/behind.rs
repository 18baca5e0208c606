//! What the words behind a marked call say of it: they go on, or they leave nobody sure that it was meant.
//!
//! Small models write on behind a call: what it will do, or what it might have shown. That says nothing against it. A question, a condition, a word
//! that takes it back or speaks of calls does. Only English is known, so words of other languages leave nobody sure.

use super::phrases::ADDRESSING;
use super::phrases::DISOWNING;
use super::phrases::DOUBTING;
use super::phrases::EXPLAINING;
use super::phrases::INTRODUCING;

/// Returns whether these words behind a marked call, or between two, say nothing against it.
pub(super) fn leave_it_meant(words: &str) -> bool {
    // A sentence that goes on says something of the call: "and does what it says."
    if words.starts_with(char::is_lowercase) || words.starts_with([',', ';', '-', '\u{2013}', '\u{2014}']) && !words.starts_with("- ") {
        return false;
    }
    // Another call in them could not be read, or is only shown.
    let may_hold_call = words.contains(['<', '[', '{', '?', '\u{201c}']) || words.chars().any(|c| c.is_alphabetic() && !c.is_ascii());
    if may_hold_call {
        return false;
    }
    let lower = words.to_lowercase();
    let speaks_of_it = [&ADDRESSING[..], &DISOWNING, &EXPLAINING, &INTRODUCING].into_iter().flatten().any(|phrase| lower.contains(phrase));
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '\'' | '\u{2019}');
    // A short form denies by its end: "won't".
    let denies = |word: &str| word.ends_with("n't") || word.ends_with("n\u{2019}t");
    !speaks_of_it && lower.split(|c| !is_part(c)).all(|word| !denies(word) && !DOUBTING.contains(&word))
}

#[cfg(test)]
mod tests {
    use super::leave_it_meant;

    #[test]
    fn what_goes_on_says_nothing_against_a_call_and_what_doubts_it_does() {
        for words in [
            "Done.",
            "This will list the files.",
            "I will wait for the result.",
            "The output shows three files: a.txt, b.txt and c.txt.\n\nThe task is complete.",
            "```\na.txt\nb.txt\n```",
            "- a.txt\n- b.txt",
            "**Result**: 3 files",
        ] {
            assert!(leave_it_meant(words), "{words}");
        }
        for words in [
            "Shall I?",
            "Let me know if this is right.",
            "I'll do it once you agree.",
            "That is an example.",
            "This is how a call looks.",
            "Actually, no.",
            "I won't do that.",
            "Waiting for your approval.",
            "If it fails, I stop.",
            "Soll ich das ausführen",
            "Ésto",
            "<tool_call>{",
            "[bash(",
            "It could remove all.",
            "That was a mistake.",
            "and does what it says.",
            "\u{2014} it lists the files",
        ] {
            assert!(!leave_it_meant(words), "{words}");
        }
    }
}
