//! Placeholders `{{tool_name}}` and `{{tool_input}}` in a hook's command, and where they may stand.
//!
//! The model wrote the values, so they never become part of the command: an environment variable
//! carries the value, and the placeholder is replaced by that variable in double quotes, which a
//! shell expands to one word whatever it holds. Where double quotes would mean something else, the
//! hook is refused, when the settings are read and again before it runs.

/// Placeholder, the variable that carries its value, and the variable for users who write it
/// themselves.
const FIELDS: [(&str, &str, &str); 2] = [
    ("{{tool_name}}", "PODBAY_TOOL_NAME", "PODBAY_TOOL_NAME"),
    (INPUT, INPUT_VARIABLE, "PODBAY_TOOL_ARGS"),
];

const INPUT: &str = "{{tool_input}}";

/// Carries all of the arguments; `PODBAY_TOOL_ARGS` has their beginning.
pub(super) const INPUT_VARIABLE: &str = "PODBAY_TOOL_INPUT";

/// Openers of constructs in which quotes, or a word, mean something else.
const OPENERS: [&str; 10] = ["`", "$(", "${", "<<", "<(", ">(", "((", "[[", "$'", "$\""];

/// Returns the command with variables in place of placeholders; the error says why one cannot stand
/// there.
pub(super) fn fill(run: &str) -> Result<String, String> {
    check(run)?;
    Ok(FIELDS
        .iter()
        .fold(run.to_owned(), |run, (field, variable, _)| {
            run.replace(field, &format!("\"${{{variable}}}\""))
        }))
}

/// Returns whether a command uses the arguments.
pub(super) fn wants_input(run: &str) -> bool {
    run.contains(INPUT)
}

/// Refuses a command in which a placeholder might not be one word; the error says why, and what to
/// write.
pub(super) fn check(run: &str) -> Result<(), String> {
    if let Some(unknown) = misspelt(run) {
        return Err(format!(
            "the hook `{run}` has `{unknown}`, which stands for nothing; write `{{{{tool_name}}}}` for the tool's name or `{{{{tool_input}}}}` for \
             its arguments, as it is here in full"
        ));
    }
    for (field, _, variable) in FIELDS {
        let opener = OPENERS.iter().find(|opener| run.contains(**opener));
        let mut places = run.match_indices(field);
        let why = match (places.next(), opener) {
            (None, _) => continue,
            (Some(_), Some(opener)) => format!("`{opener}` is in the command"),
            (Some(first), None) => match std::iter::once(first)
                .chain(places)
                .find(|(at, _)| !is_open(&run[..*at]))
            {
                Some(_) => "it is in quotes, or behind a backslash".to_owned(),
                None => continue,
            },
        };
        return Err(format!(
            "the hook `{run}` has `{field}` where it is not certain to stay one word, because {why}; write \"${variable}\" instead, in double \
             quotes, or in a script of your own"
        ));
    }
    Ok(())
}

/// Returns a misspelt placeholder, which a shell would take literally, so that the hook would check
/// nothing.
///
/// Other double braces are left alone: programs have templates of their own, such as `{{.Names}}`.
fn misspelt(run: &str) -> Option<&str> {
    let mut rest = run;
    while let Some(at) = rest.find("{{") {
        rest = &rest[at..];
        let end = rest.find("}}")? + 2;
        let (whole, name) = (&rest[..end], rest[2..end - 2].trim());
        let plain: String = name
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect::<String>()
            .to_ascii_lowercase();
        let is_name = name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || "_-. ".contains(letter))
            && !name.starts_with('.');
        let is_of_call = plain.starts_with("tool") || plain.starts_with("podbaytool");
        if is_name && is_of_call && !FIELDS.iter().any(|(field, ..)| *field == whole) {
            return Some(whole);
        }
        rest = &rest[2..];
    }
    None
}

/// Returns whether the text after `before` is outside of quotes.
fn is_open(before: &str) -> bool {
    let mut letters = before.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' if letters.next().is_none() => return false,
            '\'' if !letters.any(|letter| letter == '\'') => return false,
            '"' => loop {
                match letters.next() {
                    None => return false,
                    Some('"') => break,
                    Some('\\') => drop(letters.next()),
                    Some(_) => {}
                }
            },
            _ => {}
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_placeholder_becomes_a_quoted_variable_never_its_value() {
        let expected = r#"log "${PODBAY_TOOL_NAME}" --input="${PODBAY_TOOL_INPUT}" {{other}}"#;
        assert_eq!(
            fill("log {{tool_name}} --input={{tool_input}} {{other}}").as_deref(),
            Ok(expected)
        );
        assert!(wants_input("log {{tool_input}}") && !wants_input("log {{tool_name}}"));
    }

    #[test]
    fn a_placeholder_may_be_an_unquoted_word() {
        for run in [
            "echo none \"$(date)\" <<< x",
            "scripts/log {{tool_name}} {{tool_input}}",
            "log --input={{tool_input}} > log.txt 2>&1",
            "cat > before.json; echo $PODBAY_TOOL_NAME > name; echo {{tool_input}} > input",
            "if grep -q \"it's\" list; then\n  log {{tool_input}}\nfi",
            "printf '%s\\n' {{tool_input}} | jq .path",
            "x={{tool_input}}; log \"$x\"",
        ] {
            assert_eq!(check(run), Ok(()), "{run}");
        }
    }

    #[test]
    fn a_placeholder_elsewhere_is_refused_and_the_variable_named() {
        for run in [
            "echo \"agent: {{tool_name}} {{tool_input}}\"",
            "echo '{{tool_input}}'",
            "sh -c 'log {{tool_input}}'",
            "sh -c \"log {{tool_input}}\"",
            "echo {{tool_input}} '{{tool_input}}'",
            "echo \"it's\" \"{{tool_input}}\"",
            "echo x\\{{tool_input}}",
            "cat <<END\n{{tool_input}}\nEND",
            "cat <<< {{tool_input}}",
            "echo $(log {{tool_input}})",
            "echo `log {{tool_input}}`",
            "diff <(log {{tool_input}}) x",
            "echo $'\\'' {{tool_input}} $'\\''",
            "(( {{tool_input}} ))",
            "[[ {{tool_input}} -eq 1 ]]",
            "log \"{{tool_input}}",
            "echo ${x:-{{tool_input}}}",
        ] {
            let said = check(run).expect_err(run);
            assert!(
                said.contains("double quotes")
                    && (said.contains("$PODBAY_TOOL_ARGS") || said.contains("$PODBAY_TOOL_NAME")),
                "{said}"
            );
            assert_eq!(fill(run), Err(said));
        }
    }

    #[test]
    fn a_misspelt_placeholder_is_refused_when_the_settings_are_read() {
        for run in [
            "log {{toolname}}",
            "log {{ tool_input }}",
            "log {{tool_args}}",
            "log {{toolInput.path}}",
            "log '{{tool}}'",
            "log {{TOOL_NAME}}",
        ] {
            let said = check(run).expect_err(run);
            assert!(
                said.contains("stands for nothing") && said.contains("`{{tool_input}}`"),
                "{said}"
            );
        }
        for run in [
            "docker ps --format '{{.Names}}'",
            "log {{other}}",
            "log '{{range .Tools}}'",
            "log {{",
            "log }}{{tool_name",
        ] {
            assert_eq!(check(run), Ok(()), "{run}");
        }
    }
}
