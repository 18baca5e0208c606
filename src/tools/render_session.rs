//! Renders environment variables and background processes.

use std::fmt::Write;

use super::render::Rendered;
use super::screen::shown;
use podbay_wire::Background;
use podbay_wire::End;
use podbay_wire::Environment;
use podbay_wire::Process;
use podbay_wire::n_bytes;

pub(super) fn render_environment(environment: &Environment) -> String {
    let mut text = String::new();
    for variable in &environment.variables {
        // A newline in a value must not look like another variable.
        let value = variable.value.as_ref().map_or_else(
            || "*** (redacted: it looks like a secret)".to_owned(),
            |value| value.replace('\n', "\\n"),
        );
        let _ = writeln!(text, "{}={value}", variable.name);
    }
    if text.is_empty() {
        "no such variable is set".to_owned()
    } else {
        text.trim_end().to_owned()
    }
}

pub(super) fn render_background(background: &Background) -> Rendered {
    let lines: Vec<String> = background.processes.iter().map(line).collect();
    if let Some(printed) = &background.printed {
        let printed = shown(printed.as_bytes()).text;
        let body = if printed.trim().is_empty() {
            "(no output)".to_owned()
        } else {
            printed
        };
        return Rendered {
            body,
            footer: format!("[{}]", lines.join("; ")),
            ok: true,
            keep: false,
            unkept: 0,
        };
    }
    let body = if lines.is_empty() {
        "no command was started in the background".to_owned()
    } else {
        lines.join("\n")
    };
    Rendered::said(Ok(body))
}

fn line(process: &Process) -> String {
    let seconds = process.duration_ms / 1000;
    let end = match process.end {
        End::Running { .. } => format!("runs for {seconds} s"),
        End::Exited { code } => format!("ended after {seconds} s with exit code {code}"),
        End::Signaled { signal } => format!("was ended after {seconds} s by signal {signal}"),
        End::Cancelled => format!("was stopped after {seconds} s"),
    };
    format!(
        "{} {end}, printed {}: {}",
        process.id,
        n_bytes(process.output_bytes),
        process.command.replace('\n', " ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Variable;

    #[test]
    fn a_value_cannot_imitate_another_variable_and_secrets_are_redacted() {
        let variable = |name: &str, value: Option<&str>| Variable {
            name: name.to_owned(),
            value: value.map(str::to_owned),
        };
        let environment = Environment {
            variables: vec![variable("A", Some("1\nB=2")), variable("API_KEY", None)],
        };
        assert_eq!(
            render_environment(&environment),
            "A=1\\nB=2\nAPI_KEY=*** (redacted: it looks like a secret)"
        );
        assert_eq!(
            render_environment(&Environment {
                variables: Vec::new()
            }),
            "no such variable is set"
        );
    }

    #[test]
    fn a_process_is_rendered_on_one_line() {
        let process = |end| Process {
            id: 7,
            command: "make\nserve".to_owned(),
            end,
            duration_ms: 2500,
            output_bytes: 1,
        };
        let listed = Background {
            processes: vec![
                process(End::Running { pid: 7 }),
                process(End::Exited { code: 3 }),
            ],
            printed: None,
            directory: None,
            ran: Vec::new(),
        };
        assert_eq!(
            render_background(&listed).body,
            "7 runs for 2 s, printed 1 byte: make serve\n7 ended after 2 s with exit code 3, printed 1 byte: make serve"
        );
        let read = render_background(&Background {
            processes: vec![process(End::Cancelled)],
            printed: Some("up\n".to_owned()),
            directory: None,
            ran: Vec::new(),
        });
        assert_eq!(
            (read.body.as_str(), read.footer.as_str()),
            (
                "up\n",
                "[7 was stopped after 2 s, printed 1 byte: make serve]"
            )
        );
    }
}
