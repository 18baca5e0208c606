//! Programs that only read with the options that are listed here, each looked up in its manual, and with no others.

use super::words::may_be_option;
use podbay_code::shell::Word;
use podbay_code::shell::WordKind;

struct Program {
    name: &'static str,
    /// Letters of options without a value, which may stand together.
    letters: &'static str,
    options: &'static [&'static str],
    /// Options with a value: in the next word, behind `=` where they are long, or a number right behind the letter.
    valued: &'static [&'static str],
    operands: Operands,
}

#[derive(Clone, Copy, PartialEq)]
enum Operands {
    None,
    /// The second one would be written.
    One,
    /// Files, or whatever else is only read.
    Any,
    /// Names that begin like one: other marks give orders, and a path may be a file in place of a page.
    Names,
    Number,
}

const NONE: Program = Program { name: "", letters: "", options: &[], valued: &[], operands: Operands::None };

const PROGRAMS: [Program; 26] = [
    Program { name: "alias", letters: "p", ..NONE },
    Program {
        name: "base32",
        letters: "di",
        options: &["--decode", "--ignore-garbage"],
        valued: &["-w", "--wrap"],
        operands: Operands::Any,
    },
    Program {
        name: "base64",
        letters: "di",
        options: &["--decode", "--ignore-garbage"],
        valued: &["-w", "--wrap"],
        operands: Operands::Any,
    },
    // In contrast to `dc`, no word of its language starts a program.
    Program { name: "bc", letters: "lqsw", options: &["--mathlib", "--quiet"], operands: Operands::Any, ..NONE },
    Program { name: "bzcat", operands: Operands::Any, ..NONE },
    Program {
        name: "dpkg",
        options: &["-l", "-s", "-L", "-S", "-p", "--list", "--status", "--listfiles", "--search", "--print-avail", "--get-selections"],
        operands: Operands::Any,
        ..NONE
    },
    Program {
        name: "dpkg-query",
        options: &["-l", "-s", "-L", "-S", "-W", "--list", "--status", "--listfiles", "--search", "--show"],
        valued: &["-f", "--showformat"],
        operands: Operands::Any,
        ..NONE
    },
    Program { name: "history", operands: Operands::Number, ..NONE },
    // `-o` writes.
    Program {
        name: "iconv",
        letters: "cls",
        options: &["--list", "--silent"],
        valued: &["-f", "-t", "--from-code", "--to-code"],
        operands: Operands::Any,
    },
    // `-x` starts a program.
    Program { name: "jobs", letters: "lprs", ..NONE },
    // `-o` and `-O` write, `-k` reads a file of keys, `+` gives orders, a program among them.
    Program { name: "less", letters: "eEFgGiImMnNqQrRsSuUwWX", operands: Operands::Names, ..NONE },
    Program { name: "locale", letters: "ackm", options: &["--all-locales", "--charmaps"], operands: Operands::Any, ..NONE },
    // `-P`, `-H` and `-C` name programs.
    Program { name: "man", letters: "fk", operands: Operands::Names, ..NONE },
    Program { name: "more", operands: Operands::Names, ..NONE },
    Program { name: "mount", letters: "l", ..NONE },
    Program { name: "netstat", letters: "aceFgiImnNoOprstuUvW46l", ..NONE },
    // To `list`, older ones than 23 ask the network for a newer pip unless told not to, and `freeze` starts programs in folders that packages
    // come from. `npm ls` does as the former, writes its log, and obeys a file of the project.
    Program { name: "pip list", letters: "l", options: &["--disable-pip-version-check", "--local", "--user"], ..NONE },
    Program { name: "pip show", letters: "f", options: &["--files"], operands: Operands::Names, ..NONE },
    // `-o` writes.
    Program {
        name: "shuf",
        letters: "erz",
        options: &["--echo", "--repeat", "--zero-terminated"],
        valued: &["-n", "-i", "--head-count", "--input-range"],
        operands: Operands::Any,
    },
    // `-K` ends connections, `-D` writes, `-F` reads orders from a file.
    Program {
        name: "ss",
        letters: "hVnraloempisTbZzB046tMSudwxHOQ",
        options: &["--all", "--listening", "--no-header", "--numeric", "--processes", "--summary", "--tcp", "--udp"],
        operands: Operands::Any,
        ..NONE
    },
    // With a limit it sets one.
    Program { name: "ulimit", letters: "SHabcdefiklmnpqrstuvxPRT", ..NONE },
    Program { name: "umask", letters: "Sp", ..NONE },
    Program { name: "uptime", letters: "ps", options: &["--pretty", "--since"], ..NONE },
    Program { name: "xzcat", operands: Operands::Any, ..NONE },
    // `-r` writes what it read from a dump. Its options do not stand together.
    Program {
        name: "xxd",
        options: &["-a", "-b", "-e", "-E", "-i", "-p", "-ps", "-u", "-C", "-d"],
        valued: &["-c", "-l", "-s", "-g", "-o", "-cols", "-len", "-seek"],
        operands: Operands::One,
        ..NONE
    },
    Program { name: "zcat", operands: Operands::Any, ..NONE },
];

