//! Recognises an answer that shows what should be done where the model was to do it.

use podbay_llm::Fences;

/// Words by which a model announces that a file is to change.
const ACTIONS: [&str; 11] = ["create", "write", "save", "update", "add", "modify", "edit", "replace", "change", "put", "generate"];

/// Words by which a model announces what it does next.
const INTENDING: [&str; 8] = ["i will", "i'll", "i\u{2019}ll", "let me", "let's", "let\u{2019}s", "i am going to", "i need to"];
/// Words by which it announces that it runs something itself, whoever reads its calls.
const RUNNING: [&str; 13] = [
    "i will",
    "i'll",
    "let me",
    "let's",
    "i am going to",
    "i'm going to",
    "i need to",
    "now i",
    "i now",
    "i run",
    "first i",
    "next i",
    "i shall",
];
/// Words by which a sentence of that kind is none all the same: it shows, explains or offers.
const SHOWING: [&str; 14] = [
    "show",
    "explain",
    "let me know",
    "tell you",
    "give you",
    "would",
    "example",
    "you'll",
    "you should",
    "for you",
    "recommend",
    "suggest",
    "not ",
    "n't",
];
/// Words by which it tells a person what they may do.
const ADVISING: [&str; 8] = ["you can", "you could", "you may", "yourself", "for example", "on your", "your terminal", "your machine"];

/// Words by which an answer says that something is under way.
const WAITING: [&str; 12] = [
    "i'll wait",
    "i will wait",
    "i wait",
    "waiting for",
    "wait for the",
    "awaiting",
    "let me know the result",
    "once i have the",
    "once it is done",
    "after that i",
    "then i will",
    "then i'll",
];
/// Words of a sentence that tells what a command said, or what a file holds.
const REPORTING: [&str; 14] = [
    "output",
    "result",
    "print",
    "show",
    "contain",
    "return",
    "content",
    "said",
    "says",
    "list of",
    "version",
    "look like",
    "looks like",
    "reads",
];
/// Programs that a line of a shell may begin with, where nothing says that it is one.
const PROGRAMS: [&str; 44] = [
    "awk", "bash", "cargo", "cat", "cd", "chmod", "cmake", "cp", "curl", "diff", "docker", "echo", "export", "find", "gcc", "git", "go",
    "grep", "head", "ls", "make", "mkdir", "mv", "node", "npm", "npx", "pip", "pip3", "pnpm", "pwd", "pytest", "python", "python3", "rg",
    "rm", "rustc", "sed", "sh", "sort", "tail", "touch", "tree", "wc", "yarn",
];

/// What to tell a model whose answer goes on behind a call in its text, or holds it where examples stand.
pub(super) const UNSURE: &str = "Your answer shows a tool call rather than making it: with words behind it, in a list or an indented block, behind words that say \
                                 whose it is, or word for word as you were shown it. It was not carried out. \
                                 If it was meant, make it again on a line of its own and end your answer with it; else give your whole answer again.";

/// What to tell a model whose answer holds what may be a call that nobody can read.
pub(super) const UNREAD: &str = "Your answer holds what looks like a tool call in no form that can be read, so nothing was carried out. If it was meant, make it \
                                 again as plain JSON on a line of its own and end your answer with it; else give your whole answer again.";

/// What to tell a model whose answer ends with a command that it only shows.
const UNRUN: &str = "Your answer ends with a command in a code block, where it is not carried out. If you meant to run it, call the tool `bash` \
                     with it; else give your whole answer again.";

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

/// Returns what to tell a model that is told of its tools by text and ends its answer with a command in a block of code, as if that ran it.
/// `has_worked`: something was done already, so that it rather tells what the person may run, unless it announces what it does itself.
pub(super) fn nudge_to_run(answer: &str, has_worked: bool) -> Option<&'static str> {
    let (before, block, is_named) = last_block(answer)?;
    let sentence = last_line(before);
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    let is_command = is_named || is_shell(block) && !has(&REPORTING);
    let is_meant = is_command && (has(&INTENDING) || !has_worked && !has(&ADVISING));
    (is_meant && !block.trim().is_empty()).then_some(UNRUN)
}

/// Returns the same for a model whose server reports its calls: it makes them there, so only a command that it announces as its own next step
/// is asked about, and none that it explains to the person.
pub(super) fn nudge_to_announced(answer: &str) -> Option<&'static str> {
    let (before, block, is_named) = last_block(answer)?;
    let line = last_line(before).replace('\u{2019}', "'");
    // What a line says of something else before that is of no matter: "Done. Now I run it:".
    let sentence = line.rsplit(['.', '!', '?', ';']).find(|sentence| sentence.contains(char::is_alphabetic)).unwrap_or_default();
    let words = format!(" {}", sentence.trim_start_matches(|c: char| !c.is_alphabetic()));
    let announces = RUNNING.iter().any(|begin| words.contains(&format!(" {begin} ")));
    let has = |words: &[&str]| words.iter().any(|word| sentence.contains(word));
    let is_command = !block.trim().is_empty() && (is_named || is_shell(block) && !has(&REPORTING));
    (is_command && announces && !has(&ADVISING) && !has(&SHOWING)).then_some(UNRUN)
}

fn last_line(text: &str) -> String {
    text.trim_end().rsplit('\n').next().unwrap_or_default().to_lowercase()
}

