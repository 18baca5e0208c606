use super::super::Command;
use super::super::Word;
use super::super::WordKind;
use super::super::only_in_bash;
use super::super::runs::is_stream;
use super::super::runs::only_checks;
use super::Inner;
use super::UNKNOWN_TEXT;
use super::Unwrapped;

/// Options by name that only make the shell stop earlier or say more.
const PLAIN_OPTIONS: [&str; 8] = ["pipefail", "errexit", "nounset", "xtrace", "verbose", "noglob", "noclobber", "posix"];

/// Notes where a text may mean something else to the shell that reads it than to bash, as which it is read here.
pub(super) fn read_by(name: &str, text: &str, unwrapped: &mut Unwrapped) {
    match name {
        "bash" | "rbash" => {}
        "sh" | "dash" | "ash" => {
            if let Some(what) = only_in_bash(text) {
                unwrapped.doubt(what, "another shell than bash reads this otherwise");
            }
        }
        _ => unwrapped.doubt(name, "what its language makes of the text is not known"),
    }
}

/// A shell: the text behind `-c`, or what it is given to read.
pub(super) fn shell(command: &Command, name: &str, unwrapped: &mut Unwrapped) {
    if only_checks(command) {
        return;
    }
    let mut arguments = command.arguments().iter();
    let (mut has_text, mut reads_input, mut is_login) = (false, false, false);
    let mut given_words: Vec<Word> = command.program().into_iter().cloned().collect();
    while let Some(word) = arguments.next() {
        let Some(text) = word.known() else {
            unwrapped.doubt(&word.text, UNKNOWN_TEXT);
            if has_text {
                // Where something expands, most of it is what it says.
                unwrapped.inner.push(Inner::Called(word.text.clone(), arguments.cloned().collect()));
                return;
            }
            // What is read is given the names that a pattern finds.
            if !reads_input || word.kind != WordKind::Pattern {
                return;
            }
            given_words.push(word.clone());
            given_words.extend(arguments.by_ref().cloned());
            break;
        };
        match text {
            "--version" | "--help" if !has_text => return,
            "--login" => is_login = true,
            "--norc" | "--noprofile" | "--posix" | "--verbose" | "--restricted" | "--" | "-" => {}
            "-o" | "+o" => {
                let option = arguments.next().and_then(Word::known).unwrap_or_default();
                if !PLAIN_OPTIONS.contains(&option) {
                    unwrapped.doubt(text, "an option that may change what words mean");
                }
            }
            _ if text.starts_with("--") => unwrapped.doubt(text, "an option that may make the shell read a file"),
            _ if text.len() > 1 && text.starts_with(['-', '+']) => {
                has_text |= text.starts_with('-') && text.contains('c');
                reads_input |= text.starts_with('-') && text.contains('s');
                // Its start-up files are there already, as a script may be; one that the text itself writes is read.
                is_login |= text.contains('l');
                if !text[1..].chars().all(|c| "ceuxvfCnls".contains(c)) {
                    unwrapped.doubt(text, "an option that may read start-up files or change what words mean");
                }
                if text.contains(['o', 'O']) {
                    arguments.next();
                }
            }
            text if has_text => {
                read_by(name, text, unwrapped);
                unwrapped.inner.push(Inner::Called(text.to_owned(), arguments.cloned().collect()));
                unwrapped.nothing_else = !is_login;
                return;
            }
            // What is read is given these.
            _ if reads_input => {
                given_words.push(word.clone());
                given_words.extend(arguments.by_ref().cloned());
            }
            // One that is there already may start whatever it wants, as `./FILE` may; one that the text itself writes is read.
            file if is_stream(file) => {
                unwrapped.doubt(file, UNKNOWN_TEXT);
                given_words.extend(arguments.by_ref().cloned());
            }
            _ => return,
        }
    }
    match text_given(command) {
        Some(text) if !has_text => {
            read_by(name, text, unwrapped);
            unwrapped.inner.push(Inner::Called(text.to_owned(), given_words));
            unwrapped.nothing_else = !is_login;
        }
        _ => {
            unwrapped.doubt(name, UNKNOWN_TEXT);
            let given = command.given.clone().or_else(|| text_with_expansions(command));
            unwrapped.inner.extend(given.filter(|_| !has_text).map(|text| Inner::Called(text, given_words)));
        }
    }
}

