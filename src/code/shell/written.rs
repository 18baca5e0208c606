//! What a command writes into files.

use super::Command;
use super::Word;
use super::WordKind;
use super::heredoc;
use super::parse;
use super::read::Found;
use super::said;
use super::walk;

/// Programs that copy a file, move it, or give it another name.
const COPYING: [&str; 5] = ["cp", "install", "ln", "mv", "rsync"];
/// Programs that may change a file they are given.
const CHANGING: [&str; 20] = [
    "awk", "dos2unix", "ed", "ex", "gawk", "gsed", "iconv", "patch", "perl", "ruby", "sed", "shfmt", "sort", "split", "sponge", "tar",
    "truncate", "unix2dos", "unzip", "vim",
];

/// The longest substitution that is read letter for letter.
const SUBSTITUTED_MAX: usize = 8 << 10;

/// A file that a command writes.
pub(super) struct Written {
    pub(super) file: String,
    /// What it writes; `None` where that cannot be read.
    pub(super) text: Option<String>,
    /// Something expands in it: that text says most of what it will be.
    pub(super) expands: bool,
    /// It adds that to what is there.
    pub(super) adds: bool,
}

/// Returns a file by the last part of its name; of a word that is not known, whatever stands there.
pub(super) fn key(word: &Word) -> String {
    let text = word.text.trim_end_matches('/');
    let last = text.rsplit('/').next().unwrap_or(text);
    match last.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
        Some(name) => format!("${name}"),
        None => last.to_owned(),
    }
}

/// Returns whether a command prints what its words say.
pub(super) fn prints(command: &Command) -> bool {
    matches!(command.name(), Some("cat" | "echo" | "printf"))
}

/// Returns whether a command passes on what it is given, in some form.
pub(super) fn filters(command: &Command) -> bool {
    let filters = ["awk", "cat", "envsubst", "gawk", "grep", "head", "iconv", "mawk", "sed", "sort", "tail", "tee", "tr", "uniq"];
    command.name().is_some_and(|name| filters.contains(&name))
}