/// Returns whether each line of a block without a language begins as a command does.
fn is_shell(block: &str) -> bool {
    let is_command = |line: &str| {
        let line = line.strip_prefix("$ ").unwrap_or(line);
        let word = line.split(' ').next().unwrap_or_default();
        PROGRAMS.contains(&word) || word.starts_with("./") && word.len() > 2
    };
    let mut lines = block.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    lines.peek().is_some() && lines.all(is_command)
}

/// Returns the block of shell code that an answer ends with, or that may be such code, what stands before it, and whether it is called so.
fn last_block(answer: &str) -> Option<(&str, &str, bool)> {
    const SHELLS: [&str; 7] = ["bash", "sh", "shell", "zsh", "console", "shell-session", "terminal"];
    let (mut fences, mut found, mut at) = (Fences::default(), None, 0);
    for line in answer.split_inclusive('\n') {
        let begin = at;
        at += line.len();
        if !fences.take(line) {
            // Words behind it say what it is for.
            found = found.filter(|_| fences.is_open() || line.trim().is_empty());
        } else if fences.is_open() {
            let language = line.trim().trim_start_matches(['`', '~']).trim().to_lowercase();
            let is_named = SHELLS.contains(&language.as_str());
            found = (is_named || language.is_empty()).then_some((begin, at, answer.len(), is_named));
        } else if let Some((_, _, end, _)) = &mut found {
            *end = begin;
        }
    }
    found.map(|(fence, begin, end, is_named)| (&answer[..fence], &answer[begin..end], is_named))
}

/// Returns whether the last words of an answer speak of what is to come of something: it is not its end.
pub(super) fn waits(answer: &str) -> bool {
    let last = answer.trim_end().rsplit('\n').next().unwrap_or_default().to_lowercase().replace('\u{2019}', "'");
    WAITING.iter().any(|words| last.contains(words))
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
    fn a_command_that_ends_an_answer_as_if_that_ran_it_is_asked_about() {
        for (answer, before, after) in [
            ("```bash\nls -la\n```", true, false),
            ("Let me look:\n\n```sh\nls\n```\n", true, true),
            ("I'll list them.\n~~~console\n$ ls", true, true),
            ("The files:\n```\na.txt\n```", false, false),
            ("```bash\nls\n```\nlists the files.", false, false),
            ("You can start it with:\n```bash\n./run\n```", false, false),
            ("Run it:\n```bash\n./run\n```", true, false),
            ("```python\nprint(1)\n```", false, false),
            ("```bash\n```", false, false),
            ("```bash\nls\n```\nprints\n```\na.txt\n```", false, false),
            ("Done.", false, false),
            ("I run the tests:\n```\ncargo test\n```", true, false),
            ("Let me look:\n```\n# the files\n$ ls -la\ncat a.txt\n```", true, true),
            ("```\n./run.sh\n```", true, false),
            ("The output:\n```\ngit version 2.47\n```", false, false),
            ("Let me show what it prints:\n```\nls: no such file\n```", false, false),
            ("You can run:\n```\nmake\n```", false, false),
            ("It is:\n```\nls\nno command at all\n```", false, false),
            ("```\n\n```", false, false),
        ] {
            assert_eq!((nudge_to_run(answer, false).is_some(), nudge_to_run(answer, true).is_some()), (before, after), "{answer}");
        }
    }

    #[test]
    fn a_command_that_a_native_model_announces_as_its_own_is_asked_about_and_no_other() {
        for answer in [
            "I'll run the tests now:\n```bash\npytest -q\n```",
            "Let me run the tests:\n```bash\npytest\n```",
            "I\u{2019}ll run these:\n\n```sh\npip install x\npytest -q\n```\n",
            "The file is there. Now I run it:\n```\n./run.sh\n```",
            "**I am going to look.**\n~~~console\n$ ls",
            "1. First I list your files:\n```bash\nls\n```",
        ] {
            assert!(nudge_to_announced(answer).is_some(), "{answer}");
        }
        for answer in [
            "You can run:\n```bash\npytest\n```",
            "To run the tests:\n```bash\npytest\n```",
            "```bash\npytest\n```",
            "I ran the tests with this:\n```bash\npytest\n```",
            "Let me show you how to run it:\n```bash\npytest\n```",
            "Let me know if this works:\n```bash\npytest\n```",
            "I'll leave that to you; on your machine:\n```bash\npytest\n```",
            "I would run:\n```bash\npytest\n```",
            "I will not run this:\n```bash\npytest\n```",
            "I'll run the tests now:\n```bash\npytest\n```\nThey pass.",
            "I'll run it. You could do so too:\n```bash\npytest\n```",
            "Let me run it:\n```python\nprint(1)\n```",
            "Let me run it:\n```bash\n```",
            "I'll run the tests now.",
            "Multi run:\n```bash\nls\n```",
        ] {
            assert!(nudge_to_announced(answer).is_none(), "{answer}");
        }
    }

    #[test]
    fn who_waits_for_a_result_has_not_ended() {
        for answer in
            ["{{x}}\nI'll wait for the result.", "Then I\u{2019}ll go on. Waiting for the output.", "Once I have the output, I go on."]
        {
            assert!(waits(answer), "{answer}");
        }
        for answer in ["", "The call is written so.", "I will wait.\n\nIt is done.", "Servers let clients wait."] {
            assert!(!waits(answer), "{answer}");
        }
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
