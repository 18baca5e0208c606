//! What an expansion becomes where the values of its variables are known, or it says a default itself.

use std::cell::Cell;
use std::collections::HashMap;

use super::held;
use super::values::GIT_FOLDER;

/// Longest text that is made.
const LENGTH_MAX: usize = 1024;
/// How deep defaults within defaults are followed.
const DEPTH_MAX: usize = 4;

/// Most operators that are followed.
const FOLLOWED_MAX: usize = 64;

/// Longest value of which a part is cut off.
const CHANGED_MAX: usize = 256;

/// Commands that write nothing.
const SILENT: [&str; 12] = [":", "true", "false", "cd", "exit", "return", "shift", "sleep", "test", "touch", "unset", "wait"];

/// How many operators were followed so far.
#[derive(Default)]
pub(super) struct Followed(Cell<usize>);

/// Returns a text with the values in it that are known; `None` where there is none.
pub(super) fn replaced(values: &HashMap<String, String>, followed: &Followed, text: &str) -> Option<String> {
    let made = put_in(values, followed, text, 0);
    let made = made.as_deref().and_then(said).or(made).or_else(|| said(text));
    made.as_deref().and_then(without_silent).or(made).or_else(|| without_silent(text))
}

/// Returns a text with this value in the place of a variable, and what is cut off it; `None` where the text does not name it.
pub fn with_value(name: &str, value: &str, text: &str) -> Option<String> {
    put_in(&HashMap::from([(name.to_owned(), value.to_owned())]), &Followed::default(), text, 0)
}

/// Returns what is written of a program's name around what expands in it: `gi$(:)t`, `$BIN/rm`.
pub(super) fn bare(text: &str) -> Option<String> {
    let bare = without(text, |_| true)?;
    (bare.contains(char::is_alphanumeric) && !bare.starts_with(['-', '='])).then_some(bare)
}

/// Returns a text without the substitutions that say nothing: `` `:` ``, `$(true)`.
fn without_silent(text: &str) -> Option<String> {
    let is_silent = |expansion: &str| {
        let inside = expansion.strip_prefix("$(").and_then(|rest| rest.strip_suffix(')'));
        let inside = inside.or_else(|| expansion.strip_prefix('`').and_then(|rest| rest.strip_suffix('`')));
        inside.is_some_and(|inside| {
            let mut words = inside.split_whitespace();
            let is_one = !inside.contains(['|', '&', ';', '<', '>', '(', '$', '`', '\n']);
            is_one && words.next().is_none_or(|first| SILENT.contains(&first) || first.starts_with('#'))
        })
    };
    without(text, is_silent)
}

/// Returns a text without those of its expansions that are meant; `None` where it has none.
fn without(text: &str, is_meant: impl Fn(&str) -> bool) -> Option<String> {
    let (mut made, mut rest, mut is_new) = (String::new(), text, false);
    while let Some(at) = rest.find(['$', '`']) {
        made.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = expansion_end(rest);
        let expansion = &rest[..end];
        if end > 1 && is_meant(expansion) {
            is_new = true;
        } else {
            made.push_str(expansion);
        }
        rest = &rest[end..];
    }
    made.push_str(rest);
    is_new.then_some(made)
}

/// Returns where the expansion ends that a text begins with.
pub fn expansion_end(text: &str) -> usize {
    let behind = &text[1..];
    if text.starts_with('`') {
        return behind.find('`').map_or(text.len(), |end| end + 2);
    }
    match behind.chars().next() {
        Some('{') => closing(&behind[1..]).map_or(text.len(), |end| end + 3),
        Some('(') => {
            let mut depth = 0_usize;
            let end = behind.char_indices().find(|(_, sign)| {
                depth = match sign {
                    '(' => depth + 1,
                    ')' => depth - 1,
                    _ => depth,
                };
                depth == 0
            });
            end.map_or(text.len(), |(end, _)| end + 2)
        }
        Some('@' | '*' | '#' | '?' | '$' | '!' | '-') => 2,
        Some(sign) if sign.is_ascii_digit() => 2,
        _ => 1 + name_end(behind),
    }
}

