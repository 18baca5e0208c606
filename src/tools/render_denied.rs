//! The model's text about a program that was denied.

use podbay_wire::Because;
use podbay_wire::BytesPath;
use podbay_wire::Denied;

/// Most characters of the command line, and of the justification.
const MOST: usize = 200;
const MOST_SAID: usize = 1000;

/// Returns which program was denied, and why.
pub(super) fn sentence(denied: &Denied) -> String {
    let words: Vec<String> = denied.argv.iter().map(BytesPath::to_text).collect();
    let (program, is_cut) = bounded(&words.join(" "), MOST);
    let more = if denied.truncated || is_cut {
        " …"
    } else {
        ""
    };
    let times = if denied.count > 1 {
        format!(" ({} times)", denied.count)
    } else {
        String::new()
    };
    let what = match &denied.because {
        Because::Write { .. } if denied.killed => "was ended",
        Because::Write { .. } => "was denied a write",
        _ if denied.killed => "was killed before it started",
        _ => "was not run",
    };
    let why = match &denied.because {
        Because::Rule {
            rule,
            justification,
        } if justification.is_empty() => format!("the rule `{}` denies it", bounded(rule, MOST).0),
        Because::Rule {
            rule,
            justification,
        } => {
            format!(
                "the rule `{}` denies it: {}",
                bounded(rule, MOST).0,
                bounded(justification, MOST_SAID).0
            )
        }
        Because::Refused { rule } => format!(
            "the rule `{}` requires approval, which was not given",
            bounded(rule, MOST).0
        ),
        Because::Write { path } => {
            format!(
                "it was about to change {}, which the user did not allow",
                bounded(&path.to_text(), MOST).0
            )
        }
        Because::Unnamed => "its file has no name, so no rule can match it".to_owned(),
        Because::Changed => "its arguments differ from those that were allowed".to_owned(),
    };
    format!("`{}{more}` {what}{times}: {why}", program.replace('`', "'"))
}

/// Returns the beginning of a text on one line, and whether some is missing.
fn bounded(text: &str, most: usize) -> (String, bool) {
    let shown: String = text
        .chars()
        .take(most)
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    let is_cut = text.chars().nth(most).is_some();
    (shown, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn denied(words: &[&str], because: Because) -> Denied {
        Denied {
            argv: words.iter().map(|&word| word.into()).collect(),
            truncated: false,
            count: 1,
            because,
            killed: false,
        }
    }

    #[test]
    fn a_denial_names_the_program_the_rule_and_the_reason() {
        let because = |justification: &str| Because::Rule {
            rule: "bash(git push*)".into(),
            justification: justification.into(),
        };
        assert_eq!(
            sentence(&denied(
                &["git", "push", "origin"],
                because("ask Ann first")
            )),
            "`git push origin` was not run: the rule `bash(git push*)` denies it: ask Ann first"
        );
        let killed = Denied {
            killed: true,
            count: 3,
            ..denied(&["git", "push"], because(""))
        };
        assert_eq!(
            sentence(&killed),
            "`git push` was killed before it started (3 times): the rule `bash(git push*)` denies it"
        );
        assert!(sentence(&denied(&["x"], Because::Unnamed)).contains("its file has no name"));
        assert_eq!(
            sentence(&denied(
                &["make"],
                Because::Write {
                    path: "build/x.o".into()
                }
            )),
            "`make` was denied a write: it was about to change build/x.o, which the user did not allow"
        );
    }

    #[test]
    fn a_denial_from_the_guest_is_bounded_and_on_one_line() {
        let said = sentence(&denied(
            &["a`\n]\x1b[2J", &"x".repeat(10_000)],
            Because::Rule {
                rule: "r\n".repeat(9000),
                justification: "\r\n".into(),
            },
        ));
        assert!(
            said.len() < 1000 && !said.contains(char::is_control),
            "{said}"
        );
        assert!(said.starts_with("`a'\\x0a]\\x1b[2J"), "{said}");
    }
}
