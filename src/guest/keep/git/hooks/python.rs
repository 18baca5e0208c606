//! Where python looks for modules when a command starts it: before all others in the folder of its script, or in the one that it starts in. What
//! lies there under the name of a module, also of one of python's own, runs in its place.

use std::collections::BTreeSet;

use super::words::pieces;
use super::words::spelled;
use crate::root::split;

/// What ends one command of several.
const ENDS: &[u8] = b"\n;&";

/// What stands before the name of a folder that python may start in, or look in.
const MOVING: [&[u8]; 4] = [b"cd", b"pushd", b"-C", b"PYTHONPATH"];

/// The name of a script in python is no pattern for such.
const PATTERNS: &[u8] = b"*?[]^";

/// How many parts of a command are looked at behind the name of python.
const MAX_OPTIONS: usize = 8;

/// Returns the folders, as commands have them; an empty one is where they start.
pub(super) fn folders(value: &[u8]) -> BTreeSet<Vec<u8>> {
    let mut folders = BTreeSet::new();
    let mut below = BTreeSet::new();
    for command in value.split(|byte| ENDS.contains(byte)) {
        let pieces: Vec<(Option<u8>, &[u8])> = pieces(command).collect();
        for (at, (before, piece)) in pieces.iter().enumerate() {
            let paths = || -> Vec<Vec<u8>> { if piece.contains(&b'/') { spelled(*before, piece) } else { vec![piece.to_vec()] } };
            if at > 0 && MOVING.contains(&pieces[at - 1].1) {
                below.extend(paths());
            }
            if is_script(piece) {
                folders.extend(paths().iter().map(|path| split(path).0.to_vec()));
            }
            if is_python(piece) {
                folders.extend(started(&pieces[at + 1..], command.contains(&b'|')));
                if command.contains(&b'<') {
                    // What it runs stands in another file, or in the text.
                    folders.insert(Vec::new());
                }
            }
        }
    }
    if folders.contains(&b""[..]) {
        folders.extend(below);
    }
    folders
}

/// Returns where python looks that gets these words: its first one that is no option is the script, but for a module, or code.
fn started(words: &[(Option<u8>, &[u8])], is_piped: bool) -> Vec<Vec<u8>> {
    let here = || vec![Vec::new()];
    for (before, word) in words.iter().take(MAX_OPTIONS) {
        match word {
            [b'-'] => return here(),
            [b'-', b'-', ..] => {}
            [b'-', options @ ..] if options.iter().any(|option| b"mc".contains(option)) => return here(),
            [b'-', ..] => {}
            word if word.contains(&b'/') => return spelled(*before, word).iter().map(|path| split(path).0.to_vec()).collect(),
            _ => return Vec::new(),
        }
    }
    // What it runs comes from another program.
    if words.is_empty() && is_piped { here() } else { Vec::new() }
}

/// Also the name of a variable that has it.
fn is_python(piece: &[u8]) -> bool {
    let name = split(piece).1.to_ascii_lowercase();
    memchr::memmem::find(&name, b"python").is_some() || name.starts_with(b"pypy")
}

fn is_script(piece: &[u8]) -> bool {
    let name = split(piece).1;
    [&b".py"[..], b".pyw"].iter().any(|end| name.len() > end.len() && name.ends_with(end))
        && !name.iter().any(|byte| PATTERNS.contains(byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: &str, expected: &[&str]) {
        let folders: Vec<String> = folders(value.as_bytes()).into_iter().map(|folder| String::from_utf8(folder).expect("text")).collect();
        assert_eq!(folders, expected, "{value}");
    }

    #[test]
    fn where_python_looks_is_known_by_how_it_is_started() {
        check("python -m nbstripout", &[""]);
        check("\"/usr/bin/python3\" -m nbstripout -t", &[""]);
        check("exec \"$INSTALL_PYTHON\" -mpre_commit \"${ARGS[@]}\"", &[""]);
        check("python3.12 -Wd -c 'import x'", &[""]);
        check("echo x | python3", &[""]);
        check("python3 <<'EOF'", &[""]);
        check("python3 - < tools/x.txt", &[""]);
        check("python3 clean.py %f", &[""]);
        check("python3 tools/clean.py", &["tools"]);
        check("python3 -u tools/clean", &["tools"]);
        check("./tools/clean.py", &["./tools"]);
        check("\"$TOP\"/tools/x.py", &["/tools", "tools", "~/tools"]);
        check("cd web && python -m x", &["", "web"]);
        check("PYTHONPATH=src python -m x", &["", "src"]);
    }

    #[test]
    fn what_only_speaks_of_python_is_left() {
        for value in [
            "",
            "less",
            "PYTHON=python3",
            "which python3",
            "git diff --name-only | grep '\\.py$'",
            "ls *.py",
            "echo python is needed",
            "cd web",
        ] {
            check(value, &[]);
        }
    }
}