fn put_in(values: &HashMap<String, String>, followed: &Followed, text: &str, depth: usize) -> Option<String> {
    let mut made = String::new();
    let mut rest = text;
    let mut is_new = false;
    while let Some(at) = rest.find('$') {
        made.push_str(&rest[..at]);
        let behind = &rest[at + 1..];
        let found = if let Some(inside) = behind.strip_prefix('{') {
            closing(inside).and_then(|end| Some((braced(values, followed, &inside[..end], depth)?, &inside[end + 1..])))
        } else {
            let (name, after) = behind.split_at(name_end(behind));
            values.get(name).map(|value| (value.clone(), after))
        };
        if let Some((value, after)) = found.filter(|_| made.len() <= LENGTH_MAX) {
            made.push_str(&value);
            is_new = true;
            rest = after;
        } else {
            made.push('$');
            rest = behind;
        }
    }
    made.push_str(rest);
    is_new.then_some(made)
}

/// Returns where the name ends that a text begins with.
fn name_end(text: &str) -> usize {
    if text.starts_with(['@', '*']) { 1 } else { text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len()) }
}

/// Returns where the brace is that ends what this begins.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns what stands in the place of `${…}`. An operator that is not followed leaves the value as it is.
fn braced(values: &HashMap<String, String>, followed: &Followed, inside: &str, depth: usize) -> Option<String> {
    let (name, operator) = inside.split_at(name_end(inside));
    if name.is_empty() {
        // By the name of another one.
        let named = inside.strip_prefix('!')?;
        return values.get(values.get(named)?).cloned();
    }
    // One of a list's elements, or all of them.
    let operator = operator.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(operator, |(_, rest)| rest);
    let value = values.get(name);
    let word = |text: &str| {
        let bare = text.replace(['"', '\''], "");
        if depth < DEPTH_MAX { put_in(values, followed, &bare, depth + 1).unwrap_or(bare) } else { bare }
    };
    let default = ["-", "=", ":-", ":="].into_iter().find_map(|sign| operator.strip_prefix(sign));
    if let Some(default) = default {
        return Some(value.filter(|value| !value.is_empty()).cloned().unwrap_or_else(|| word(default)));
    }
    let value = value?;
    if let Some(other) = operator.strip_prefix(":+").or_else(|| operator.strip_prefix('+')) {
        return Some(word(other));
    }
    let is_followed = !operator.is_empty() && followed.0.get() < FOLLOWED_MAX;
    followed.0.set(followed.0.get() + usize::from(is_followed));
    Some(is_followed.then(|| changed(value, operator, word)).flatten().unwrap_or_else(|| value.clone()))
}

/// Returns a value with a part of it cut off or replaced.
fn changed(value: &str, operator: &str, word: impl Fn(&str) -> String) -> Option<String> {
    if value.len() > CHANGED_MAX {
        return None;
    }
    let mut cuts = (0..=value.len()).filter(|at| value.is_char_boundary(*at));
    if let Some(rest) = operator.strip_prefix('%') {
        let pattern = word(rest.trim_start_matches('%'));
        let fits = |at: &usize| matches(&pattern, &value[*at..]);
        return if rest.starts_with('%') { cuts.find(fits) } else { cuts.rev().find(fits) }.map(|at| value[..at].to_owned());
    }
    if let Some(rest) = operator.strip_prefix('#') {
        let pattern = word(rest.trim_start_matches('#'));
        let fits = |at: &usize| matches(&pattern, &value[..*at]);
        return if rest.starts_with('#') { cuts.rev().find(fits) } else { cuts.find(fits) }.map(|at| value[at..].to_owned());
    }
    if let Some(rest) = operator.strip_prefix('/') {
        let (is_every, rest) = rest.strip_prefix('/').map_or((false, rest), |rest| (true, rest));
        let (pattern, by) = rest.split_once('/').unwrap_or((rest, ""));
        let (pattern, by) = (word(pattern), word(by));
        let is_plain = !pattern.is_empty() && !pattern.contains(['*', '?', '[']);
        return is_plain.then(|| if is_every { value.replace(&pattern, &by) } else { value.replacen(&pattern, &by, 1) });
    }
    let (from, length) = operator.strip_prefix(':')?.split_once(':').unwrap_or((&operator[1..], ""));
    let from = value.get(from.trim().parse().ok()?..)?;
    let length = length.trim().parse().unwrap_or(from.len()).min(from.len());
    from.get(..length).map(ToOwned::to_owned)
}

/// Returns whether all of a text is what a pattern with `*` and `?` stands for.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut at, mut from) = (0, 0);
    // The last star, and where what it stands for ends so far.
    let mut star: Option<(usize, usize)> = None;
    while from < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                star = Some((at, from));
                at += 1;
            }
            Some(sign) if *sign == b'?' || *sign == text[from] => {
                at += 1;
                from += 1;
            }
            _ => {
                let Some((begin, end)) = star else { return false };
                star = Some((begin, end + 1));
                (at, from) = (begin + 1, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|sign| *sign == b'*')
}

