//! Files that are there already, and that a command which is given them changes.

use super::Command;
use super::LineProgram;
use super::Word;

/// Programs that write into the files they are given.
const EDITING: [&str; 7] = ["dos2unix", "ed", "ex", "shfmt", "sponge", "unix2dos", "vim"];
/// Programs that change files in their places where `-i` says so.
const IN_PLACE: [&str; 3] = ["gawk", "perl", "ruby"];
/// What stands in a program that opens a file to write into it.
const OPENING: [&str; 7] = ["\"w", "'w", "\"a\"", "'a'", "write_text", "writeFile", "> \""];
/// Most names that are looked at in one text.
const NAMES_MAX: usize = 64;

/// Returns the files by which a patch that stands in the text says what it changes.
pub fn patched(command: &Command) -> Vec<&str> {
    let applies = match command.name() {
        Some("patch" | "gpatch") => true,
        Some("git") => command.arguments().iter().any(|word| matches!(word.text.as_str(), "apply" | "am")),
        _ => false,
    };
    if !applies {
        return Vec::new();
    }
    let texts = command.documents().map(|word| word.text.as_str()).chain(command.given.as_deref());
    let names = texts.flat_map(str::lines).filter_map(named_in_line).map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty() && *name != "/dev/null").take(NAMES_MAX).collect()
}

/// Returns the file that a line of a patch names.
fn named_in_line(line: &str) -> Option<&str> {
    const BEGINNINGS: [&str; 5] = ["+++ ", "--- ", "rename to ", "rename from ", "Index: "];
    BEGINNINGS.iter().find_map(|begin| line.strip_prefix(begin))?.split('\t').next()
}

/// Programs of `awk`.
const AWKS: [&str; 5] = ["awk", "gawk", "mawk", "nawk", "original-awk"];

/// Returns the texts in a program of `awk` that name a file or a command, each with whether it is written: `print > "FILE"`, `getline < "FILE"`,
/// `"COMMAND" | getline`.
pub fn named_by_awk(command: &Command) -> Vec<(&str, bool)> {
    let is_awk = command.name().is_some_and(|name| AWKS.contains(&name));
    let in_files = command.run_files().filter(|(name, _)| AWKS.contains(name)).map(|(_, text)| text);
    let programs = command.told().filter(|_| is_awk).chain(in_files);
    programs.filter(|text| text.contains('"')).flat_map(named_in_awk).take(NAMES_MAX).collect()
}

pub(super) fn named_in_awk(program: &str) -> Vec<(&str, bool)> {
    let mut named = Vec::new();
    let mut at = 0;
    while let Some(begin) = program[at..].find('"').map(|begin| at + begin + 1) {
        let mut is_escaped = false;
        let end = program[begin..].find(|c: char| {
            c == '"' && !is_escaped || {
                is_escaped = c == '\\' && !is_escaped;
                false
            }
        });
        let Some(end) = end.map(|end| begin + end) else { break };
        let before = program[at..begin - 1].trim_end_matches([' ', '\t', '(']);
        let is_piped = program[end + 1..].trim_start().starts_with('|') && !program[end + 1..].trim_start().starts_with("||");
        if before.ends_with(['>', '<', '|']) && !before.ends_with("||") || is_piped {
            named.push((&program[begin..end], before.ends_with('>')));
        }
        at = end + 1;
    }
    named
}

/// Returns the files that a command changes or writes in a way that is not read, as its words name them.
pub(super) fn files(command: &Command) -> Vec<&str> {
    let arguments = command.arguments();
    let known = || arguments.iter().filter_map(Word::known).filter(|text| !text.starts_with('-'));
    let behind = |option: &'static str| arguments.windows(2).filter(move |pair| pair[0].text == option).filter_map(|pair| pair[1].known());
    let mut files = patched(command);
    // What is done to the lines is no file.
    if let Some(program) = LineProgram::of(command).filter(|program| program.is_in_place) {
        return program.files;
    }
    match command.name().unwrap_or_default() {
        name if EDITING.contains(&name) => files.extend(known()),
        "patch" => files.extend(known().next()),
        "sed" | "gsed" => {
            files.extend(known().filter(|_| arguments.iter().any(is_in_place)));
            files.extend(arguments.iter().flat_map(|word| written_by(&word.text)).take(NAMES_MAX));
        }
        name if IN_PLACE.contains(&name) && arguments.iter().any(is_in_place) => files.extend(known()),
        "sort" => {
            let joined = arguments.iter().filter_map(Word::known);
            let letters = |text: &'_ str| text.starts_with('-') && !text.starts_with("--");
            files.extend(joined.clone().filter_map(|text| {
                let behind_letter = || text.split_once('o').filter(|_| letters(text)).map(|(_, file)| file);
                text.strip_prefix("--output=").or_else(behind_letter).filter(|file| !file.is_empty())
            }));
            let pairs = arguments.windows(2).filter(|pair| letters(&pair[0].text) && pair[0].text.ends_with('o'));
            files.extend(pairs.filter_map(|pair| pair[1].known()));
        }
        "find" | "gfind" => ["-fprint", "-fprintf", "-fprint0", "-fls"].iter().for_each(|option| files.extend(behind(option))),
        "gunzip" | "unxz" | "bunzip2" | "unlzma" | "unzstd" | "gzip" | "bzip2" | "xz" | "lzma" | "zstd" | "rename" => {
            files.extend(known().filter_map(|path| Some(path.rsplit_once('.')?.0)));
        }
        name => {
            let is_language = ["awk", "bash", "gawk", "node", "perl", "python", "ruby"].iter().any(|language| {
                name.strip_prefix(language).is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
            });
            let texts =
                arguments.iter().chain(command.documents()).filter(|_| is_language && name != "bash").map(|word| word.text.as_str());
            let opening = texts.filter(|text| OPENING.iter().any(|opening| text.contains(opening)));
            let names = opening
                .flat_map(|text| text.split(['"', '\'', '`']))
                .filter(|name| name.contains('.') && !name.contains(char::is_whitespace));
            files.extend(names.filter(|name| !name.contains(['(', ')'])).take(NAMES_MAX));
            files.extend(named_by_awk(command).into_iter().filter(|(_, is_written)| *is_written).map(|(file, _)| file));
        }
    }
    files
}

