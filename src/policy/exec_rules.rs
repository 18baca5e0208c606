//! Translates rules about commands into exec rules: data that is sent into the sandbox with a
//! command, where each started program is matched against it.

use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;

use super::Rule;
use super::RuleScope;
use podbay_wire::ExecScope;

/// At most this many exec rules are made of one rule whose stars may match parts of words or
/// several words.
const MOST: usize = 8;

/// Characters with a meaning in a shell: a rule that contains one matches scripts, not programs.
const OF_A_SHELL: [char; 14] = [
    '$', '`', ';', '|', '&', '<', '>', '(', ')', '{', '}', '\\', '\n', '"',
];

/// Returns the exec rules of a rule; empty if it matches scripts only.
pub(super) fn exec_rules(rule: &Rule, effect: ExecEffect, because: &str) -> Vec<ExecRule> {
    let Some(pattern) = rule.words() else {
        return Vec::new();
    };
    let scope = match rule.scope() {
        RuleScope::Own => ExecScope::Own,
        RuleScope::Anywhere => ExecScope::Anywhere,
    };
    let justification = [rule.justification(), because]
        .into_iter()
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("; ");
    let of = |(words, more): (Vec<String>, bool)| ExecRule {
        effect,
        words: words.into_iter().map(|word| vec![word]).collect(),
        more,
        options_between: false,
        unless: Vec::new(),
        scope,
        rule: rule.text().to_owned(),
        justification: justification.clone(),
    };
    forms(pattern).into_iter().map(of).collect()
}

/// Returns the word lists that a pattern may stand for, each with whether more words may follow.
pub(super) fn forms(pattern: &str) -> Vec<(Vec<String>, bool)> {
    let Some(mut words) = split(pattern) else {
        return Vec::new();
    };
    let ends_open = words.last().is_some_and(|word| word.ends_with('*'));
    if ends_open && words.len() > 1 && words.last().is_some_and(|word| word == "*") {
        words.pop();
    }
    let last = words.len().saturating_sub(1);
    let mut forms: Vec<Vec<String>> = vec![Vec::new()];
    for (at, word) in words.iter().enumerate() {
        let mut parts = alternatives(word);
        for part in &mut parts {
            // Nothing precedes a program's name, and what follows the last word is stated
            // separately.
            if at == 0 && part.first().is_some_and(|first| first == "*") && part.len() > 1 {
                part.remove(0);
            }
            if at == last
                && ends_open
                && part.len() > 1
                && part.last().is_some_and(|last| last == "*")
            {
                part.pop();
            }
        }
        forms = forms
            .iter()
            .flat_map(|form| {
                parts
                    .iter()
                    .map(move |part| [form.as_slice(), part].concat())
            })
            .collect();
        if forms.len() > MOST {
            return Vec::new();
        }
    }
    forms.retain(|form| !form.is_empty());
    forms.into_iter().map(|form| (form, ends_open)).collect()
}

/// Returns what one word of a pattern may stand for: a star in it may match blanks.
fn alternatives(word: &str) -> Vec<Vec<String>> {
    let own = |text: &str| text.to_owned();
    match word.find('*') {
        None => vec![vec![own(word)]],
        Some(_) if word == "*" => vec![vec![own("*")]],
        Some(0) => vec![vec![own("*"), own(word)]],
        Some(at) if at + 1 == word.len() => vec![vec![own(word), own("*")]],
        Some(at) => vec![
            vec![own(word)],
            vec![own(&word[..=at]), own("*"), own(&word[at..])],
        ],
    }
}

/// Splits a pattern into words; single quotes group. `None` if a shell would parse it as more than
/// words.
fn split(pattern: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut rest = pattern.trim();
    while !rest.is_empty() {
        let (word, behind) = match rest.strip_prefix('\'') {
            Some(quoted) => quoted.split_once('\'')?,
            None => rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())),
        };
        let is_quoted = rest.starts_with('\'');
        if !is_quoted && word.contains(OF_A_SHELL)
            || word.contains('\'')
            || !(behind.is_empty() || behind.starts_with(char::is_whitespace))
        {
            return None;
        }
        words.push(word.to_owned());
        rest = behind.trim_start();
    }
    (!words.is_empty()).then_some(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, expected: &[&str]) {
        let line = |(words, more): (Vec<String>, bool)| {
            format!("{}{}", words.join(" , "), if more { " …" } else { "" })
        };
        assert_eq!(
            forms(pattern).into_iter().map(line).collect::<Vec<_>>(),
            expected,
            "{pattern}"
        );
    }

    #[test]
    fn a_final_star_matches_any_further_words() {
        check("git push*", &["git , push* …"]);
        check("git push *", &["git , push …"]);
        check("git push", &["git , push"]);
        check("rm *", &["rm …"]);
        check("*", &["* …"]);
        check("cargo*", &["cargo* …"]);
        check("git commit -m 'a b' *", &["git , commit , -m , a b …"]);
    }

    #[test]
    fn an_inner_star_matches_part_of_a_word_or_words() {
        check("git * --force", &["git , * , --force"]);
        check("cargo *run *", &["cargo , * , *run …"]);
        check("git pu* origin", &["git , pu* , * , origin"]);
        check("cp * /etc/*", &["cp , * , /etc/* …"]);
        check("a x*y b", &["a , x*y , b", "a , x* , * , *y , b"]);
        check("*.sh", &["*.sh"]);
    }

    #[test]
    fn patterns_with_shell_syntax_apply_to_scripts_only() {
        for pattern in [
            "cd x && make",
            "echo $X *",
            "a | b",
            "a > b",
            "x \"a b\"",
            "it's",
            "'a b",
            "a*b*c a*b*c a*b*c a*b*c x*y x*y",
            "",
        ] {
            check(pattern, &[]);
        }
    }
}
