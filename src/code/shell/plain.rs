//! What a plain shell reads otherwise than bash, as which everything is read here: where no bash is installed, `sh` runs it.
//!
//! In front of the first of these both shells read a text the same way. So the text is looked through once as both of them take it, and what
//! stands in quotes is passed by. Where that is not simple, as with a command in quotes, all of the text is looked through to the letter,
//! quoted or not: too much is found then, never too little.

use super::Command;
use super::Script;

/// What bash has besides, wherever it stands.
const SIGNS: [&str; 12] = ["$'", "$\"", "$[", "&>", "|&", "<(", ">(", "<<<", ";&", "=(", "]=", "]+="];

/// Patterns of names. Both refuse a line with one, unless an option of bash was set.
const PATTERNS: [&str; 5] = ["@(", "?(", "!(", "*(", "+("];

/// Commands of bash's own, without which those behind them run in another folder, or with other values.
const BUILT_IN: [&str; 8] = ["declare", "dirs", "let", "mapfile", "popd", "pushd", "readarray", "typeset"];

/// Letters that end a word.
pub(super) const ENDS: [char; 10] = [' ', '\t', '\n', ';', '&', '|', '<', '>', '(', ')'];

/// What stands in the place of a part in quotes, and of an expansion.
const QUOTED: char = '\u{1}';

/// Returns something in a text that a plain shell may read otherwise than bash does.
pub fn only_in_bash(text: &str) -> Option<&'static str> {
    match outside_of_quotes(text) {
        Outside::Text(rest) => sign(&rest).or_else(|| PATTERNS.into_iter().find(|pattern| rest.contains(pattern))),
        Outside::Sign(sign) => Some(sign),
        // What goes on in the next line may be joined there.
        Outside::Unknown => sign(text).or_else(|| sign(&text.replace("\\\n", ""))),
    }
}

/// Returns a command of a script that only bash has built in.
pub fn built_into_bash(script: &Script) -> Option<&'static str> {
    let names = || script.commands.iter().filter_map(Command::name);
    // The word of its grammar is a program elsewhere, which cannot take the shell to another folder.
    let is_timed = script.commands.windows(2).any(|pair| pair[0].name() == Some("time") && pair[1].name() == Some("cd"));
    BUILT_IN.into_iter().find(|built_in| names().any(|name| name == *built_in)).or(is_timed.then_some("time"))
}

enum Outside {
    /// The text without what its quotes hold.
    Text(String),
    /// Something of bash that says where a quote ends.
    Sign(&'static str),
    Unknown,
}

/// A text that follows on lines of its own.
pub(super) struct Heredoc<'a> {
    end: &'a str,
    strips_tabs: bool,
    /// Nothing in it expands, and no line of it goes on in the next.
    pub(super) is_quoted: bool,
}

impl Heredoc<'_> {
    pub(super) fn is_ended_by(&self, line: &str) -> bool {
        self.bare(line) == self.end
    }

    pub(super) fn is_begun_by(&self, line: &str) -> bool {
        self.bare(line).starts_with(self.end)
    }

    /// Returns a line without what is not taken for a part of it.
    fn bare<'a>(&self, line: &'a str) -> &'a str {
        if self.strips_tabs { line.trim_start_matches('\t') } else { line }
    }
}