/// Returns whether a program of these only reads with these words; `None` for another program.
pub(super) fn only_reads(name: &str, arguments: &[Word]) -> Option<bool> {
    if let "gzip" | "gunzip" = name {
        return Some(unpacks(arguments));
    }
    let (name, arguments) = match (name, arguments) {
        ("pip" | "pip3", [verb, rest @ ..]) if verb.known() == Some("list") => {
            let says_so = rest.iter().any(|word| word.text == "--disable-pip-version-check");
            if !says_so {
                return Some(false);
            }
            ("pip list", rest)
        }
        ("pip" | "pip3", [verb, rest @ ..]) if verb.known() == Some("show") => ("pip show", rest),
        other => other,
    };
    PROGRAMS.iter().find(|program| program.name == name).map(|program| fits(program, arguments))
}

/// `ip` that shows what there is of addresses, links, routes, neighbours and rules.
pub(super) fn ip(arguments: &[Word]) -> bool {
    const HOW: [&str; 14] = ["-4", "-6", "-br", "-brief", "-c", "-color", "-d", "-details", "-h", "-j", "-json", "-o", "-oneline", "-s"];
    const OBJECTS: [&str; 12] = ["a", "addr", "address", "l", "link", "maddr", "n", "neigh", "neighbour", "r", "route", "rule"];
    let mut words = arguments.iter().map(Word::known).skip_while(|word| word.is_some_and(|text| HOW.contains(&text)));
    let is_object = words.next().flatten().is_some_and(|text| OBJECTS.contains(&text));
    is_object && words.next().is_none_or(|verb| matches!(verb, Some("show" | "list" | "ls" | "get")))
}

/// `top` that prints and ends: at a terminal it takes orders.
pub(super) fn top(arguments: &[Word]) -> bool {
    let mut has_batch = false;
    let mut words = arguments.iter().map(Word::known);
    while let Some(word) = words.next() {
        let Some(letters) = word.and_then(|text| text.strip_prefix('-')) else { return false };
        let flags = letters.trim_start_matches(['b', 'c', 'H', 'i', 'S', '1', 'E']);
        has_batch |= letters[..letters.len() - flags.len()].contains('b');
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b','));
        let is_plain = match flags.strip_prefix(['n', 'd', 'p', 'w']) {
            Some("") => words.next().flatten().is_some_and(is_number),
            Some(number) => is_number(number),
            None if matches!(flags, "o" | "u" | "U") => words.next().flatten().is_some(),
            None => flags.is_empty() && !letters.is_empty(),
        };
        if !is_plain {
            return false;
        }
    }
    has_batch
}

/// `gzip` that writes to its output, lists or tests.
fn unpacks(arguments: &[Word]) -> bool {
    const PROGRAM: Program = Program {
        name: "gzip",
        letters: "cdlqtv",
        options: &["--decompress", "--list", "--stdout", "--test", "--to-stdout"],
        operands: Operands::Any,
        ..NONE
    };
    let leaves = |word: &Word| {
        let is_short = word.text.starts_with('-') && !word.text.starts_with("--");
        (is_short && word.text.contains(['c', 'l', 't'])) || ["--stdout", "--to-stdout", "--list", "--test"].contains(&word.text.as_str())
    };
    let mut options = arguments.iter().take_while(|word| word.text != "--");
    fits(&PROGRAM, arguments) && options.any(|word| word.kind == WordKind::Known && leaves(word))
}

fn fits(program: &Program, arguments: &[Word]) -> bool {
    let mut words = arguments.iter();
    let mut only_operands = false;
    let mut operands = Vec::new();
    while let Some(word) = words.next() {
        let text = word.text.as_str();
        let is_option = !only_operands && text.starts_with('-') && text != "-" && word.kind == WordKind::Known;
        if !is_option {
            if !only_operands && may_be_option(word) {
                return false;
            }
            operands.push(word);
            continue;
        }
        let (option, value) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        let stand_together = || !text.starts_with("--") && text[1..].chars().all(|c| program.letters.contains(c));
        // `-w0`.
        let has_number = || {
            let (letter, number) = text.split_at_checked(2)?;
            (program.valued.contains(&letter) && number.starts_with(|c: char| c.is_ascii_digit())).then_some(())
        };
        if text == "--" {
            only_operands = true;
        } else if program.valued.contains(&option) && (value.is_none() || option.starts_with("--")) {
            if value.is_none() && words.next().and_then(Word::known).is_none() {
                return false;
            }
        } else if !(program.options.contains(&text) || stand_together() || has_number().is_some()) {
            return false;
        }
    }
    let is_name = |word: &&Word| {
        let begins = |text: &str| text.starts_with(|c: char| c.is_ascii_alphanumeric() || "._~".contains(c));
        let is_path = word.text.contains('/') && program.name != "less" && program.name != "more";
        word.known().is_some_and(begins) && !is_path
    };
    match program.operands {
        Operands::None => operands.is_empty(),
        Operands::One => operands.len() <= 1 && operands.iter().all(|word| word.kind != WordKind::Unknown || word.quoted),
        Operands::Any => true,
        Operands::Names => operands.iter().all(is_name),
        Operands::Number => operands.len() <= 1 && operands.iter().all(|word| word.text.bytes().all(|byte| byte.is_ascii_digit())),
    }
}