/// Returns the text that a command is given to read, where that is known.
fn text_given(command: &Command) -> Option<&str> {
    let given = command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<'));
    given.filter(|redirection| matches!(redirection.operator.as_str(), "<<" | "<<<"))?.target.as_ref()?.known()
}

/// Returns the text of a here-document in which something expands, as it is written: most of it is what it says.
fn text_with_expansions(command: &Command) -> Option<String> {
    let given = command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<'))?;
    matches!(given.operator.as_str(), "<<" | "<<<").then(|| given.target.as_ref().map(|target| target.text.clone()))?
}

/// `source FILE` reads a file that is there already, unless its name is not known.
pub(super) fn source(command: &Command, name: &str, unwrapped: &mut Unwrapped) {
    let file = after_dashes(command.arguments()).first();
    match file.and_then(Word::known) {
        Some(path) if !is_stream(path) => {}
        _ => {
            unwrapped.doubt(file.map_or(name, |file| &file.text), "what is in the file that it reads is not known");
            let text = text_given(command).map(ToOwned::to_owned).or_else(|| command.given.clone());
            unwrapped.inner.extend(text.map(Inner::Text));
        }
    }
}

/// `eval` puts its words together and reads them again.
pub(super) fn eval(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let words = after_dashes(arguments);
    let text = words.iter().map(|word| word.text.as_str()).collect::<Vec<_>>().join(" ");
    if words.iter().all(|word| word.kind == WordKind::Known) {
        // Which shell that is, only those around it say.
        read_by("sh", &text, unwrapped);
        unwrapped.nothing_else = true;
    } else {
        unwrapped.doubt("eval", UNKNOWN_TEXT);
    }
    // Where something expands, most of it is what it says.
    unwrapped.inner.push(Inner::Text(text));
}

/// `trap TEXT SIGNAL` reads the text later.
pub(super) fn trap(arguments: &[Word], unwrapped: &mut Unwrapped) {
    if let Some(first) = after_dashes(arguments).first()
        && !matches!(first.known(), Some("-" | "-l" | "-p" | ""))
    {
        unwrapped.text(Some(first), "trap");
    }
}

/// `alias NAME=TEXT`: whether it counts depends on the shell, so both readings stand.
pub(super) fn alias(arguments: &[Word], unwrapped: &mut Unwrapped) {
    for word in arguments {
        match word.known().map(|text| text.split_once('=')) {
            Some(None) => {}
            Some(Some((name, text))) => {
                unwrapped.doubt(name, "an alias changes what a word means");
                unwrapped.inner.push(Inner::Text(text.to_owned()));
            }
            None => unwrapped.doubt(&word.text, "an alias changes what a word means"),
        }
    }
}

/// `history -s WORDS` puts a command into the list from which `fc` runs it.
pub(super) fn history(arguments: &[Word], unwrapped: &mut Unwrapped) {
    let Some(first) = arguments.first() else { return };
    if first.known().is_some_and(|text| !text.starts_with('-') || !text.contains('s')) {
        return;
    }
    match after_dashes(&arguments[1..]).iter().map(Word::known).collect::<Option<Vec<&str>>>() {
        Some(words) if first.known().is_some() => unwrapped.inner.push(Inner::Text(words.join(" "))),
        _ => unwrapped.doubt("history", UNKNOWN_TEXT),
    }
}

/// Returns whether `fc` shows commands, and runs none of them again.
pub(super) fn only_lists(arguments: &[Word]) -> bool {
    let is_plain = |text: &str| {
        let option = text.strip_prefix('-').unwrap_or_default();
        option.chars().all(|c| "lnr".contains(c)) || option.bytes().all(|byte| byte.is_ascii_digit())
    };
    let lists = |word: &Word| word.text.starts_with('-') && word.text.contains('l');
    arguments.iter().all(|word| word.known().is_some_and(is_plain)) && arguments.iter().any(lists)
}

/// What the shell shows before a command is read as text with substitutions in it, each time.
pub(super) fn prompts(command: &Command, unwrapped: &mut Unwrapped) {
    const PROMPTS: [&str; 6] = ["PS0", "PS1", "PS2", "PS3", "PS4", "PROMPT_COMMAND"];
    let is_plain = |text: &str| !text.contains(['$', '`', '\\']);
    for set in command.assignments.iter().filter(|set| PROMPTS.contains(&set.name.as_str())) {
        let is_known = set.value.as_ref().and_then(Word::known).is_some_and(is_plain);
        if !is_known || set.name == "PROMPT_COMMAND" {
            unwrapped.doubt(&set.name, "the shell may run what is in it");
        }
    }
}

