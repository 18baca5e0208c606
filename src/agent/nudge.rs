//! Recognizes an answer that shows what should be done instead of doing it.

use podbay_llm::Fences;

/// Words with which a model announces a change of a file.
const ACTIONS: [&str; 11] = [
    "create", "write", "save", "update", "add", "modify", "edit", "replace", "change", "put",
    "generate",
];

/// The message to a model whose answer contains what looks like a call and is none.
pub(super) const LOOKS_LIKE: &str = "Your answer shows what looks like a tool call, where none is executed. If you meant it, make the call itself, in the form that \
                                     you were told, as the only thing in your answer. If not, say only that: your answer stands as it is.";

/// The message to a model whose answer shows code for a file that it did not write.
const UNWRITTEN: &str = "Your answer shows code for a file, and no file was changed. If the file is to have it, write it with a tool call. If not, say only \
                         that: your answer stands as it is.";

/// Returns the message for a model whose answer announces and shows code for a file. `has_worked`:
/// something was changed already, so that code in the answer is probably a report.
pub fn nudge(answer: &str, has_worked: bool) -> Option<&'static str> {
    let (prose, has_blocks) = split(answer);
    let lower = prose.to_lowercase();
    let announces = lower
        .split(|c: char| !c.is_alphabetic())
        .any(|word| ACTIONS.iter().any(|action| is_form(word, action)));
    (!has_worked && has_blocks && announces && prose.split_whitespace().any(is_file))
        .then_some(UNWRITTEN)
}

/// Returns whether a command looks like it writes something.
pub(super) fn may_write(command: &str) -> bool {
    const WRITERS: [&str; 12] = [
        "tee", "sed", "touch", "cp", "mv", "rm", "mkdir", "patch", "git", "make", "install", "perl",
    ];
    command.contains('>')
        || command
            .split(|c: char| !c.is_alphanumeric())
            .any(|word| WRITERS.contains(&word))
}

/// Splits an answer into its prose and whether it has fenced code.
fn split(answer: &str) -> (String, bool) {
    let (mut prose, mut has_blocks) = (String::new(), false);
    let mut fences = Fences::default();
    for line in answer.lines() {
        if fences.take(line) {
            has_blocks = true;
        } else if !fences.is_open() {
            prose.push_str(line);
            prose.push('\n');
        }
    }
    (prose, has_blocks)
}

/// Returns whether a word is the action or a form of it: `creates`, `created`, `creating`.
fn is_form(word: &str, action: &str) -> bool {
    let stem = action.trim_end_matches('e');
    word.strip_prefix(stem)
        .is_some_and(|end| ["", "e", "s", "es", "ed", "d", "ing"].contains(&end))
}

/// Returns whether a word looks like the name of a file: `src/main.rs`, `` `hello.py`: ``.
fn is_file(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    if matches!(
        word.to_lowercase().as_str(),
        "e.g" | "i.e" | "a.m" | "p.m" | "u.s"
    ) || word.contains("://")
    {
        return false;
    }
    let Some((stem, end)) = word.rsplit_once('.') else {
        return false;
    };
    !stem.is_empty()
        && (1..=5).contains(&end.len())
        && end.starts_with(|c: char| c.is_ascii_alphabetic())
        && end.chars().all(|c| c.is_ascii_alphanumeric())
        && stem.chars().any(char::is_alphabetic)
        && stem
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: bool) {
        assert_eq!(nudge(answer, false).is_some(), expected, "{answer}");
    }

    #[test]
    fn a_read_only_command_has_written_nothing() {
        assert!(
            [
                "echo a > b",
                "sed -i s/a/b/ f",
                "mkdir -p a && ls",
                "git commit -m x"
            ]
            .iter()
            .all(|command| may_write(command))
        );
        assert!(
            ["ls -la", "cat a.txt | head", "grep -rn touchdown ."]
                .iter()
                .all(|command| !may_write(command))
        );
    }

    #[test]
    fn code_for_an_unwritten_file_is_asked_about() {
        check("I create `src/main.rs`:\n```rust\nfn main() {}\n```", true);
        check("Saving hello.py:\n```\nprint(1)\n", true);
        check(
            "The file src/main.rs holds this:\n```rust\nfn main() {}\n```",
            false,
        );
        check("You could write\n```\nx = 1\n```", false);
        check("I updated src/main.rs.", false);
        check("Write this, e.g. in 3.5 hours:\n```\nx\n```", false);
        assert_eq!(
            nudge("I wrote `a.py`:\n```\nprint(1)\n```", true),
            None,
            "it reports"
        );
    }
}