/// Leaves out quotes, comments and texts on lines of their own, as every shell ends them.
fn outside_of_quotes(text: &str) -> Outside {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut heredocs: Vec<Heredoc<'_>> = Vec::new();
    while let Some(c) = rest.chars().next() {
        let taken = match c {
            '\\' if rest.starts_with("\\\n") => 2,
            '\\' => {
                out.push(QUOTED);
                1 + rest[1..].chars().next().map_or(0, char::len_utf8)
            }
            '\'' | '"' => {
                let inside = if c == '"' { double(&rest[1..]) } else { Ok(rest[1..].find('\'')) };
                match inside {
                    Ok(Some(end)) if heredocs.is_empty() || !rest[..=end].contains('\n') => {
                        out.push(QUOTED);
                        end + 2
                    }
                    Ok(_) => return Outside::Unknown,
                    Err(sign) => return Outside::Sign(sign),
                }
            }
            '`' => return Outside::Unknown,
            '$' => match expansion(rest) {
                Ok(Some(end)) => {
                    out.push(QUOTED);
                    end
                }
                Ok(None) if rest.starts_with("$((") => return Outside::Unknown,
                Ok(None) => {
                    out.push('$');
                    1
                }
                Err(sign) => return Outside::Sign(sign),
            },
            // Which of both the text belongs to is not the same everywhere.
            ')' if !heredocs.is_empty() => return Outside::Sign("<<"),
            // Behind a substitution it goes on with a word.
            '#' if out.ends_with(')') => return Outside::Unknown,
            '#' if out.is_empty() || out.ends_with(ENDS) => rest.find('\n').unwrap_or(rest.len()),
            '<' if rest.starts_with("<<<") => return Outside::Sign("<<<"),
            '<' if rest.starts_with("<<") => {
                let Some((heredoc, end)) = heredoc(rest) else { return Outside::Unknown };
                heredocs.push(heredoc);
                out.push_str("<<");
                out.push(QUOTED);
                end
            }
            '\n' => {
                out.push('\n');
                match past(&rest[1..], &mut heredocs) {
                    Ok(Some(end)) => 1 + end,
                    Ok(None) => return Outside::Unknown,
                    Err(sign) => return Outside::Sign(sign),
                }
            }
            c => {
                out.push(c);
                c.len_utf8()
            }
        };
        rest = &rest[taken..];
    }
    if heredocs.is_empty() { Outside::Text(out) } else { Outside::Unknown }
}

/// Returns where the double quotes end whose inside this begins with.
pub(super) fn double(text: &str) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        at += match c {
            '"' => return Ok(Some(at)),
            '\\' => 1 + text[at + 1..].chars().next().map_or(0, char::len_utf8),
            '`' => return Ok(None),
            '$' if text[at..].starts_with("$(") || text[at..].starts_with("${") => match expansion(&text[at..])? {
                Some(end) => end,
                None => return Ok(None),
            },
            c => c.len_utf8(),
        };
    }
    Ok(None)
}

/// Returns where an expansion ends that every shell ends there; `None` for a command in it, or for no expansion.
pub(super) fn expansion(text: &str) -> Result<Option<usize>, &'static str> {
    if let Some(sign) = SIGNS[..3].iter().find(|sign| text.starts_with(**sign)) {
        return Err(sign);
    }
    if let Some(inside) = text.strip_prefix("${") {
        let end = inside.find('}').filter(|end| !inside[..*end].contains(['\'', '"', '\\', '`', '(', '{', '\n']));
        return end.map(|end| Some(end + 3)).ok_or("${");
    }
    let Some(inside) = text.strip_prefix("$((") else { return Ok(None) };
    let mut n_open = 0_usize;
    for (at, c) in inside.char_indices() {
        match c {
            '(' if !inside[..at].ends_with('$') => n_open += 1,
            ')' if n_open > 0 => n_open -= 1,
            ')' => return Ok(inside[at..].starts_with("))").then_some(at + 5)),
            c if c.is_ascii_alphanumeric() || " \t_+-*/%<>=!&|^~?:,$".contains(c) => {}
            _ => return Ok(None),
        }
    }
    Ok(None)
}

/// Reads the `<<END` that a text begins with, where its end is plain letters; returns how long it is.
pub(super) fn heredoc(text: &str) -> Option<(Heredoc<'_>, usize)> {
    let behind = &text[2..];
    let strips_tabs = behind.starts_with('-');
    let word = behind[usize::from(strips_tabs)..].trim_start_matches([' ', '\t']);
    let quote = word.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let word = &word[usize::from(quote.is_some())..];
    let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    let after = word[end..].strip_prefix(|c| Some(c) == quote).or(quote.is_none().then_some(&word[end..]))?;
    let is_word = end > 0 && after.starts_with(ENDS);
    is_word.then(|| (Heredoc { end: &word[..end], strips_tabs, is_quoted: quote.is_some() }, text.len() - after.len()))
}

