//! The execution report for people: lines of parts, each of a role, which are text with or without
//! colour, spans of the screen, or Markdown.

use podbay_event::ActionDone;
use podbay_event::CommandRun;
use podbay_event::DeniedAction;
use podbay_event::ExecutionReport;
use podbay_event::FileTouched;
use podbay_event::NamedList;

use super::Paint;
use super::call;
use super::run_summary::run_word;
use super::text;

/// Longest piece of a line that is not ours.
const MOST_CHARS: usize = 160;

/// What a part of a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The first or the last line.
    Delimiter,
    Heading,
    /// A file of the project.
    Path,
    /// A tool.
    Function,
    /// A command, or the words of a call.
    Code,
    Plain,
    /// All of it in one line.
    Line,
}

pub(super) type Part = (Role, String);

/// Returns a report as text: `<<path>>` and `<<tool()>>` refer to files and tools.
pub fn report_text(report: &ExecutionReport, paint: Paint) -> String {
    let mut out = String::new();
    for line in lines(report) {
        for (role, words) in &line {
            let words = shown(*role, words);
            out.push_str(&match role {
                Role::Delimiter => paint.delimiter(&words),
                Role::Heading => paint.heading(&words),
                Role::Path => paint.path(&words),
                Role::Function => paint.warn(&words),
                Role::Code | Role::Plain | Role::Line => words,
            });
        }
        out.push('\n');
    }
    out
}

/// Returns a report as Markdown.
pub fn report_markdown(report: &ExecutionReport) -> String {
    let title = report.session.as_ref().map_or_else(
        || "# Execution report".to_owned(),
        |session| format!("# Execution report of session {session}"),
    );
    let mut out = title + "\n";
    for line in lines(report) {
        let words: String = line
            .iter()
            .map(|(role, words)| match role {
                Role::Delimiter => String::new(),
                Role::Heading => format!("\n## {}\n", literal(words)),
                Role::Path | Role::Code => format!("`{}`", words.replace('`', "'")),
                Role::Function => format!("`{}()`", words.replace('`', "'")),
                Role::Plain if words == "- " => words.clone(),
                Role::Plain => literal(words),
                Role::Line => format!("\n{words}"),
            })
            .collect();
        if !words.is_empty() {
            out.push_str(&words);
            out.push('\n');
        }
    }
    out
}

/// Returns a part as it is read, without its colour.
pub(super) fn shown(role: Role, words: &str) -> String {
    match role {
        Role::Delimiter => format!("--- {words} ---"),
        Role::Heading => format!("## {words}"),
        Role::Path => format!("<<{words}>>"),
        Role::Function => format!("<<{words}()>>"),
        Role::Code | Role::Plain | Role::Line => words.to_owned(),
    }
}

