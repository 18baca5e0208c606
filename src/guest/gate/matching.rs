//! Whether a rule matches a program. Plain functions over names and arguments; `process` and
//! `invocations` collect those.

use podbay_wire::ExecRule;
use podbay_wire::behind_git_options;

/// How many name forms are tried: the name, and up to three without trailing version numbers.
const SHORTER: usize = 4;

/// A program with all its names and its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Invocation {
    /// Of its file, of the path that was called, and its `argv[0]`: a rule that denies or asks
    /// matches any of them.
    pub(super) names: Vec<Vec<u8>>,
    /// Its arguments, without `argv[0]`.
    pub(super) words: Vec<Vec<u8>>,
    /// Whether it has more arguments than were read.
    pub(super) truncated: bool,
}

impl Invocation {
    /// Adds a name: the whole path and its last part.
    pub(super) fn named(mut self, name: &[u8]) -> Self {
        let last = base(name);
        for name in [name, last] {
            if !name.is_empty() && !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_vec());
            }
        }
        self
    }

    /// Returns whether `name` is one of its names.
    pub(super) fn is_called(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// Returns the last part of a path.
pub(super) fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns whether a rule matches a program. Arguments beyond the known ones count as matching.
pub(super) fn matches(rule: &ExecRule, form: &Invocation) -> bool {
    let Some((name, behind)) = rule.words.split_first() else {
        return false;
    };
    // Arguments after `--` are not options.
    if form
        .words
        .iter()
        .take_while(|word| *word != b"--")
        .any(|word| rule.unless.iter().any(|other| other.as_bytes() == word))
    {
        return false;
    }
    let arguments_match = |words: &[Vec<u8>]| arguments_match(behind, words, rule, form.truncated);
    form.names.iter().any(|own| {
        let is_it = |words: &[Vec<u8>]| {
            versions(own).any(|own| {
                name.iter()
                    .any(|pattern| glob_matches(pattern.as_bytes(), own))
            }) && arguments_match(words)
        };
        // Git's verbs are also programs of their own (`git-push`), in git's exec path.
        let of_git = base(own).strip_prefix(b"git-").is_some_and(|verb| {
            let words: Vec<Vec<u8>> = [&[verb.to_vec()][..], &form.words].concat();
            name.iter()
                .any(|pattern| glob_matches(pattern.as_bytes(), b"git"))
                && arguments_match(&words)
        });
        let behind_options = || own == b"git" && is_it(behind_git_options(&form.words));
        is_it(&form.words) || of_git || behind_options()
    })
}

/// Returns a name, then the name without its trailing version numbers: `python3.13`, `python3`,
/// `python`.
fn versions(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::successors(Some(name), |name| without_version(name)).take(SHORTER)
}

fn without_version(name: &[u8]) -> Option<&[u8]> {
    let end = name.iter().rposition(|byte| !byte.is_ascii_digit())?;
    let rest = &name[..=end];
    let rest = rest
        .strip_suffix(b".")
        .or_else(|| rest.strip_suffix(b"-"))
        .unwrap_or(rest);
    (end + 1 < name.len() && !rest.is_empty()).then_some(rest)
}

/// Returns whether arguments match the patterns after a rule's name. On a mismatch only the last
/// star is extended, because every other pattern takes exactly one argument.
fn arguments_match(
    patterns: &[Vec<String>],
    words: &[Vec<u8>],
    rule: &ExecRule,
    truncated: bool,
) -> bool {
    let is_between =
        |word: &[u8]| rule.options_between && word.starts_with(b"-") | word.starts_with(b"+");
    let is_star = |pattern: &[String]| pattern.iter().any(|pattern| pattern == "*");
    let (mut at, mut word) = (0, 0);
    let mut last_star: Option<(usize, usize)> = None;
    loop {
        match (patterns.get(at), words.get(word)) {
            (None, rest) if rule.more || rest.is_none() => return true,
            (Some(pattern), _) if is_star(pattern) => {
                at += 1;
                last_star = Some((at, word));
                continue;
            }
            (Some(pattern), Some(found))
                if pattern
                    .iter()
                    .any(|pattern| glob_matches(pattern.as_bytes(), found)) =>
            {
                at += 1;
                word += 1;
                continue;
            }
            (Some(_), Some(option)) if is_between(option) => {
                word += 1;
                continue;
            }
            (Some(_), None) if truncated => return true,
            _ => {}
        }
        match last_star {
            Some((behind, from)) if from < words.len() => {
                (at, word) = (behind, from + 1);
                last_star = Some((behind, from + 1));
            }
            _ => return false,
        }
    }
}

/// Returns whether a word matches a pattern, in which `*` stands for any bytes.
fn glob_matches(pattern: &[u8], word: &[u8]) -> bool {
    let mut parts = pattern.split(|&byte| byte == b'*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = word.strip_prefix(first) else {
        return false;
    };
    let mut parts = parts.peekable();
    if parts.peek().is_none() {
        return rest.is_empty();
    }
    while let Some(part) = parts.next() {
        if parts.peek().is_none() {
            return rest.ends_with(part);
        }
        match memchr::memmem::find(rest, part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use podbay_wire::ExecEffect;
    use podbay_wire::ExecScope;

    use super::*;

    /// `git|hub push* *`: alternatives separated by bars, and any further arguments where the last
    /// one is `*`.
    fn rule(text: &str) -> ExecRule {
        let mut words: Vec<Vec<String>> = text
            .split_whitespace()
            .map(|word| word.split('|').map(str::to_owned).collect())
            .collect();
        let more = words.len() > 1 && words.last().is_some_and(|word| word == &["*"]);
        if more {
            words.pop();
        }
        ExecRule {
            effect: ExecEffect::Deny,
            words,
            more,
            options_between: false,
            unless: Vec::new(),
            scope: ExecScope::Own,
            rule: text.to_owned(),
            justification: String::new(),
        }
    }

    fn form(text: &str) -> Invocation {
        let mut words = text.split_whitespace().map(|word| word.as_bytes().to_vec());
        let name = words.next().expect("a name");
        Invocation {
            words: words.collect(),
            ..Invocation::default()
        }
        .named(&name)
    }

    #[track_caller]
    fn check(text: &str, speaks: &[&str], does_not: &[&str]) {
        for command in speaks {
            assert!(
                matches(&rule(text), &form(command)),
                "{text} matches {command}"
            );
        }
        for command in does_not {
            assert!(
                !matches(&rule(text), &form(command)),
                "{text} does not match {command}"
            );
        }
    }

    #[test]
    fn rules_match_whole_words() {
        check(
            "git push* *",
            &[
                "git push",
                "git push origin x",
                "/usr/bin/git push",
                "git pushx",
            ],
            &["git pull", "git", "git log push"],
        );
        check("git push", &["git push"], &["git push origin", "git"]);
        check(
            "rm -rf *",
            &["rm -rf", "rm -rf a b"],
            &["rm -r", "rm -r -f a", "rmdir -rf"],
        );
        check(
            "npm|pnpm|yarn publish *",
            &["npm publish", "yarn publish --tag x"],
            &["npm pack", "bun publish"],
        );
        check("* *", &["anything at all"], &[]);
        check(
            "/usr/bin/git push *",
            &["/usr/bin/git push"],
            &["git push", "/opt/git push"],
        );
    }

    #[test]
    fn a_lone_star_matches_any_number_of_arguments() {
        check(
            "git * --force *",
            &[
                "git push --force",
                "git --force",
                "git push origin x --force y",
            ],
            &["git push --forced", "git push"],
        );
        check(
            "cp * /etc/*",
            &["cp a b /etc/passwd", "cp /etc/x"],
            &["cp a b /tmp/etc", "cp /etc/x b"],
        );
        check(
            "a * b * c",
            &["a b c", "a x b y c", "a b b c c"],
            &["a b", "a c b", "a b c d"],
        );
        check("a*c *", &["abc", "ac x", "abbc"], &["ab", "abcd"]);
        check("*.sh *", &["deploy.sh", "./deploy.sh now"], &["deploy.shx"]);
    }

    #[test]
    fn git_verbs_match_behind_global_options_and_as_programs() {
        check(
            "git push* *",
            &[
                "git -C . --no-pager push",
                "git -c a.b=c push x",
                "git-push",
                "/usr/lib/git-core/git-push x",
                "git --git-dir a push",
            ],
            &["git -C push log", "git-pull", "hg -C . push"],
        );
        check("git -C *", &["git -C x push"], &["git push"]);
        check("git-push *", &["git-push x"], &["git push"]);
    }

    #[test]
    fn a_version_in_a_name_is_ignored() {
        check(
            "python3 *",
            &["python3 -c x", "python3.13 x", "/usr/bin/python3.13 x"],
            &["python x", "python2 x", "ipython3 x"],
        );
        check("python *", &["python3.13 x", "python x"], &["pythonx x"]);
        check("gcc *", &["gcc-14 -c"], &["gccgo -c"]);
        check("7z *", &["7z x"], &["z x"]);
    }

    #[test]
    fn any_name_matches_and_unknown_arguments_count_as_matching() {
        let called = form("ls push").named(b"/usr/bin/git");
        assert!(matches(&rule("git push *"), &called) && matches(&rule("ls *"), &called));
        let cut = Invocation {
            truncated: true,
            ..form("tool a b")
        };
        assert!(matches(&rule("tool a b c *"), &cut) && !matches(&rule("tool a c *"), &cut));
        assert!(!matches(
            &ExecRule {
                words: Vec::new(),
                ..rule("x")
            },
            &cut
        ));
    }

    #[test]
    fn options_may_be_interspersed_and_some_of_them_exempt() {
        let rule = ExecRule {
            options_between: true,
            unless: vec!["--dry-run".to_owned()],
            ..rule("npm publish *")
        };
        for command in [
            "npm publish",
            "npm --quiet publish x",
            "npm +a -b publish",
            "npm publish -- --dry-run",
        ] {
            assert!(matches(&rule, &form(command)), "{command}");
        }
        for command in [
            "npm run publish",
            "npm publish --dry-run",
            "npm --quiet",
            "npm --dry-run publish",
        ] {
            assert!(!matches(&rule, &form(command)), "{command}");
        }
    }

    #[test]
    fn arguments_that_are_not_utf8_match_like_others() {
        let odd = Invocation {
            names: vec![b"\xff".to_vec()],
            words: vec![b"a\xfe".to_vec()],
            truncated: false,
        };
        assert!(matches(&rule("* a* *"), &odd) && !matches(&rule("* b* *"), &odd));
    }
}
