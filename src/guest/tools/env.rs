//! `env`: the environment of commands, without values that look like secrets.

use super::invalid;
use podbay_wire::Env;
use podbay_wire::Environment;
use podbay_wire::Fault;
use podbay_wire::Variable;

/// Parts of a name that mark its value as a secret, anywhere in it.
const ANYWHERE: [&str; 9] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "APIKEY",
    "PRIVATE",
    "COOKIE",
];
/// Words between underscores that do so.
const WORDS: [&str; 6] = ["KEY", "PASS", "AUTH", "PAT", "DSN", "PW"];
/// Prefixes of secret values, whatever their variable is called.
const BEGINNINGS: [&str; 10] = [
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "AKIA",
    "-----BEGIN",
];

/// Most bytes of one value that are shown.
const MAX_VALUE: usize = 4000;

pub(crate) fn run(environment: &[Vec<u8>], call: &Env) -> Result<Environment, Fault> {
    if call
        .name
        .as_ref()
        .is_some_and(|name| name.contains(['=', '\0']))
    {
        return Err(invalid(
            "name",
            "contains `=` or a NUL byte, which no variable name may have",
        ));
    }
    let mut variables: Vec<Variable> = environment
        .iter()
        .map(|pair| variable(&String::from_utf8_lossy(pair)))
        .collect();
    variables.retain(|variable| {
        call.name.as_ref().is_none_or(|name| *name == variable.name)
            && call
                .prefix
                .as_ref()
                .is_none_or(|prefix| variable.name.starts_with(prefix.as_str()))
    });
    variables.sort_by(|a, b| a.name.cmp(&b.name));
    variables.dedup_by(|a, b| a.name == b.name);
    Ok(Environment { variables })
}

fn variable(pair: &str) -> Variable {
    let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
    let is_shown = value.is_empty() || !(is_named_secret(name) || looks_secret(value));
    let value = is_shown.then(|| match value.floor_char_boundary(MAX_VALUE) {
        end if end < value.len() => format!("{}… ({} bytes)", &value[..end], value.len()),
        _ => value.to_owned(),
    });
    Variable {
        name: name.to_owned(),
        value,
    }
}

fn is_named_secret(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ANYWHERE.iter().any(|part| name.contains(part))
        || name
            .split(['_', '-', '.'])
            .any(|word| WORDS.contains(&word))
}

fn looks_secret(value: &str) -> bool {
    // User and password in a URL.
    let has_password = value.split_once("://").is_some_and(|(_, rest)| {
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        authority
            .rsplit_once('@')
            .is_some_and(|(user, _)| !user.is_empty())
    });
    has_password
        || BEGINNINGS
            .iter()
            .any(|beginning| value.starts_with(beginning))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pair: &str, is_shown: bool) {
        assert_eq!(variable(pair).value.is_some(), is_shown, "{pair}");
    }

    #[test]
    fn values_that_look_like_secrets_are_masked() {
        for pair in [
            "API_KEY=abc",
            "GITHUB_TOKEN=x",
            "my_secret=x",
            "DB_PASS=x",
            "PGPASSWORD=x",
            "AWS_SECRET_ACCESS_KEY=x",
            "DATABASE_URL=postgres://me:pw@db/x",
            "REGISTRY=https://token@host",
            "ANYTHING=ghp_0123",
            "SSH=-----BEGIN OPENSSH PRIVATE KEY-----",
        ] {
            check(pair, false);
        }
        for pair in [
            "PATH=/bin",
            "HOME=/tmp",
            "KEYBOARD=us",
            "COMPASS=north",
            "URL=https://example.org/a@b",
            "EMPTY_TOKEN=",
            "AUTHOR=me",
        ] {
            check(pair, true);
        }
    }

    #[test]
    fn one_variable_or_those_with_a_prefix_are_shown() {
        let environment = ["B_TWO=2", "A=1", "B_ONE=1"].map(|pair| pair.as_bytes().to_vec());
        let names = |name: Option<&str>, prefix: Option<&str>| {
            let call = Env {
                name: name.map(str::to_owned),
                prefix: prefix.map(str::to_owned),
            };
            run(&environment, &call).map(|shown| {
                shown
                    .variables
                    .into_iter()
                    .map(|variable| variable.name)
                    .collect::<Vec<_>>()
            })
        };
        assert_eq!(names(None, None).expect("shown"), ["A", "B_ONE", "B_TWO"]);
        assert_eq!(names(Some("A"), None).expect("shown"), ["A"]);
        assert_eq!(names(Some("a"), None).expect("shown"), Vec::<String>::new());
        assert_eq!(names(None, Some("B_")).expect("shown"), ["B_ONE", "B_TWO"]);
        assert!(names(Some("A=1"), None).is_err());
    }
}