/// Returns words in which nothing is Markdown.
fn literal(words: &str) -> String {
    let mut out = String::with_capacity(words.len());
    for c in words.chars() {
        if matches!(
            c,
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '#' | '|' | '~' | '&' | '!'
        ) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the report's lines, each of parts. Sections without an entry are left out.
pub(super) fn lines(report: &ExecutionReport) -> Vec<Vec<Part>> {
    let mut lines = vec![vec![(Role::Delimiter, "EXECUTION REPORT".to_owned())]];
    section(&mut lines, "Actions Performed", &report.actions, action);
    section(&mut lines, "Files Modified", &report.modified, file);
    section(&mut lines, "Files Created", &report.created, file);
    section(&mut lines, "Files Deleted", &report.deleted, file);
    section(&mut lines, "Files Read", &report.read, file);
    section(&mut lines, "Commands Executed", &report.commands, command);
    section(&mut lines, "Tests", &report.tests, command);
    section(&mut lines, "Denied", &report.denied, denied);
    section(
        &mut lines,
        "May Run On Your Machine",
        &report.may_run,
        |why| vec![(Role::Plain, bounded(why))],
    );
    lines.push(vec![(Role::Heading, "Technical Summary".to_owned())]);
    for words in summary(report) {
        lines.push(item(vec![(Role::Plain, words)]));
    }
    lines.push(vec![(Role::Line, report.line())]);
    lines.push(vec![(Role::Delimiter, "END REPORT".to_owned())]);
    lines
}

fn section<T>(
    lines: &mut Vec<Vec<Part>>,
    title: &str,
    list: &NamedList<T>,
    parts: impl Fn(&T) -> Vec<Part>,
) {
    if list.is_empty() {
        return;
    }
    lines.push(vec![(Role::Heading, title.to_owned())]);
    lines.extend(list.first.iter().map(|entry| item(parts(entry))));
    let n_more = list.n.saturating_sub(list.first.len() as u64);
    if n_more > 0 {
        lines.push(item(vec![(Role::Plain, format!("and {n_more} more"))]));
    }
}

fn item(mut parts: Vec<Part>) -> Vec<Part> {
    parts.insert(0, (Role::Plain, "- ".to_owned()));
    parts
}

fn action(action: &ActionDone) -> Vec<Part> {
    let ended = match action.status {
        None => "(not ended)".to_owned(),
        Some(status) => call::end(status, action.duration_ms, 0, Paint::NONE),
    };
    let mut parts = called(&action.tool, &action.arguments);
    parts.push((Role::Plain, format!(" {ended}")));
    parts
}

/// Returns the tool and what says most about the call.
fn called(tool: &str, arguments: &str) -> Vec<Part> {
    let mut parts = vec![(Role::Function, bounded(tool))];
    let head = call::head("", arguments);
    let mut words = bounded(head.lines().next().unwrap_or_default().trim());
    if head.lines().nth(1).is_some() {
        words.push_str(" …");
    }
    if !words.is_empty() {
        parts.extend([(Role::Plain, " ".to_owned()), (Role::Code, words)]);
    }
    parts
}

fn file(file: &FileTouched) -> Vec<Part> {
    let mut parts = vec![(Role::Path, bounded(&file.path))];
    if let Some(lines) = file.lines {
        parts.push((Role::Plain, format!(" {}", lines.words())));
    }
    parts
}

fn command(run: &CommandRun) -> Vec<Part> {
    let code = run.exit_code.map_or_else(
        || "exit code not known".to_owned(),
        |code| format!("exit code {code}"),
    );
    let times = if run.count > 1 {
        format!(", {} times", run.count)
    } else {
        String::new()
    };
    vec![
        (Role::Code, bounded(&run.command)),
        (Role::Plain, format!(" ({code}{times})")),
    ]
}

fn denied(denied: &DeniedAction) -> Vec<Part> {
    let mut parts = match &denied.tool {
        Some(tool) => called(tool, &denied.arguments),
        None => vec![
            (Role::Plain, "network ".to_owned()),
            (Role::Code, bounded(&denied.arguments)),
        ],
    };
    parts.push((Role::Plain, format!(": {}", bounded(&denied.reason))));
    parts
}

fn summary(report: &ExecutionReport) -> Vec<String> {
    let mut words = Vec::new();
    words.push(match report.status {
        None => "result: not over".to_owned(),
        Some(status) => format!("result: {}", run_word(status, None)),
    });
    if report.is_pending {
        words.push("changes: pending review".to_owned());
    }
    words.extend(
        report
            .model
            .iter()
            .map(|model| format!("model: {}", bounded(model))),
    );
    words.extend(
        report
            .image
            .iter()
            .map(|image| format!("sandbox: {}", bounded(image))),
    );
    let usage = &report.usage;
    words.push(format!(
        "requests: {}, calls: {}",
        report.requests, report.actions.n
    ));
    words.push(format!(
        "tokens: {} ({} cached) in, {} out",
        usage.prompt, usage.cached, usage.completion
    ));
    words.push(format!("time: {}", call::duration(report.duration_ms)));
    words.extend(usage.cost_usd.map(|cost| format!("cost: ${cost:.4}")));
    words
}

/// Returns foreign words in one line of a bounded length, with nothing that a terminal obeys.
fn bounded(words: &str) -> String {
    let line = text::line(words);
    match line.char_indices().nth(MOST_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use podbay_event::CallStatus;
    use podbay_event::ChangedLines;
    use podbay_event::RunStatus;
    use podbay_event::Usage;

    use super::*;

    const BAD: &str = "a\x1b]52;c;x\x07`b`\n# c <img> [l](javascript:x)";

    fn report(words: &str) -> ExecutionReport {
        let touched = |path: &str| FileTouched {
            path: path.to_owned(),
            lines: Some(ChangedLines {
                added: 3,
                removed: 1,
            }),
        };
        let run = |exit_code, count| CommandRun {
            command: words.to_owned(),
            exit_code,
            count,
        };
        ExecutionReport {
            session: None,
            status: Some(RunStatus::Completed),
            model: Some(words.to_owned()),
            image: Some(words.to_owned()),
            actions: NamedList {
                n: 205,
                first: vec![ActionDone {
                    tool: "edit_file".to_owned(),
                    arguments: serde_json::json!({"path": words}).to_string(),
                    status: Some(CallStatus::Ok),
                    duration_ms: 12,
                }],
            },
            modified: std::iter::once(touched(words)).collect(),
            created: std::iter::once(touched("tests/new.py")).collect(),
            commands: [run(Some(0), 2), run(None, 1)].into_iter().collect(),
            tests: std::iter::once(run(Some(1), 1)).collect(),
            denied: [Some("bash".to_owned()), None]
                .map(|tool| DeniedAction {
                    tool,
                    arguments: words.to_owned(),
                    reason: words.to_owned(),
                })
                .into_iter()
                .collect(),
            may_run: std::iter::once(format!("{words}: make runs it")).collect(),
            is_pending: true,
            n_tests_added: 1,
            requests: 4,
            usage: Usage {
                prompt: 100,
                cached: 90,
                completion: 10,
                cost_usd: Some(0.02),
            },
            duration_ms: 3100,
            ..ExecutionReport::default()
        }
    }

    #[test]
    fn a_report_is_text_with_references_and_without_empty_sections() {
        insta::assert_snapshot!(report_text(&report("src/a b.py"), Paint::NONE));
        insta::assert_snapshot!(report_text(&ExecutionReport::default(), Paint::NONE), @r"
        --- EXECUTION REPORT ---
        ## Technical Summary
        - result: not over
        - requests: 0, calls: 0
        - tokens: 0 (0 cached) in, 0 out
        - time: 0 ms
        Modified 0 files, added 0 tests
        --- END REPORT ---
        ");
    }

    #[test]
    fn references_delimiters_and_headings_have_their_colours() {
        let paint = Paint::new(crate::Color::Always, true, |_| None);
        let shown = report_text(&report("a.py"), paint);
        for there in [
            "\x1b[1m\x1b[32m--- EXECUTION REPORT ---",
            "\x1b[1m\x1b[2m## Files Modified",
            "\x1b[36m<<a.py>>",
            "\x1b[33m<<edit_file()>>",
        ] {
            assert!(shown.contains(there), "{there:?} in {shown:?}");
        }
    }

    #[test]
    fn a_report_as_markdown_holds_no_markup_of_others() {
        insta::assert_snapshot!(report_markdown(&report("src/a b.py")));
        let page = crate::html_page("Report", &report_markdown(&report(BAD)));
        assert!(!page.contains("<img"), "{page}");
        assert!(!page.contains("<a "), "{page}");
        assert_eq!(page.matches("<h1>").count(), 1, "{page}");
    }

    #[test]
    fn nothing_in_a_report_reaches_the_terminal_raw_or_on_a_line_of_its_own() {
        let n_lines = |words| report_text(&report(words), Paint::NONE).lines().count();
        assert_eq!(n_lines(BAD), n_lines("plain"));
        let shown = report_text(&report(&BAD.repeat(1000)), Paint::NONE);
        assert!(!shown.contains(['\x1b', '\x07']), "{shown:?}");
        assert!(shown.len() < 6000, "{}", shown.len());
    }
}
