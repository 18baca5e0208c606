//! Scripts of `sed` that certainly only read.

use std::sync::LazyLock;

use regex::Regex;

use super::reading::are_certain;
use podbay_code::shell::Word;

/// `sed` that prints, deletes lines or replaces in what it prints: no `w`, no `e`, no file changed.
pub(super) fn only_reads(arguments: &[Word]) -> bool {
    static STEP: LazyLock<Regex> = LazyLock::new(|| {
        // Where a list of letters holds the mark, one program ends the pattern there and another one does not. A `]` right behind `[` or `[^`
        // is a letter and no end; one in `[:…` that names no class may be either: such a list is not read.
        let list = |mark: &str| {
            let letter = format!(r"[^{mark}\n\]\[]|\[:[a-z]+:\]|\[[^{mark}\n\]\[.=:]");
            let first = format!(r"[^{mark}\n\]\[\^]|\[:[a-z]+:\]|\[[^{mark}\n\]\[.=:]");
            format!(r"\[\^?(\]({letter})*\[?|({first})({letter})*\[?|\[)\]")
        };
        let place = format!(r"([0-9]+(~[0-9]+)?|\$|/([^/\[\\\n]|{}|\\[^\n])*/)", list("/"));
        let replace = ["/", r"\|", "#", ",", ":", "@"].map(|mark| {
            let inner = mark.trim_start_matches('\\');
            format!(r"s{mark}([^{inner}\[\\\n]|{}|\\[^\n])*{mark}([^{inner}\\\n]|\\[^\n])*{mark}[gIip0-9]*", list(inner))
        });
        let step = format!(r"^\s*({place}(,\s*(\+?{place}))?)?\s*!?\s*([pdq=]|{})\s*$", replace.join("|"));
        Regex::new(&step).expect("a pattern of our own")
    });
    if !are_certain(arguments) {
        return false;
    }
    let mut scripts = Vec::new();
    let mut words = arguments.iter();
    let mut has_script = false;
    while let Some(word) = words.next() {
        match word.text.as_str() {
            "-n" | "-E" | "-r" | "-u" | "-z" | "-nE" | "-En" | "-nr" | "-rn" | "--quiet" | "--silent" | "--regexp-extended" => {}
            "-e" | "-ne" | "-Ee" | "-nEe" => {
                has_script = true;
                let Some(script) = words.next().and_then(Word::known) else { return false };
                scripts.push(script);
            }
            text if text.starts_with('-') && text != "-" => return false,
            _ if !has_script => {
                has_script = true;
                let Some(script) = word.known() else { return false };
                scripts.push(script);
            }
            _ => {}
        }
    }
    let is_step = |text: &str| STEP.is_match(text);
    !scripts.is_empty() && scripts.iter().all(|script| is_step(script) || script.split([';', '\n']).all(is_step))
}

#[cfg(test)]
mod tests {
    use super::super::Reading;
    use podbay_event::Capability;
    use podbay_wire::Shell;

    #[track_caller]
    fn check(command: &str, reads: bool) {
        let found = Reading::new(command, None, Shell::Bash).capabilities == [Capability::ReadFiles];
        assert_eq!(found, reads, "{command}");
    }

    #[test]
    fn sed_reads_where_its_script_only_prints() {
        for script in [
            "1,5p",
            "$p",
            "/a/p",
            "/a/,/b/p",
            "10q",
            "s/a/b/",
            "s|a|b|g",
            r"s/a\/b/c/",
            "1d;2p",
            "/^$/d",
            "10,+5p",
            "s/[0-9]*//",
            "/[a-z][.]x/p",
            "s/[[:space:]]*$//",
            "/^[^[:alnum:]_]/d",
            r"s/[^\t ]//g",
            "s/[][]//g",
            "s/[]a]//",
            "s/[^][]/x/g",
            "s/[[]//",
            "/[[a]/p",
        ] {
            check(&format!("sed -n '{script}' f"), true);
        }
        for script in [
            "s|[|]|;s|w x|p|",
            "/[/]/;s/w x/p/",
            "/[^]/p;s/]/e touch x #/p",
            "/[^]/p;s/]/w x/p",
            "/[]/p;s/]/e touch x #/p",
            "1,/[^]/p;s/]/e touch x #/p",
            "/[^]/!d;s/]/e touch x #/p",
            "s|[^]|a|;s|]|b|w x|p",
            "s#[]#a#;s#]#w x#p",
            "/[[:x]/p;s/]/e touch x #/p",
            "/[[.].]/p;s/]/e touch x #/p",
            "/[[=]=]/p;s/]/e touch x #/p",
            "w out",
            "s/a/b/w out",
            "s/a/b/e",
            "1e rm x",
            "e",
            "s/x/;p;/w out",
            "r f",
            "1i\\ x",
            "s;a;b;w x",
            "/a/{w x\n}",
            "$!N;w x",
        ] {
            check(&format!("sed -n '{script}' f"), false);
        }
        for command in ["sed -i s/a/b/ f", "sed -ni s/a/b/ f", "sed --in-place=x s/a/b/ f", "sed -f f", "sed s/a/b/ -i f", "sed s/a/b/ $f"]
        {
            check(command, false);
        }
    }
}
