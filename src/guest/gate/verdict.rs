//! What the rules say about a program: the strictest one that matches counts.

use super::ancestry::Context;
use super::invocations::Invocations;
use super::matching::base;
use super::matching::matches;
use podbay_wire::Because;
use podbay_wire::ExecEffect;
use podbay_wire::ExecRule;
use podbay_wire::ExecScope;

/// The effect on a program, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) effect: ExecEffect,
    pub(super) because: Because,
}

/// Returns what the rules say; `None`: it may run.
pub(super) fn judge(
    rules: &[ExecRule],
    invocations: &Invocations,
    called_as: &[u8],
    context: Context,
) -> Option<Verdict> {
    // Programs that git starts by itself are part of the verb that was judged.
    if context.is_git && base(called_as) == b"git" && invocations.own().is_called(b"git") {
        return None;
    }
    let holds = |rule: &&ExecRule| context.own || rule.scope == ExecScope::Anywhere;
    let speaks = |rule: &&ExecRule| invocations.all.iter().any(|form| matches(rule, form));
    let found = || rules.iter().filter(holds).filter(speaks);
    let strictest = found()
        .find(|rule| rule.effect == ExecEffect::Deny)
        .or_else(|| found().next());
    if let Some(rule) = strictest {
        let because = Because::Rule {
            rule: rule.rule.clone(),
            justification: rule.justification.clone(),
        };
        return Some(Verdict {
            effect: rule.effect,
            because,
        });
    }
    let is_unknown = invocations.is_unnamed && rules.iter().any(|rule| holds(&rule));
    is_unknown.then_some(Verdict {
        effect: ExecEffect::Deny,
        because: Because::Unnamed,
    })
}

#[cfg(test)]
mod tests {
    use super::super::matching::Invocation;
    use super::*;

    const OWN: Context = Context {
        own: true,
        is_git: false,
    };
    const OF_A_PROGRAM: Context = Context {
        own: false,
        is_git: false,
    };
    const OF_GIT: Context = Context {
        own: false,
        is_git: true,
    };

    fn rule(effect: ExecEffect, scope: ExecScope, words: &str) -> ExecRule {
        let of = |word: &str| vec![word.to_owned()];
        let (rule, justification) = (words.to_owned(), String::new());
        let words = words.split(' ').map(of).collect();
        ExecRule {
            effect,
            words,
            more: true,
            options_between: false,
            unless: Vec::new(),
            scope,
            rule,
            justification,
        }
    }

    fn judged(
        rules: &[ExecRule],
        command: &str,
        is_unnamed: bool,
        context: Context,
    ) -> Option<(ExecEffect, String)> {
        let mut words = command.split(' ').map(|word| word.as_bytes().to_vec());
        let name = words.next().expect("a name");
        let form = Invocation {
            words: words.collect(),
            ..Invocation::default()
        }
        .named(&name);
        let verdict = judge(
            rules,
            &Invocations {
                all: vec![form],
                is_unnamed,
            },
            &name,
            context,
        )?;
        let why = match verdict.because {
            Because::Rule { rule, .. } => rule,
            other => format!("{other:?}"),
        };
        Some((verdict.effect, why))
    }

    #[test]
    fn the_strictest_matching_rule_counts() {
        let rules = [
            rule(ExecEffect::Ask, ExecScope::Own, "git"),
            rule(ExecEffect::Deny, ExecScope::Own, "git push"),
        ];
        assert_eq!(
            judged(&rules, "git push x", false, OWN),
            Some((ExecEffect::Deny, "git push".to_owned()))
        );
        assert_eq!(
            judged(&rules, "git pull", false, OWN),
            Some((ExecEffect::Ask, "git".to_owned()))
        );
        assert_eq!(judged(&rules, "make", false, OWN), None);
    }

    #[test]
    fn only_rules_with_scope_anywhere_match_what_a_program_starts() {
        let own = [rule(ExecEffect::Deny, ExecScope::Own, "rm")];
        let anywhere = [rule(ExecEffect::Deny, ExecScope::Anywhere, "rm")];
        assert_eq!(
            (
                judged(&own, "rm x", false, OF_A_PROGRAM),
                judged(&own, "rm x", false, OWN).is_some()
            ),
            (None, true)
        );
        assert!(judged(&anywhere, "rm x", false, OF_A_PROGRAM).is_some());
    }

    #[test]
    fn git_may_start_itself_but_no_other_denied_program() {
        let rules = [
            rule(ExecEffect::Deny, ExecScope::Anywhere, "git reset"),
            rule(ExecEffect::Deny, ExecScope::Anywhere, "rm"),
        ];
        assert_eq!(judged(&rules, "git reset --hard", false, OF_GIT), None);
        assert!(judged(&rules, "git reset --hard", false, OF_A_PROGRAM).is_some());
        assert!(judged(&rules, "git-reset --hard", false, OF_GIT).is_some());
        assert!(judged(&rules, "rm x", false, OF_GIT).is_some());
    }

    #[test]
    fn a_file_without_a_name_matches_every_rule() {
        let rules = [rule(ExecEffect::Deny, ExecScope::Own, "git")];
        assert_eq!(
            judged(&rules, "zzz", true, OWN),
            Some((ExecEffect::Deny, "Unnamed".to_owned()))
        );
        assert_eq!(
            (
                judged(&rules, "zzz", true, OF_A_PROGRAM),
                judged(&[], "zzz", true, OWN)
            ),
            (None, None)
        );
    }
}
