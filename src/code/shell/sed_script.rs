//! Scripts of `sed` that may start programs, by `e` or by a flag of `s`.
//!
//! Every command of the language is known here, so that a script that only edits is not taken for one that starts something. Where two kinds
//! of sed may take a script apart otherwise, it counts as one that does.

use super::Command;
use super::Word;

/// Options that name no script and start nothing, but for `-i` and `-l`, which may have a value in the same word.
const PLAIN: [&str; 14] = [
    "--quiet",
    "--silent",
    "--regexp-extended",
    "--in-place",
    "--separate",
    "--unbuffered",
    "--null-data",
    "--zero-terminated",
    "--posix",
    "--sandbox",
    "--debug",
    "--follow-symlinks",
    "--version",
    "--help",
];

/// What the words of `sed` say.
#[derive(Default)]
pub struct SedScripts<'a> {
    pub(super) scripts: Vec<&'a str>,
    /// Words that are not known, where an option may stand.
    pub unknown: Vec<&'a Word>,
    /// There may be scripts besides.
    may_be_more: bool,
    /// It prints no line by itself.
    is_quiet: bool,
}

impl<'a> SedScripts<'a> {
    /// Reads what `sed` is given.
    pub fn of(arguments: &'a [Word]) -> Self {
        let mut told = Self::default();
        let mut words = arguments.iter();
        // What stands first is the script, unless an option says one.
        let (mut first, mut has_script, mut only_operands) = (None, false, false);
        while let Some(word) = words.next() {
            let Some(text) = word.known() else {
                told.may_be_more |= first.is_none() && !has_script;
                // What `find` hands on begins with a place.
                told.unknown.extend(Some(word).filter(|word| word.text != "{}" && !only_operands));
                continue;
            };
            if only_operands || !text.starts_with('-') || text == "-" {
                first.get_or_insert(text);
            } else if text == "--" {
                only_operands = true;
            } else if let Some(long) = text.strip_prefix("--") {
                let (name, value) = long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                if name.starts_with('e') {
                    has_script = true;
                    told.script(value.or_else(|| words.next().and_then(Word::known)));
                } else if !PLAIN.iter().any(|known| known.strip_prefix("--").is_some_and(|known| known == name)) {
                    told.may_be_more = true;
                }
                told.is_quiet |= matches!(name, "quiet" | "silent");
            } else {
                has_script |= told.letters(text, &mut words);
            }
        }
        if !has_script {
            told.scripts.extend(first);
        }
        told
    }

    /// Returns whether a program may be started by what it is told, whatever the words are that are not known.
    pub fn may_start(&self) -> bool {
        self.may_be_more || self.scripts.iter().any(|script| starts(script))
    }

    /// Returns whether it is told to print by command alone, and none of its scripts prints a line or adds a text.
    pub fn prints_nothing(&self) -> bool {
        self.is_quiet && !self.scripts.is_empty() && !self.scripts.iter().any(|script| prints(script))
    }

    /// Takes options of one letter; returns whether a script stands behind them.
    fn letters(&mut self, text: &'a str, words: &mut std::slice::Iter<'a, Word>) -> bool {
        for (at, letter) in text.char_indices().skip(1) {
            match letter {
                'n' => self.is_quiet = true,
                'E' | 'r' | 's' | 'u' | 'z' => {}
                // The rest is the end of a name, or a number.
                'i' => return false,
                'e' => {
                    let attached = Some(&text[at + 1..]).filter(|text| !text.is_empty());
                    self.script(attached.or_else(|| words.next().and_then(Word::known)));
                    return true;
                }
                _ => {
                    self.may_be_more = true;
                    return false;
                }
            }
        }
        false
    }

    fn script(&mut self, script: Option<&'a str>) {
        self.scripts.extend(script);
        self.may_be_more |= script.is_none();
    }
}

/// Returns the script that `sed` is given on its input: `sed -f - FILE <<E`.
pub fn given(command: &Command) -> Option<&str> {
    let words = command.arguments();
    let is_input = |text: &str| matches!(text, "-" | "/dev/stdin" | "/dev/fd/0");
    let glued = |word: &Word| word.text.strip_prefix("--file=").or_else(|| behind_letter(&word.text)).is_some_and(is_input);
    let pairs = || words.windows(2).any(|pair| is_script_option(&pair[0].text) && is_input(&pair[1].text));
    if !words.iter().any(glued) && !pairs() {
        return None;
    }
    command.documents().next_back().map(|word| word.text.as_str()).or(command.given.as_deref())
}