/// Commands of the shell that take the index of a list in a name for an expression, which may hold a substitution.
pub(super) fn evaluated(name: &str, command: &Command, unwrapped: &mut Unwrapped) {
    const TAKE_NAMES: [&str; 15] = [
        "test",
        "[",
        "printf",
        "read",
        "declare",
        "typeset",
        "local",
        "export",
        "readonly",
        "let",
        "unset",
        "mapfile",
        "readarray",
        "getopts",
        "wait",
    ];
    if !TAKE_NAMES.contains(&name) {
        return;
    }
    let refers = |word: &Word| word.text.strip_prefix('-').is_some_and(|letters| letters.contains('n') && !letters.contains('-'));
    let is_reference = matches!(name, "declare" | "typeset" | "local") && command.arguments().iter().any(refers);
    let is_plain = |text: &str| !text.starts_with("BASH_");
    for set in command.assignments.iter().filter(|set| is_reference && !set.value.as_ref().and_then(Word::known).is_some_and(is_plain)) {
        unwrapped.doubt(&set.name, "what it stands for may be an index, and run what stands in that");
    }
    // A list that stands in a word is one where the variable holds lists: what is in it is expanded then.
    let is_declaring = matches!(name, "declare" | "typeset" | "local" | "export" | "readonly");
    for word in command.arguments().iter().filter(|_| is_declaring) {
        let is_bare = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_reference && is_bare(&word.text) {
            unwrapped.doubt(&word.text, "what it stands for is said later, and may be an index that runs what stands in it");
        }
    }
    let lists = command.arguments().iter().filter_map(|word| word.text.split_once("=(").map(|(_, list)| list));
    let set = command.assignments.iter().filter_map(|set| set.value.as_ref()).filter(|value| value.kind == WordKind::Known);
    let lists = lists.chain(set.filter_map(|value| value.text.strip_prefix('(')));
    for list in lists.filter(|list| is_declaring && list.contains(['$', '`'])) {
        unwrapped.doubt(list, "a list in a word, which may be expanded");
        unwrapped.inner.push(Inner::Text(format!(": {}", list.trim_end().strip_suffix(')').unwrap_or(list))));
    }
    let holds = |text: &str| text.contains('[') && (text.contains("$(") || text.contains('`'));
    if let Some(word) = computed_name(name, command.arguments()) {
        unwrapped.doubt(&word.text, "what a variable holds may be taken for a name, and run what stands in its index");
    }
    let values = command.assignments.iter().filter_map(|set| set.value.as_ref());
    for word in command.arguments().iter().chain(values).filter(|word| word.known().is_some_and(holds)) {
        unwrapped.doubt(&word.text, "it may run what stands in the index");
    }
}

/// Returns the first word of such a command that is the name of a variable, or an expression, and is known only when it runs.
fn computed_name<'a>(name: &str, arguments: &'a [Word]) -> Option<&'a Word> {
    let is_unknown = |word: &&Word| word.kind == WordKind::Unknown;
    let behind = |option: &str| arguments.windows(2).find(|pair| pair[0].text == option).map(|pair| &pair[1]).filter(is_unknown);
    match name {
        "test" | "[" => behind("-v").or_else(|| behind("-R")),
        "printf" => behind("-v").or_else(|| arguments.first().filter(|word| is_unknown(word) && word.text.starts_with("-v"))),
        "wait" => behind("-p"),
        "read" | "mapfile" | "readarray" => {
            // What such an option is given is no name.
            let is_given = |at: usize| {
                at > 0
                    && arguments[at - 1].text.starts_with('-')
                    && arguments[at - 1].text.ends_with(['p', 'd', 't', 'n', 'N', 'u', 'i', 's', 'O', 'c'])
            };
            arguments.iter().enumerate().find(|(at, word)| is_unknown(word) && !is_given(*at)).map(|(_, word)| word)
        }
        "let" | "unset" | "declare" | "typeset" | "local" | "readonly" | "getopts" => arguments.iter().find(is_unknown),
        _ => None,
    }
}

fn after_dashes(arguments: &[Word]) -> &[Word] {
    match arguments.split_first() {
        Some((first, rest)) if first.text == "--" => rest,
        _ => arguments,
    }
}