/// Puts in what substitutions say that name a folder by another: `$(dirname src/x)`, `$(cd x && pwd)`.
fn said(text: &str) -> Option<String> {
    let mut made = text.to_owned();
    let (mut is_new, mut is_own) = (false, false);
    for _ in 0..DEPTH_MAX {
        let Some(begin) = made.rfind("$(") else { break };
        let Some(end) = made[begin..].find(')').map(|end| begin + end) else { break };
        let is_within = made[..begin].contains("$(");
        let folder = folder(&made[begin + 2..end], is_within, &mut is_own);
        let Some(folder) = folder.filter(|folder| made[begin..=end] != **folder) else { break };
        made.replace_range(begin..=end, &folder);
        is_new = true;
    }
    is_new.then_some(made)
}

/// Returns the folder that such a substitution names, which may stand within another; notes where it is the one in which the text lies that is read.
fn folder(inside: &str, is_within: bool, is_own: &mut bool) -> Option<String> {
    if inside.len() > LENGTH_MAX {
        return None;
    }
    let is_silent = |word: &&str| !word.starts_with(['>', '&']) && !word.starts_with("2>") || *word == "&&";
    let words: Vec<&str> = inside.split_whitespace().filter(is_silent).map(|word| word.trim_matches(['"', '\''])).collect();
    // Where the text stands that is read.
    let is_of_text = |path: &str| matches!(path, "$0" | "${0}") || path.contains("BASH_SOURCE");
    let is_plain = |path: &str| {
        let behind = behind_here(path).unwrap_or(path);
        !behind.contains(['$', '`', '*', '|', ';', '&']) && !path.starts_with('-')
    };
    let folder = match words.as_slice() {
        ["dirname", path] | ["dirname", "--", path] if is_of_text(path) => {
            *is_own = true;
            ".".to_owned()
        }
        ["dirname", path] | ["dirname", "--", path] if is_plain(path) => {
            let path = path.trim_end_matches('/');
            match path.rsplit_once('/') {
                Some((folder, _)) => if folder.is_empty() { "/" } else { folder }.to_owned(),
                // What lies above the own folder is asked for in this way, too.
                None if behind_here(path).is_some() => return path.contains('=').then(|| format!("{path}/..")),
                None => ".".to_owned(),
            }
        }
        ["realpath" | "readlink", options @ .., path] if options.iter().all(|option| option.starts_with('-')) => {
            *is_own |= is_of_text(path);
            let path = Some(*path).filter(|path| is_plain(path) || is_of_text(path))?;
            if is_of_text(path) { path.to_owned() } else { from_here(path, *is_own) }
        }
        ["pwd"] | ["pwd", "-P" | "-L"] if is_within => "$PWD".to_owned(),
        ["cd", ..] => from_here(&gone_to(&words, is_plain)?, *is_own),
        ["git", "rev-parse", "--show-toplevel"] => "$(git rev-parse --show-toplevel)".to_owned(),
        ["command", "git", asked @ ..] | ["git" | "/usr/bin/git", asked @ ..] if asks_git_folder(asked) => GIT_FOLDER[0].to_owned(),
        ["git", "rev-parse", "--git-path", path] if !path.contains("..") => format!("{}/{path}", GIT_FOLDER[0]),
        _ => return None,
    };
    // Above a folder that is not known lies anything.
    let is_known = folder.starts_with('/') || behind_here(&folder).is_some();
    (is_known || !folder.split('/').any(|part| part == "..")).then_some(folder)
}

/// Returns whether git is asked for the folder in which it keeps all, perhaps with something else in case it fails.
fn asks_git_folder(words: &[&str]) -> bool {
    let mut words = words;
    loop {
        words = match words {
            ["-C" | "-c", _, rest @ ..] => rest,
            [option, rest @ ..] if option.starts_with("--") => rest,
            _ => break,
        };
    }
    let ["rev-parse", options @ ..] = words else { return false };
    let mut asked = options.iter().take_while(|word| **word != "||").peekable();
    let is_folder = |word: &str| matches!(word, "--git-dir" | "--absolute-git-dir" | "--git-common-dir");
    asked.peek().is_some()
        && asked.all(|word| is_folder(word) || word.starts_with("--path-format="))
        && options.iter().any(|word| is_folder(word))
}

/// Returns what follows the own folder in a path that begins with it.
fn behind_here(path: &str) -> Option<&str> {
    let behind = ["$PWD", "${PWD}"].iter().find_map(|here| path.strip_prefix(here)).or_else(|| held::behind(path));
    behind.filter(|behind| behind.is_empty() || behind.starts_with('/'))
}