/// Returns whether the word behind this one names a file with a script: `-f`, `-nf`.
pub(super) fn is_script_option(text: &str) -> bool {
    text == "--file" || (text.ends_with('f') && text.starts_with('-') && !text.starts_with("--"))
}

/// Returns the file that stands right behind the letter of its option: `-fFILE`, `-nfFILE`.
pub(super) fn behind_letter(text: &str) -> Option<&str> {
    let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    let (before, file) = letters.split_once('f')?;
    (!file.is_empty() && before.chars().all(|c| "nErsuz".contains(c))).then_some(file)
}

/// Returns whether a script prints something, or cannot be read.
fn prints(script: &str) -> bool {
    let mut rest = script.trim_start_matches(BETWEEN);
    while !rest.is_empty() {
        let Some(after) = step(rest) else { return true };
        let command = behind_addresses(&rest[..rest.len() - after.len()]).unwrap_or_default();
        let is_quiet = match command.chars().next() {
            Some('s') => {
                let flags = command[1..].chars().next().and_then(|mark| command.rsplit(mark).next());
                flags.is_some_and(|flags| !flags.contains(['p', 'w']))
            }
            Some(letter) => "{dDgGhHxzytTb:#".contains(letter),
            None => false,
        };
        if !is_quiet {
            return true;
        }
        rest = after.trim_start_matches(BETWEEN);
    }
    false
}

/// Returns the files that a script reads and writes by `r` and `w`, as far as it can be read.
pub fn files_of_sed(script: &str) -> Vec<&str> {
    let mut files = Vec::new();
    let mut rest = script.trim_start_matches(BETWEEN);
    while let Some(after) = step(rest) {
        let command = &rest[..rest.len() - after.len()];
        files.extend(file(command));
        rest = after.trim_start_matches(BETWEEN);
    }
    files
}

/// Returns the file that a command names: all that stands to the end of its line behind `r` or `w`, or behind that flag of `s`.
fn file(command: &str) -> Option<&str> {
    let rest = behind_addresses(command)?;
    let named = match rest.chars().next()? {
        'r' | 'R' | 'w' | 'W' => &rest[1..],
        's' => {
            let mark = rest[1..].chars().next()?;
            let flags = delimited(delimited(rest[1..].strip_prefix(mark)?, mark, true)?, mark, false)?;
            flags.split_once('w')?.1
        }
        _ => return None,
    };
    Some(named.trim())
}

/// What may stand between two commands.
pub(super) const BETWEEN: [char; 5] = [' ', '\t', '\n', ';', '}'];

/// Returns whether a script may start something.
fn starts(script: &str) -> bool {
    let mut rest = script;
    loop {
        rest = rest.trim_start_matches(BETWEEN);
        if rest.is_empty() {
            return false;
        }
        match step(rest) {
            Some(after) => rest = after,
            None => return true,
        }
    }
}

/// Takes one command off; `None` where it starts something, or cannot be read.
pub(super) fn step(text: &str) -> Option<&str> {
    let mut letters = behind_addresses(text)?.chars();
    let command = letters.next()?;
    let behind = letters.as_str();
    match command {
        '{' | '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => Some(behind),
        'q' | 'Q' | 'l' | 'L' => Some(behind.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit())),
        '#' | 'r' | 'R' | 'w' | 'W' => Some(behind.find('\n').map_or("", |at| &behind[at..])),
        ':' | 't' | 'T' | 'b' => {
            let label = behind.trim_start_matches([' ', '\t']);
            // Whether a `;` or a `}` ends it is not the same to all; what stands behind is read as if it did.
            Some(label.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "_-.".contains(c)))
        }
        'a' | 'i' | 'c' => Some(added(behind)),
        'y' => {
            let mark = behind.chars().next()?;
            delimited(delimited(behind.strip_prefix(mark)?, mark, false)?, mark, false)
        }
        's' => {
            let mark = behind.chars().next().filter(|mark| !mark.is_alphanumeric() && !"\\\n".contains(*mark))?;
            let flags = delimited(delimited(behind.strip_prefix(mark)?, mark, true)?, mark, false)?;
            let rest = flags.trim_start_matches(|c: char| c.is_ascii_digit() || "gpiImM".contains(c));
            match rest.chars().next() {
                Some('w') => Some(rest.find('\n').map_or("", |at| &rest[at..])),
                None | Some(' ' | '\t' | '\n' | ';' | '}' | '#') => Some(rest),
                Some(_) => None,
            }
        }
        _ => None,
    }
}

