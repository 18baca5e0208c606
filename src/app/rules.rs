//! A user's rules, with the names of tools in them understood as the catalogue does.

use podbay_config::Answers;
use podbay_config::Config;
use podbay_config::near;
use podbay_event::is_hidden;
use podbay_policy as policy;
use podbay_policy::Mode;
use podbay_policy::Policy;
use podbay_policy::RuleDecision;
use podbay_tools as tools;
use podbay_tools::Catalogue;
use podbay_tools::HookOptions;
use podbay_tools::ToolSet;

use super::Error;
use super::record::with_causes;

/// Makes the policy of a command, and warns of rules that speak of no tool: who denies what is
/// misspelt denies nothing.
pub(super) fn policy(
    mode: Mode,
    options: &policy::Options,
    mut warn: impl FnMut(String),
) -> Result<Policy, Error> {
    let (options, warnings) = understood(options);
    warnings.into_iter().for_each(&mut warn);
    Policy::new(mode, &options).map_err(Error::Rule)
}

/// Returns what is wrong with the rules of settings, each a sentence: what is to be said where
/// nothing is executed by them.
pub fn rule_problems(config: &Config) -> Vec<String> {
    let mut problems = Vec::new();
    let refused = policy(Mode::Auto, &config.policy, |warning| problems.push(warning)).err();
    problems.extend(refused.map(|error| {
        error.hint().map_or_else(
            || with_causes(&error),
            |hint| format!("{}; {hint}", with_causes(&error)),
        )
    }));
    problems
}

/// Tells a policy what the user allowed for good in this project. What cannot be read allows
/// nothing.
pub(super) fn recall(policy: &mut Policy, answers: Option<&Answers>, mut warn: impl FnMut(String)) {
    match answers.map(Answers::list) {
        Some(Ok(answers)) => policy.restore_answers(answers),
        Some(Err(error)) => warn(format!(
            "what was allowed for good is asked again: {}; {}",
            with_causes(&error),
            error.hint()
        )),
        None => {}
    }
}

/// Returns the rules with the tools' own names, and what is to be said of those that name none.
pub(super) fn understood(options: &policy::Options) -> (policy::Options, Vec<String>) {
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let mut warnings = Vec::new();
    let mut one = |rule: &String, does: &str| {
        if let Some(c) = rule.chars().find(|c| is_hidden(*c)) {
            let number = u32::from(c);
            warnings.push(format!("the rule `{rule}` holds a sign that is not seen, U+{number:04X}, and speaks only of what holds it too"));
        }
        named(&catalogue, rule).unwrap_or_else(|near| {
            let near = near
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            warnings.push(format!(
                "the rule `{rule}` speaks of no tool that there is, so it {does} nothing{near}"
            ));
            rule.clone()
        })
    };
    let mut all =
        |rules: &[String], does: &str| rules.iter().map(|rule| one(rule, does)).collect::<Vec<_>>();
    let (allow, ask) = (
        all(&options.allow, "allows"),
        all(&options.ask, "asks about"),
    );
    let (gate, deny) = (all(&options.gate, "gates"), all(&options.deny, "denies"));
    let mut rules = options.rules.clone();
    for example in &mut rules {
        let does = match example.decision {
            RuleDecision::Allow => "allows",
            RuleDecision::Ask => "asks about",
            RuleDecision::Gate => "gates",
            RuleDecision::Deny => "denies",
        };
        example.rule = one(&example.rule, does);
    }
    (
        policy::Options {
            allow,
            ask,
            gate,
            deny,
            rules,
            ..options.clone()
        },
        warnings,
    )
}

/// Returns the hooks with the tools' own names, and warns of one that waits for a tool that is
/// none.
pub(super) fn hooks(options: &HookOptions, mut warn: impl FnMut(String)) -> HookOptions {
    let catalogue = Catalogue::new(&tools::Options {
        set: ToolSet::Full,
        ..tools::Options::default()
    });
    let mut options = options.clone();
    for hook in options
        .pre_tool_use
        .iter_mut()
        .chain(&mut options.post_tool_use)
    {
        let tool = &mut hook.condition.tool;
        if tool == "*" {
            continue;
        }
        match named(&catalogue, tool) {
            Ok(name) => *tool = name,
            Err(near) => {
                let near = near
                    .map(|near| format!("; did you mean `{near}`?"))
                    .unwrap_or_default();
                warn(format!(
                    "the hook `{}` waits for `{tool}`, and there is no such tool, so it never runs{near}",
                    hook.run
                ));
            }
        }
    }
    options
}

/// Returns the rule with the tool's own name, or the name that was probably meant.
fn named(catalogue: &Catalogue, rule: &str) -> Result<String, Option<&'static str>> {
    let end = rule.find('(').unwrap_or(rule.len());
    let name = rule[..end].trim();
    // Which tools a server has is known only once it runs.
    if name == policy::HOOK || name.starts_with(policy::FOREIGN) {
        return Ok(rule.to_owned());
    }
    if let Some(tool) = catalogue.find(name) {
        return Ok(format!("{}{}", tool.name, &rule[end..]));
    }
    let names = catalogue
        .tools()
        .iter()
        .flat_map(|tool| std::iter::once(tool.name).chain(tool.aliases().iter().copied()));
    Err(near(name, names)
        .and_then(|near| catalogue.find(near))
        .map(|tool| tool.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(rule: &str, expected: &str, warning: &str) {
        let (options, warnings) = understood(&policy::Options {
            deny: vec![rule.to_owned()],
            ..policy::Options::default()
        });
        assert_eq!(
            (options.deny[0].as_str(), warnings.concat().as_str()),
            (expected, warning)
        );
    }

    #[test]
    fn a_hook_waits_for_a_tool_by_its_own_name() {
        let text = "[[pre_tool_use]]\nrun = 'a'\nif = { tool = 'shell' }\n[[post_tool_use]]\nrun = 'b'\nif = { tool = 'write_fil' }";
        let mut warnings = Vec::new();
        let options = hooks(&toml::from_str(text).expect("hooks"), |warning| {
            warnings.push(warning);
        });
        assert_eq!(options.pre_tool_use[0].condition.tool, "bash");
        let says = "the hook `b` waits for `write_fil`, and there is no such tool, so it never runs; did you mean `write_file`?";
        assert_eq!(warnings, [says]);
        check("hook(curl *)", "hook(curl *)", "");
    }

    #[test]
    fn a_rule_that_names_no_tool_is_warned_of() {
        let says = "the rule `write_fil(**)` speaks of no tool that there is, so it denies nothing; did you mean `write_file`?";
        check("write_fil(**)", "write_fil(**)", says);
        check(
            "xyz",
            "xyz",
            "the rule `xyz` speaks of no tool that there is, so it denies nothing",
        );
        let says = "the rule `bash(git\u{200b} push *)` holds a sign that is not seen, U+200B, and speaks only of what holds it too";
        check("bash(git\u{200b} push *)", "bash(git\u{200b} push *)", says);
        let allow = policy::Options {
            allow: vec!["basch".to_owned()],
            ..policy::Options::default()
        };
        assert_eq!(
            understood(&allow).1,
            [
                "the rule `basch` speaks of no tool that there is, so it allows nothing; did you mean `bash`?"
            ]
        );
    }

    #[test]
    fn names_of_other_systems_are_names() {
        check("write_file(src/**)", "write_file(src/**)", "");
        check("bash(git status)", "bash(git status)", "");
        check(" FileWrite (a)", "write_file(a)", "");
    }
}