/// Returns where the texts end that begin here; `None` where a command may stand in one, or where one has no end.
fn past(text: &str, heredocs: &mut Vec<Heredoc<'_>>) -> Result<Option<usize>, &'static str> {
    let mut at = 0;
    for heredoc in heredocs.drain(..) {
        loop {
            let Some(line) = text[at..].split('\n').next().filter(|_| at < text.len()) else { return Ok(None) };
            at = (at + line.len() + 1).min(text.len());
            match heredoc.bare(line).strip_prefix(heredoc.end) {
                Some("") => break,
                // Bash lets the end of a substitution follow it.
                Some(rest) if rest.trim_start().starts_with(')') => return Err("<<"),
                _ if !heredoc.is_quoted && line.contains(['`', '$', '\\']) => return Ok(None),
                _ => {}
            }
        }
    }
    Ok(Some(at))
}

/// Finds what bash has besides in a text, wherever it stands.
fn sign(text: &str) -> Option<&'static str> {
    text.char_indices().filter(|(_, c)| "$&|<>;=]+([{fsc".contains(*c)).find_map(|(at, _)| {
        let (before, rest) = text.split_at(at);
        SIGNS.into_iter().find(|sign| rest.starts_with(sign)).or_else(|| in_context(before, rest))
    })
}

/// The same for what counts by what stands around it.
fn in_context(before: &str, rest: &str) -> Option<&'static str> {
    let is_end = |text: &str| text.is_empty() || text.starts_with(ENDS);
    match rest.chars().next()? {
        '[' => rest.strip_prefix("[[").is_some_and(is_end).then_some("[["),
        '(' => (rest.starts_with("((") && !before.ends_with('$')).then_some("(("),
        '$' => (rest.starts_with("${") && !matches!(expansion(rest), Ok(Some(_)))).then_some("${"),
        '+' => (rest.starts_with("+=") && before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_')).then_some("+="),
        '>' => {
            let to = rest.strip_prefix(">&")?.trim_start_matches([' ', '\t']);
            (!to.starts_with(|c: char| c.is_ascii_digit() || c == '-')).then_some(">&")
        }
        '{' if !before.ends_with('$') => {
            let braced = rest.split(ENDS).next().unwrap_or_default();
            let (inside, _) = braced[1..].rsplit_once('}')?;
            let names_descriptor = rest[braced.len()..].starts_with(['<', '>']) && !inside.is_empty();
            (inside.contains(',') || inside.contains("..") || names_descriptor).then_some("{")
        }
        _ if before.is_empty() || before.ends_with(ENDS) || before.ends_with(['`', '"', '\'']) => keyword(rest),
        _ => None,
    }
}