/// Returns what stands in the text for a command to read.
pub(super) fn handed(command: &Command) -> Option<String> {
    let texts: Vec<&str> = command.documents().map(|word| word.text.as_str()).chain(command.given.as_deref()).collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

/// Returns all that a command says, with the escapes for blanks read, and blanks for what stands around words in what edits: `s/a/git push/`,
/// `+git push`.
pub(super) fn words(command: &Command) -> String {
    let words: Vec<&str> = command.arguments().iter().map(|word| word.text.as_str()).collect();
    let said = words.join(" ") + "\n" + &handed(command).unwrap_or_default();
    said.replace("\\n", "\n").replace("\\t", "\t").replace(['/', '+'], " ")
}

/// Returns the files that a command writes; `before` is what pipes into it.
pub(super) fn files(command: &Command, before: Option<&Command>) -> Vec<Written> {
    let name = command.name().unwrap_or_default();
    let arguments = command.arguments();
    let mut files = Vec::new();
    let mut targets = command.redirections.iter().filter(|redirection| redirection.writes()).peekable();
    let options = arguments.iter().filter(|word| word.text.starts_with('-'));
    let is_given = |option: &'static str| arguments.windows(2).filter(move |pair| pair[0].text == option).map(|pair| &pair[1]);
    // What it is told to write by its own words.
    let named: Vec<&Word> = match name {
        "tee" => arguments.iter().filter(|word| !word.text.starts_with('-')).collect(),
        "curl" => {
            let by_its_name = options.clone().any(|word| word.text.contains('O') || word.text == "--remote-name");
            is_given("-o").chain(is_given("--output")).chain(arguments.last().filter(|_| by_its_name)).collect()
        }
        "wget" => is_given("-O").chain(arguments.last()).collect(),
        "git" | "iconv" | "pandoc" | "shuf" | "strace" => is_given("-o").chain(is_given("--output")).collect(),
        "xxd" if arguments.iter().filter(|word| !word.text.starts_with("-p")).count() < 2 => Vec::new(),
        "xxd" | "history" => arguments.last().filter(|word| !word.text.starts_with('-')).into_iter().collect(),
        _ => Vec::new(),
    };
    let writes = !named.is_empty() || targets.peek().is_some();
    let text = if writes { text(command, before) } else { None };
    let expanding = if writes && text.is_none() { with_expansions(command, before) } else { None };
    let (expands, text) = (expanding.is_some(), text.or(expanding));
    for redirection in targets {
        let Some(target) = redirection.target.as_ref().filter(|target| !target.text.starts_with("/dev/")) else { continue };
        files.push(Written { file: key(target), text: text.clone(), expands, adds: redirection.operator.contains(">>") });
    }
    let adds = name == "tee" && options.clone().any(|word| word.text.contains('a'));
    files.extend(named.into_iter().map(|word| Written { file: key(word), text: text.clone(), expands, adds }));
    let is_stream = |word: &Word| ["/dev/", "/proc/", "<("].iter().any(|begin| word.text.starts_with(begin));
    if let Some((_, to)) = copied(command).filter(|(from, _)| from.iter().any(is_stream)) {
        files.push(Written { file: key(to), text: None, expands: false, adds: false });
    }
    if matches!(name, "git" | "iconv" | "pandoc" | "shuf" | "strace") {
        let glued = arguments.iter().filter_map(|word| word.text.strip_prefix("--output=").or_else(|| word.text.strip_prefix("-o")));
        files.extend(glued.filter(|path| !path.is_empty()).map(|path| Written {
            file: key(&Word::unknown(path)),
            text: None,
            expands: false,
            adds: false,
        }));
    }
    if name == "dd" {
        let of = arguments.iter().filter_map(|word| word.text.strip_prefix("of="));
        files.extend(of.map(|path| Written { file: key(&Word::unknown(path)), text: None, expands: false, adds: false }));
    }
    files.extend(parts(name, arguments).into_iter().map(|begin| Written {
        file: format!("{begin}*"),
        text: None,
        expands: false,
        adds: false,
    }));
    files
}

/// Returns the files that a command copies or moves, and their new name.
pub(super) fn copied(command: &Command) -> Option<(&[Word], &Word)> {
    let words = match (command.name()?, command.arguments()) {
        ("git", words) => words.iter().position(|word| word.text == "mv").map(|verb| &words[verb + 1..])?,
        (name, words) if COPYING.contains(&name) => words,
        _ => return None,
    };
    // Options may stand behind it, too.
    let to = words.iter().rposition(|word| !word.text.starts_with('-'))?;
    Some((&words[..to], &words[to]))
}

/// Returns what the names begin with of the files into which a command takes another one apart.
fn parts(name: &str, arguments: &[Word]) -> Vec<String> {
    let last = arguments.last().filter(|word| !word.text.starts_with('-')).map(key);
    let begins: Vec<String> = match name {
        // Which word is the one for that depends on how many there are.
        "split" => last.into_iter().chain(["x".to_owned()]).collect(),
        "csplit" => {
            let named = arguments.windows(2).filter(|pair| pair[0].text == "-f").map(|pair| key(&pair[1]));
            let joined = arguments.iter().filter_map(|word| word.text.strip_prefix("-f").or_else(|| word.text.strip_prefix("--prefix=")));
            named.chain(joined.map(ToOwned::to_owned)).chain(["xx".to_owned()]).collect()
        }
        _ => Vec::new(),
    };
    begins.into_iter().filter(|begin| !begin.is_empty()).collect()
}

/// Returns whether a command may change what lies in a file that it is given.
pub(super) fn may_change(command: &Command) -> bool {
    command.name().is_some_and(|name| CHANGING.contains(&name))
}

/// Returns whether it counts what a command is, for the one that it pipes into.
pub(super) fn passes_on(command: &Command) -> bool {
    matches!(command.name(), Some("cat" | "echo" | "head" | "printf" | "sed" | "tail" | "tee"))
}

/// Returns what a command writes, letter for letter.
fn text(command: &Command, before: Option<&Command>) -> Option<String> {
    match command.name()? {
        "cat" if command.arguments().iter().all(|word| word.text == "-") => input(command, before),
        "tee" => input(command, before),
        "echo" => echoed(command.arguments()),
        "printf" => printed(command.arguments()),
        _ => None,
    }
}

/// What a substitution says.
pub(super) struct Said {
    pub(super) text: String,
    /// Something expands in it: that text says most of what it will be.
    pub(super) expands: bool,
}

/// Returns what a substitution says that is one command which writes what stands in the text: `$(cat <<'END' …)`, `<(printf …)`.
pub(super) fn substituted(word: &Word) -> Option<Said> {
    let inside = word.text.strip_prefix(['$', '<'])?.strip_prefix('(')?.strip_suffix(')')?;
    let begins = ["cat", "echo", "printf"].iter().any(|name| inside.trim_start().starts_with(name));
    if word.kind != WordKind::Unknown || !begins || inside.len() > SUBSTITUTED_MAX {
        return None;
    }
    let mut found = Found::default();
    walk::walk(inside, &parse::parse(inside)?, 0, &mut found);
    let [command] = found.commands.as_slice() else { return None };
    let is_plain = found.doubts.is_empty() && command.redirections.iter().all(|redirection| redirection.operator.starts_with("<<"));
    let known = text(command, None);
    let expands = known.is_none();
    let text = known.or_else(|| with_expansions(command, None)).filter(|_| is_plain)?;
    let text = if word.text.starts_with('$') { text.trim_end_matches('\n').to_owned() } else { text };
    Some(Said { text, expands })
}

/// Returns the here-document, or the words, in which something expands that a command writes, as they stand in the text.
fn with_expansions(command: &Command, before: Option<&Command>) -> Option<String> {
    let expands = |command: &Command| command.arguments().iter().any(|word| word.kind == WordKind::Unknown);
    let piped = || before.filter(|_| command.piped).and_then(|before| with_expansions(before, None));
    let writes = match command.name()? {
        "echo" | "printf" if expands(command) => return Some(said::as_written(command)),
        "cat" => command.arguments().iter().all(|word| word.text == "-"),
        name => name == "tee",
    };
    let given = command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<'));
    let Some(given) = given else { return if writes { piped() } else { None } };
    let target = given.target.as_ref().filter(|target| writes && target.kind == WordKind::Unknown)?;
    match given.operator.as_str() {
        "<<" => Some(heredoc::without_backslashes(&target.text)),
        "<<<" => Some(target.text.clone() + "\n"),
        _ => None,
    }
}

fn input(command: &Command, before: Option<&Command>) -> Option<String> {
    match command.redirections.iter().rev().find(|redirection| redirection.operator.starts_with('<')) {
        Some(given) if given.operator == "<<<" => Some(format!("{}\n", given.target.as_ref()?.known()?)),
        Some(given) if given.operator.starts_with("<<") => given.target.as_ref()?.known().map(ToOwned::to_owned),
        Some(_) => None,
        None => {
            let before =
                before.filter(|before| command.piped && !before.redirections.iter().any(|redirection| redirection.operator != "2>"));
            match before?.name()? {
                "echo" => echoed(before?.arguments()),
                "printf" => printed(before?.arguments()),
                _ => None,
            }
        }
    }
}

fn echoed(arguments: &[Word]) -> Option<String> {
    let is_option =
        |word: &&Word| word.text.strip_prefix('-').is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| "neE".contains(c)));
    let n_options = arguments.iter().take_while(is_option).count();
    // Without an option `bash` leaves the backslashes, which makes no other lines of it than these.
    escaped(&texts(&arguments[n_options..])?.join(" ")).map(|text| text + "\n")
}

