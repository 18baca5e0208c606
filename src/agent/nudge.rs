//! Recognises an answer that shows what should be done where the model was to do it.

use crate::llm::Fences;

/// Words by which a model announces that a file is to change.
const ACTIONS: [&str; 11] = ["create", "write", "save", "update", "add", "modify", "edit", "replace", "change", "put", "generate"];

/// What to tell a model whose answer goes on behind a call in its text, or holds it where examples stand.
pub(super) const UNSURE: &str = "Your answer shows a tool call rather than making it: with words behind it, in a list or an indented block, behind words that say \
                                 whose it is, or word for word as you were shown it. It was not carried out. \
                                 If it was meant, make it again on a line of its own and end your answer with it; else give your whole answer again.";

/// What to tell a model whose answer holds what may be a call that nobody can read.
pub(super) const UNREAD: &str = "Your answer holds what looks like a tool call in no form that can be read, so nothing was carried out. If it was meant, make it \
                                 again as plain JSON on a line of its own and end your answer with it; else give your whole answer again.";

/// Returns what to tell a model whose answer holds no call, but looks as if one was meant. `has_worked`: something was changed already, so
/// that code in the answer is rather a report.
pub fn nudge(answer: &str, has_worked: bool) -> Option<&'static str> {
    let (prose, blocks) = split(answer);
    if blocks.iter().any(|block| is_call_like(block)) {
        return Some(
            "Your answer shows a tool call in a code block, where it is not carried out. If it was meant, make the call itself, with a tool \
             of your list; else give your whole answer again.",
        );
    }
    let lower = prose.to_lowercase();
    let announces = lower.split(|c: char| !c.is_alphabetic()).any(|word| ACTIONS.iter().any(|action| is_form(word, action)));
    (!has_worked && !blocks.is_empty() && announces && prose.split_whitespace().any(is_file)).then_some(
        "Your answer shows code for a file, and no file was changed. If the file is to have it, write it with a tool call; else give your \
         whole answer again.",
    )
}

/// Returns whether a command looks as if it wrote something.
pub(super) fn may_write(command: &str) -> bool {
    const WRITERS: [&str; 12] = ["tee", "sed", "touch", "cp", "mv", "rm", "mkdir", "patch", "git", "make", "install", "perl"];
    command.contains('>') || command.split(|c: char| !c.is_alphanumeric()).any(|word| WRITERS.contains(&word))
}

/// Parts an answer into its prose and its fenced blocks.
fn split(answer: &str) -> (String, Vec<String>) {
    let (mut prose, mut blocks) = (String::new(), Vec::new());
    let mut fences = Fences::default();
    for line in answer.lines() {
        if fences.take(line) {
            if fences.is_open() {
                blocks.push(String::new());
            }
            continue;
        }
        let block = if fences.is_open() { blocks.last_mut() } else { None };
        let to = block.unwrap_or(&mut prose);
        to.push_str(line);
        to.push('\n');
    }
    (prose, blocks)
}

/// Returns whether a block is JSON with a name and arguments.
fn is_call_like(block: &str) -> bool {
    let dense: String = block.chars().filter(|c| !c.is_whitespace()).take(4096).collect();
    let has = |names: &[&str]| names.iter().any(|name| dense.contains(&format!("\"{name}\":")));
    (dense.starts_with('{') || dense.starts_with("[{")) && has(&["name", "tool"]) && has(&["arguments", "parameters"])
}

/// Returns whether a word is the action or a form of it: `creates`, `created`, `creating`.
fn is_form(word: &str, action: &str) -> bool {
    let stem = action.trim_end_matches('e');
    word.strip_prefix(stem).is_some_and(|end| ["", "e", "s", "es", "ed", "d", "ing"].contains(&end))
}

/// Returns whether a word looks like the name of a file: `src/main.rs`, `` `hello.py`: ``.
fn is_file(word: &str) -> bool {
    let word = word.trim_matches(|c: char| !c.is_alphanumeric());
    if matches!(word.to_lowercase().as_str(), "e.g" | "i.e" | "a.m" | "p.m" | "u.s") || word.contains("://") {
        return false;
    }
    let Some((stem, end)) = word.rsplit_once('.') else { return false };
    !stem.is_empty()
        && (1..=5).contains(&end.len())
        && end.starts_with(|c: char| c.is_ascii_alphabetic())
        && end.chars().all(|c| c.is_ascii_alphanumeric())
        && stem.chars().any(char::is_alphabetic)
        && stem.chars().all(|c| c.is_alphanumeric() || matches!(c, '/' | '_' | '-' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(answer: &str, expected: bool) {
        assert_eq!(nudge(answer, false).is_some(), expected, "{answer}");
    }

    #[test]
    fn a_call_in_a_code_block_is_asked_about() {
        check("I will do it:\n```json\n{\"name\": \"fly\", \"arguments\": {}}\n```", true);
        check("```\n{ \"tool\": \"fly\",\n \"parameters\": {}}\n```", true);
        check("- I will do it:\n  ~~~json\n  {\"name\": \"fly\", \"arguments\": {}}\n  ~~~", true);
        check("```json\n{\"name\": \"podbay\", \"version\": \"0.1\"}\n```", false);
        check("{\"name\": \"fly\", \"arguments\": {}} is the form", false);
        assert!(nudge("```json\n{\"name\": \"fly\", \"arguments\": {}}\n```", true).is_some(), "also after work");
    }

    #[test]
    fn a_command_that_only_looks_has_written_nothing() {
        assert!(["echo a > b", "sed -i s/a/b/ f", "mkdir -p a && ls", "git commit -m x"].iter().all(|command| may_write(command)));
        assert!(["ls -la", "cat a.txt | head", "grep -rn touchdown ."].iter().all(|command| !may_write(command)));
    }

    #[test]
    fn code_for_a_file_that_nobody_wrote_is_asked_about() {
        check("I create `src/main.rs`:\n```rust\nfn main() {}\n```", true);
        check("Saving hello.py:\n```\nprint(1)\n", true);
        check("The file src/main.rs holds this:\n```rust\nfn main() {}\n```", false);
        check("You could write\n```\nx = 1\n```", false);
        check("I updated src/main.rs.", false);
        check("Write this, e.g. in 3.5 hours:\n```\nx\n```", false);
        assert_eq!(nudge("I wrote `a.py`:\n```\nprint(1)\n```", true), None, "it reports");
    }
}