/// Returns the word of bash's grammar that a text begins with, where what follows makes it one.
fn keyword(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 3] = ["function", "select", "coproc"];
    let (word, behind) = WORDS.into_iter().find_map(|word| Some((word, text.strip_prefix(word)?)))?;
    if !behind.starts_with([' ', '\t', '\n']) {
        return None;
    }
    let behind = behind.trim_start();
    let name = &behind[..behind.find(|c| ENDS.contains(&c) || c == '{').unwrap_or(behind.len())];
    let after = behind[name.len()..].trim_start();
    let is_one = match word {
        "function" => after.starts_with(['{', '(']),
        "select" => after.starts_with("in ") || after.trim_start_matches([';', ' ', '\n']).starts_with("do "),
        _ => true,
    };
    is_one.then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sign: &str, texts: &[&str]) {
        for text in texts {
            assert_eq!(only_in_bash(text).unwrap_or_default(), sign, "{text}");
        }
    }

    #[test]
    fn what_bash_has_besides_is_found_wherever_it_may_count() {
        check(
            "[[",
            &[
                "[[ a && b ]]",
                "true || [[ a && touch == f ]]",
                "! [[ a && ( touch == f ) && b ]]",
                "if [[ -f a ]]; then b; fi",
                "[\\\n[ a && b ]]",
                "echo \\\\\n[[ a && b ]]",
                "\"`[[ a > g ]]`\"",
                "echo \"$([[ a > g ]])\"",
                "`[[ a > g ]]`",
                "cat <<E\n$([[ a > f ]])\nE",
                "cat <<'E F'\n'\nE F\n[[ a > f ]]",
                "cat <<\\E\nE\n[[ a > f ]]",
                "cat <<'E'\n'\nE\n[[ a > f ]]",
                "cat <<'E' <<F\n'\nE\n'\nF\n[[ a > f ]]",
                "cat <<-E\n\t'\n\tE\n[[ a > f ]]",
                "# it's\n[[ a > f ]]",
                "echo a#'b'; [[ a > f ]] # '",
                "x=$(ls # )'\n); [[ a > f ]]",
                "echo ${x} ${#x} $((1 + (2))); [[ a > f ]]",
            ],
        );
        check("$'", &["echo $'\\''; touch z #'", "x=\"$(echo $'a')\""]);
        check("$\"", &["cat $\"a\""]);
        check("$[", &["echo $[1 + 2]"]);
        check("((", &["((rm x))", "for ((i = 0; i < 3; i++)); do a; done", "((x > a.txt))", "a && ((b))"]);
        check("&>", &["ls &>/dev/null touch zz", "a &>> b"]);
        check("|&", &["a |& b"]);
        check("<(", &["diff <(a) <(b)"]);
        check(">(", &["a > >(b)", "tee >(b)"]);
        check("<<<", &["cat <<< a", "cat <<<\"$x\""]);
        check(";&", &["case a in a) b;& c) d;; esac", "case a in a) b;;& c) d;; esac"]);
        check("=(", &["a=(b c)"]);
        check("]=", &["a[0]=b"]);
        check("+=", &["x+=/evil", "a+=(b)", "make FLAGS+=x"]);
        check("{", &["echo {a,b}", "rm x{1..3}", "ls *.{rs,md}", "{rm,-rf,x}", "echo {a,\"b c\"}", "exec {fd}>f", "a{b{c}d,e}"]);
        check("${", &["echo \"${x#'}'}\"; rm z; '}\"", "echo ${x:-$(a)}", "echo ${x:-\"a\"}", "echo ${x\\}"]);
        check("function", &["function f { a; }", "function f() { a; }", "a; function f () ( b )", "function f\n{ a; }"]);
        check("select", &["select x in a b; do c; done"]);
        check("coproc", &["coproc a", "coproc A { b; }"]);
        check(">&", &["make >& log", "make >&log"]);
        check("@(", &["ls @(a|b)"]);
        check("<<", &["x=$(cat <<E)\na\nE", "x=$(cat <<E\na\nE)\necho '\nE\n)\nrm x\n'"]);
    }

    #[test]
    fn what_both_read_the_same_way_is_not() {
        check(
            "",
            &[
                "",
                "ls -la | grep x > f 2>&1; a && b || c &",
                "grep '[[ a ]]' f",
                "grep [[:alpha:]]* f",
                "awk '{print $1,$2}' f",
                "curl -d '{\"a\":1,\"b\":2}' x",
                "echo \"{a,b} [[ c ]] $x &> d\"",
                "find . -name '*.rs' -exec wc -l {} +",
                "git show HEAD@{1} stash@{0}",
                "echo $((1 + 2)) $(((1 + 2) * 3)) \"$((x + 1))\" ${x:-y} ${#x} ${x%.*} \"${x}\"",
                "f() { a; }; f",
                "{ a; b; }",
                "(a; (b))",
                "if [ -f a ]; then b; fi",
                "case $x in a|b) c;; *) d;; esac",
                "for f in a b; do echo \"$f\"; done",
                "cat > f <<'E'\nif [[ -f a ]]; then echo $'x'; fi\nE",
                "cat > f <<E\nfunction f { [[ a ]]; }\nE\nls",
                "grep -rn function src",
                "grep select x; echo function",
                "# [[ a ]]\nls",
                "echo a\\\nb",
                "echo 'it'\\''s' \"it's\"",
                "exec 3>&1 4>&-; a >&2 2>&1",
                "x=$(ls | wc -l); echo $x",
                "printf '%s\\n' \"$@\"",
                "é='ü'; echo $é",
            ],
        );
        assert_eq!(built_into_bash(&super::super::read("ls; pushd a")), Some("pushd"));
        assert_eq!(built_into_bash(&super::super::read("time cd a; ls")), Some("time"));
        assert_eq!(built_into_bash(&super::super::read("grep pushd f; cd a; time make")), None);
    }
}