fn printed(arguments: &[Word]) -> Option<String> {
    let words = texts(arguments)?;
    let words = words.strip_prefix(&["--"]).unwrap_or(&words);
    let (format, values) = words.split_first()?;
    let (format, mut values) = (escaped(format)?, values.iter());
    let mut text = String::new();
    loop {
        let n_left = values.len();
        let mut parts = format.split('%');
        text.push_str(parts.next().unwrap_or_default());
        while let Some(part) = parts.next() {
            if let Some(rest) = part.strip_prefix('s') {
                text.push_str(values.next().copied().unwrap_or_default());
                text.push_str(rest);
            } else if let Some(rest) = part.strip_prefix('b') {
                text.push_str(&escaped(values.next().copied().unwrap_or_default())?);
                text.push_str(rest);
            } else if part.is_empty() {
                // `%%`
                text.push('%');
                text.push_str(parts.next()?);
            } else {
                return None;
            }
        }
        if values.len() == 0 || values.len() == n_left || text.len() > super::LENGTH_MAX {
            return Some(text);
        }
    }
}

fn texts(words: &[Word]) -> Option<Vec<&str>> {
    // A pattern may find names that say something else.
    words.iter().map(|word| (word.kind == WordKind::Known).then_some(word.text.as_str())).collect()
}