/// Takes off the one or two places between which a command applies.
pub(super) fn behind_addresses(text: &str) -> Option<&str> {
    let mut rest = address(text)?;
    if let Some(second) = rest.trim_start().strip_prefix(',') {
        rest = address(second.trim_start().trim_start_matches(['+', '~']))?;
    }
    Some(rest.trim_start_matches([' ', '\t', '!']))
}

/// Takes off one of them.
fn address(text: &str) -> Option<&str> {
    let rest = match text.chars().next()? {
        '/' => delimited(&text[1..], '/', true)?,
        '\\' => {
            let mark = text[1..].chars().next().filter(|mark| !mark.is_alphanumeric() && !"\\\n".contains(*mark))?;
            delimited(text[1..].strip_prefix(mark)?, mark, true)?
        }
        '$' => return Some(&text[1..]),
        c if c.is_ascii_digit() => return Some(text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '~')),
        _ => return Some(text),
    };
    Some(rest.trim_start_matches(['I', 'M']))
}

/// Takes off a text that is added: up to the end of the first line without a backslash in front of its end.
fn added(text: &str) -> &str {
    let mut letters = text.char_indices();
    while let Some((at, c)) = letters.next() {
        match c {
            '\\' => drop(letters.next()),
            '\n' => return &text[at..],
            _ => {}
        }
    }
    ""
}

/// Returns what follows the next mark without a backslash; `None` where there is none, or where a list of letters may hold it: one kind of sed
/// ends the text there, and another one does not.
pub(super) fn delimited(text: &str, mark: char, is_pattern: bool) -> Option<&str> {
    let at = end(text, mark, false)?;
    if is_pattern && end(text, mark, true) != Some(at) {
        return None;
    }
    Some(&text[at + mark.len_utf8()..])
}

fn end(text: &str, mark: char, knows_lists: bool) -> Option<usize> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        match c {
            c if c == mark => return Some(at),
            '\n' => return None,
            '\\' => at += 1 + text[at + 1..].chars().next()?.len_utf8(),
            '[' if knows_lists => at += 1 + list(&text[at + 1..])?,
            c => at += c.len_utf8(),
        }
    }
    None
}

/// Returns how long a list of letters is behind its `[`, with its `]`.
fn list(text: &str) -> Option<usize> {
    let mut at = usize::from(text.starts_with('^'));
    at += usize::from(text[at..].starts_with(']'));
    loop {
        let rest = &text[at..];
        match rest.chars().next()? {
            ']' => return Some(at + 1),
            '[' if rest.starts_with("[:") => at += rest.find(":]")? + 2,
            '[' if rest.starts_with("[.") || rest.starts_with("[=") => return None,
            c => at += c.len_utf8(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::starts;

    #[test]
    fn a_script_that_starts_a_program_is_told_from_one_that_edits() {
        for script in [
            "s/a/b/",
            "s/e/e/g",
            "1,5p",
            "/a/,/e/d",
            "$!{h;d}",
            ":a;N;$!ba;s/\\n/ /g",
            "/a/{s/x/y/;n;p}",
            "/^$/d;s|a|e|2",
            "1i\\ e rm x",
            "$a e rm x",
            "/x/a\\\ne rm x",
            "w out",
            "s/a/b/w e rm",
            "r e",
            "y/abc/def/",
            "# e rm\np",
            "s/[/]*$//;p",
            "\\,a,d",
            "0,/a/s//b/",
            "1~2d;2,+3p",
            "/[[:space:]]e/d",
            "s/a/\\\n/;p",
        ] {
            // A list with the mark in it ends at two places.
            assert_eq!(starts(script), script.contains("[/]"), "{script}");
        }
        for script in [
            "1e rm f",
            "e",
            "s/a/b/e",
            "s/a/b/ge",
            "s/.*/rm f/;e",
            "/a/e rm f",
            "{e rm f\n}",
            "p;1!e rm",
            "s/a/b/w out\ne rm f",
            "a x\ne rm f",
            "$!N;e rm f",
            ":a;e rm f",
            "/[^]/p;s/]/e touch x #/p",
            "s|[|]|;s|e x|p|",
            "/[[:x]/p;s/]/e touch x #/p",
            "s/a/b",
            "svavbv",
            "1,2",
        ] {
            assert!(starts(script), "{script}");
        }
    }
}