/// Returns what a script of `sed` may name behind its `w`, alone or as a flag: all that stands to the end of the line.
fn written_by(script: &str) -> impl Iterator<Item = &str> {
    script.lines().flat_map(|line| {
        let is_flag = |before: &str| !before.ends_with(|c: char| c.is_ascii_alphabetic() && !"gpiImM".contains(c));
        line.match_indices(['w', 'W']).filter(move |(at, _)| is_flag(&line[..*at])).map(|(at, _)| line[at + 1..].trim())
    })
}

/// Returns whether an option says to change files in their places: `-i`, `-pi`, `-i.bak`, `--in-place`.
fn is_in_place(word: &Word) -> bool {
    let text = word.text.as_str();
    let letters = text.strip_prefix('-').filter(|letters| !letters.starts_with('-')).unwrap_or_default();
    let before = letters.split_once('i').map(|(before, _)| before);
    text.starts_with("--in-place") || before.is_some_and(|before| before.chars().all(|c| "Elnprsuwz0".contains(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let script = crate::shell::read(text);
        let found = files(script.commands.last().expect("a command"));
        assert!(expected.iter().all(|file| found.contains(file)), "{text}: {found:?}");
        assert!(!expected.is_empty() || found.is_empty(), "{text}: {found:?}");
    }

    #[test]
    fn what_awk_names_stands_beside_its_sign() {
        for (program, expected) in [
            ("{print > \"a\"}", &[("a", true)][..]),
            ("{print \"x\" >> (\"a\"); print \"y\"}", &[("a", true)]),
            ("{print \"\\\"> \" > \"a\"}", &[("a", true)]),
            ("BEGIN{while ((getline x < \"a\") > 0) print x}", &[("a", false)]),
            ("BEGIN{\"cat a\" | getline x; print | \"sort\"}", &[("cat a", false), ("sort", false)]),
            ("$1 == \"a\" || \"b\" ~ $2", &[]),
            ("{print \"a", &[]),
        ] {
            assert_eq!(named_in_awk(program), expected, "{program}");
        }
    }

    #[test]
    fn what_a_command_changes_is_named_by_its_words() {
        check("sed -i '1a rm x' run.sh", &["run.sh"]);
        check("sed -Ei.bak s/a/b/ d/run.sh", &["d/run.sh"]);
        check("perl -pi -e s/a/b/ run.sh", &["run.sh"]);
        check("sed -n 'w run.sh' x", &["run.sh"]);
        check("sed 's/a/b/gw d/run.sh' x", &["d/run.sh"]);
        check("sed -e '1wrun.sh' x", &["run.sh"]);
        check("patch run.sh < x", &["run.sh"]);
        check("git apply <<'E'\n--- a/run.sh\n+++ b/run.sh\t2026\nE", &["b/run.sh"]);
        check("patch -p1 <<'E'\n--- /dev/null\n+++ b/x\nE", &["b/x"]);
        check("awk 'BEGIN{print \"rm a.txt\" > \"s.sh\"}'", &["s.sh"]);
        check("awk 'BEGIN{print c >> (\"d/s1\")}'", &["d/s1"]);
        check("mawk '{print > \"s5\"}'", &["s5"]);
        check("awk '{print \"s5\"}'", &[]);
        check("awk '{getline x < \"s5\"}'", &[]);
        check("python3 -c 'open(\"run.sh\",\"w\").write(\"rm x\")'", &["run.sh"]);
        check("sort -o s.sh x", &["s.sh"]);
        check("find . -fprintf s.sh x", &["s.sh"]);
        check("gunzip s.sh.gz", &["s.sh"]);
        check("sed s/a/b/ run.sh", &[]);
        check("perl -ne print run.sh", &[]);
        check("python3 -c 'print(open(\"a.json\").read())'", &[]);
        check("git diff run.sh", &[]);
        check("sort run.sh", &[]);
        check("perl -pi -e s/a/b/", &[]);
    }
}