/// Returns a path with the own folder in front, where it is that folder or leads above one; from where the text lies nobody knows what is above.
fn from_here(path: &str, is_own: bool) -> String {
    let is_meant =
        !is_own && !path.starts_with('/') && behind_here(path).is_none() && path.split('/').any(|part| matches!(part, "." | ".."));
    if is_meant { format!("$PWD/{path}") } else { path.to_owned() }
}

/// Returns where such changes of folders lead: `cd src && cd .. && pwd`.
fn gone_to(words: &[&str], is_plain: impl Fn(&str) -> bool) -> Option<String> {
    let (mut rest, mut path) = (words, String::new());
    loop {
        let (to, behind) = match rest {
            ["cd", "-P" | "-L" | "--", to, "&&", behind @ ..] | ["cd", to, "&&", behind @ ..] => (*to, behind),
            ["pwd"] | ["pwd", "-P" | "-L"] => return Some(path).filter(|path| !path.is_empty()),
            _ => return None,
        };
        if !is_plain(to) {
            return None;
        }
        let is_new = path.is_empty() || to.starts_with(['/', '$']);
        path = if is_new { to.to_owned() } else { format!("{path}/{to}") };
        rest = behind;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_says_nothing_goes_and_a_name_is_left() {
        for (text, made) in
            [("gi`:`t", "git"), ("gi$(true)t", "git"), ("--ha$( )rd", "--hard"), ("a$(ls)$(:)b", "a$(ls)b"), ("`# x`a", "a")]
        {
            assert_eq!(replaced(&HashMap::new(), &Followed::default(), text).as_deref(), Some(made), "{text}");
        }
        for (text, name) in [
            ("gi$(cat x)t", Some("git")),
            ("g${x:-(}it", Some("git")),
            ("g$1i$@t", Some("git")),
            ("$BIN/rm", Some("/rm")),
            ("r`a`m$(b (c))", Some("rm")),
            ("$X", None),
            ("$(which rm)", None),
            ("$A-1", None),
            ("git", None),
            ("r$", None),
        ] {
            assert_eq!(bare(text).as_deref(), name, "{text}");
        }
    }

    #[test]
    fn an_expansion_becomes_what_the_shell_makes_of_it() {
        let values = HashMap::from(
            [("D", "/workspace/src"), ("E", ""), ("N", "D"), ("S", "/workspace/")].map(|(a, b)| (a.to_owned(), b.to_owned())),
        );
        for (text, made) in [
            ("$D/x", "/workspace/src/x"),
            ("${D}", "/workspace/src"),
            ("${S%/}", "/workspace"),
            ("${D%/*}", "/workspace"),
            ("${D%%/*}", ""),
            ("${D#*/}", "workspace/src"),
            ("${D##*/}", "src"),
            ("${D/src/lib}", "/workspace/lib"),
            ("${D//s/z}", "/workzpace/zrc"),
            ("${D:0:10}", "/workspace"),
            ("${D^^}", "/workspace/src"),
            ("${!N}", "/workspace/src"),
            ("${X:-.}", "."),
            ("${E:-\"$D\"}", "/workspace/src"),
            ("${X:-${Y:-/z}}/a", "/z/a"),
            ("${D:+y}", "y"),
            ("$(dirname $D)", "/workspace"),
            ("$(dirname x)", "."),
            ("$(cd \"$(dirname \"$0\")\" && pwd)", "."),
            ("$(cd $D >/dev/null 2>&1 && pwd -P)/x", "/workspace/src/x"),
            ("$(cd src && cd .. && pwd)/x", "$PWD/src/../x"),
            ("$(cd -P . && pwd -P)", "$PWD/."),
            ("$(cd x && cd /a/.. && pwd)", "/a/.."),
            ("$(realpath src/..)", "$PWD/src/.."),
            ("$(realpath src)", "src"),
            ("$(dirname \"$PWD/a.txt\")", "$PWD"),
            ("$(dirname \"$(pwd)/a/b\")", "$PWD/a"),
        ] {
            assert_eq!(replaced(&values, &Followed::default(), text).as_deref(), Some(made), "{text}");
        }
        for text in ["x", "$X", "${X}", "${X:?}", "${X%/}", "$(ls)", "$(dirname $X)", "$(cd \"$(dirname \"$0\")/..\" && pwd)"] {
            let made = replaced(&values, &Followed::default(), text);
            assert!(made.is_none() || text.contains("/.."), "{text}: {made:?}");
        }
    }
}
