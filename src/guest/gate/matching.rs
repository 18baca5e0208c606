//! Whether a rule speaks of a program. Plain functions over words: what is read of a process is put
//! together elsewhere.

use podbay_wire::ExecRule;
use podbay_wire::behind_git_options;

/// Versions that a program's name may end with are left out so often.
const SHORTER: usize = 4;

/// A program by all its names, with what it is given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// Of its file, of the path that was called, of what it is told it is called: a rule that
    /// denies or asks speaks of it by any of them.
    pub(super) names: Vec<Vec<u8>>,
    /// Its arguments, without the name.
    pub(super) words: Vec<Vec<u8>>,
    /// Whether it has more of them than are known.
    pub(super) truncated: bool,
}

impl Form {
    /// Returns a form with a name besides, by its path and by its last part.
    pub(super) fn named(mut self, name: &[u8]) -> Self {
        let last = base(name);
        for name in [name, last] {
            if !name.is_empty() && !self.names.iter().any(|known| known == name) {
                self.names.push(name.to_vec());
            }
        }
        self
    }

    /// Returns whether one of its names is this one.
    pub(super) fn is_called(&self, name: &[u8]) -> bool {
        self.names.iter().any(|known| known == name)
    }
}

/// Returns the last part of a path.
pub(super) fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|&byte| byte == b'/').next().unwrap_or_default()
}

/// Returns whether a rule speaks of a program. Of arguments that are not known it is taken to
/// speak.
pub(super) fn speaks_of(rule: &ExecRule, form: &Form) -> bool {
    let Some((name, behind)) = rule.words.split_first() else {
        return false;
    };
    // Behind `--` there are no options.
    if form
        .words
        .iter()
        .take_while(|word| *word != b"--")
        .any(|word| rule.unless.iter().any(|other| other.as_bytes() == word))
    {
        return false;
    }
    let follow = |words: &[Vec<u8>]| follow(behind, words, rule, form.truncated);
    form.names.iter().any(|own| {
        let is_it = |words: &[Vec<u8>]| {
            versions(own).any(|own| name.iter().any(|pattern| fits(pattern.as_bytes(), own)))
                && follow(words)
        };
        // Git's verbs are programs of their own, too, in git's own folder.
        let of_git = base(own).strip_prefix(b"git-").is_some_and(|verb| {
            let words: Vec<Vec<u8>> = [&[verb.to_vec()][..], &form.words].concat();
            name.iter().any(|pattern| fits(pattern.as_bytes(), b"git")) && follow(&words)
        });
        let behind_options = || own == b"git" && is_it(behind_git_options(&form.words));
        is_it(&form.words) || of_git || behind_options()
    })
}

/// Returns a name, and what it is without the version that it ends with: `python3.13`, `python3`,
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

/// Returns whether words are what a rule goes on with. Of several stars only the last one is tried
/// anew, as each other pattern takes one word.
fn follow(patterns: &[Vec<String>], words: &[Vec<u8>], rule: &ExecRule, truncated: bool) -> bool {
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
                    .any(|pattern| fits(pattern.as_bytes(), found)) =>
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

/// Returns whether a word is what a pattern says, in which `*` stands for any bytes.
fn fits(pattern: &[u8], word: &[u8]) -> bool {
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

    /// `git|hub push* *`: alternatives parted by bars, and any more words where the last one is
    /// `*`.
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

    fn form(text: &str) -> Form {
        let mut words = text.split_whitespace().map(|word| word.as_bytes().to_vec());
        let name = words.next().expect("a name");
        Form {
            words: words.collect(),
            ..Form::default()
        }
        .named(&name)
    }

    #[track_caller]
    fn check(text: &str, speaks: &[&str], does_not: &[&str]) {
        for command in speaks {
            assert!(
                speaks_of(&rule(text), &form(command)),
                "{text} speaks of {command}"
            );
        }
        for command in does_not {
            assert!(
                !speaks_of(&rule(text), &form(command)),
                "{text} does not speak of {command}"
            );
        }
    }

    #[test]
    fn a_rule_speaks_of_words_and_not_of_letters() {
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
    fn a_star_alone_stands_for_any_number_of_words() {
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
    fn the_options_of_git_itself_do_not_hide_its_verb_and_its_own_programs_are_its_verbs() {
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
    fn a_version_in_a_name_is_left_out() {
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
    fn one_of_its_names_is_enough_and_what_is_not_known_of_its_words_counts() {
        let called = form("ls push").named(b"/usr/bin/git");
        assert!(speaks_of(&rule("git push *"), &called) && speaks_of(&rule("ls *"), &called));
        let cut = Form {
            truncated: true,
            ..form("tool a b")
        };
        assert!(speaks_of(&rule("tool a b c *"), &cut) && !speaks_of(&rule("tool a c *"), &cut));
        assert!(!speaks_of(
            &ExecRule {
                words: Vec::new(),
                ..rule("x")
            },
            &cut
        ));
    }

    #[test]
    fn options_may_stand_between_words_and_some_of_them_mean_that_nothing_happens() {
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
            assert!(speaks_of(&rule, &form(command)), "{command}");
        }
        for command in [
            "npm run publish",
            "npm publish --dry-run",
            "npm --quiet",
            "npm --dry-run publish",
        ] {
            assert!(!speaks_of(&rule, &form(command)), "{command}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_words_like_others() {
        let odd = Form {
            names: vec![b"\xff".to_vec()],
            words: vec![b"a\xfe".to_vec()],
            truncated: false,
        };
        assert!(speaks_of(&rule("* a* *"), &odd) && !speaks_of(&rule("* b* *"), &odd));
    }
}