/// Returns a text with its line ends and tabs in their places; `None` where a backslash stands for another sign.
fn escaped(text: &str) -> Option<String> {
    let mut made = String::with_capacity(text.len());
    let mut signs = text.chars().peekable();
    while let Some(sign) = signs.next() {
        match (sign, signs.peek()) {
            ('\\', Some('n')) => made.push('\n'),
            ('\\', Some('t')) => made.push('\t'),
            ('\\', Some(next)) if "abceEfrvxuU01234567\\\"".contains(*next) => return None,
            _ => {
                made.push(sign);
                continue;
            }
        }
        signs.next();
    }
    Some(made)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[(&str, Option<&str>)]) {
        let script = crate::shell::read(text);
        let mut before = None;
        let mut all = Vec::new();
        let letter_for_letter = |written: Written| (written.file, written.text.filter(|_| !written.expands));
        for command in &script.commands {
            all.extend(files(command, before).into_iter().map(letter_for_letter));
            before = Some(command);
        }
        let all: Vec<(&str, Option<&str>)> = all.iter().map(|(file, text)| (file.as_str(), text.as_deref())).collect();
        assert_eq!(all, expected, "{text}");
    }

    #[test]
    fn what_is_written_is_read_letter_for_letter_or_not_at_all() {
        check("echo rm x > d/a.sh", &[("a.sh", Some("rm x\n"))]);
        check("echo -e 'a\\nrm x' >> a", &[("a", Some("a\nrm x\n"))]);
        check("echo -e '\\162m x' > a", &[("a", None)]);
        check("echo \"$x\" > a", &[("a", None)]);
        check("printf 'rm x' > a", &[("a", Some("rm x"))]);
        check("printf '%s %s\\n' rm x ls y > a", &[("a", Some("rm x\nls y\n"))]);
        check("printf 'r%%m\\t' > a", &[("a", Some("r%m\t"))]);
        check("printf '%b' 'r\\x6d' > a", &[("a", None)]);
        check("printf '\\x72m' > a", &[("a", None)]);
        check("printf '%d' 5 > a", &[("a", None)]);
        check("cat > a <<'E'\nrm $x\nE", &[("a", Some("rm $x\n"))]);
        check("cat > a <<E\nrm $x\nE", &[("a", None)]);
        check("cat - <<< 'rm x' > a", &[("a", Some("rm x\n"))]);
        check("cat x > a", &[("a", None)]);
        check("tee -a a d/b <<< 'rm x'", &[("a", Some("rm x\n")), ("b", Some("rm x\n"))]);
        check("echo rm x | tee a", &[("a", Some("rm x\n"))]);
        check("echo rm x | cat < y > a", &[("a", None)]);
        check("ls | tee a", &[("a", None)]);
        check("dd of=d/a", &[("a", None)]);
        check("cp /dev/stdin a <<< 'rm x'", &[("a", None)]);
        check("curl -o a u/b", &[("a", None)]);
        check("curl -sLO u/b", &[("b", None)]);
        check("split -l 1 a d/part_", &[("part_*", None), ("x*", None)]);
        check("csplit -f p a /x/", &[("p*", None), ("xx*", None)]);
        check("make 2> /dev/null", &[]);
        check("echo x > \"${T}\"", &[("$T", Some("x\n"))]);
    }
}
