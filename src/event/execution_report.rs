//! What a session did, as one value that is made of its events and that every way to show it is
//! made of.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::collections::HashMap;

use jiff::Timestamp;
use serde::Deserialize;
use serde::Serialize;
use serde_json::Value;

use super::CallStatus;
use super::ChangedLines;
use super::Decision;
use super::Event;
use super::Kind;
use super::PathChanged;
use super::RunStatus;
use super::SessionId;
use super::ToolCall;
use super::Usage;
use super::program_words;
use podbay_wire::Memo;
use podbay_wire::Program;
use podbay_wire::keep::NamedList;

/// Longest string of a call's arguments.
const MOST_CHARS: usize = 200;
/// Longest arguments of a call.
const MOST_ARGUMENTS: usize = 2000;
/// Entries of a list in a call's arguments.
const MOST_ITEMS: usize = 20;

/// The first words of commands that run tests, a line each.
const TEST_COMMANDS: &str = include_str!("test_commands.txt");

/// What a session did. Every list names the first 200 of its entries and counts all.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutionReport {
    pub session: Option<SessionId>,
    /// How it ended; `None`: it has not.
    pub status: Option<RunStatus>,
    pub model: Option<String>,
    pub image: Option<String>,
    /// The calls of tools, in their order.
    pub actions: NamedList<ActionDone>,
    pub modified: NamedList<FileTouched>,
    pub created: NamedList<FileTouched>,
    pub deleted: NamedList<FileTouched>,
    pub read: NamedList<FileTouched>,
    /// The programs that calls started, but for those that run tests.
    pub commands: NamedList<CommandRun>,
    pub tests: NamedList<CommandRun>,
    /// Calls that were denied, and hosts that were.
    pub denied: NamedList<DeniedAction>,
    /// Files that may run on the user's machine later, each with the reason.
    pub may_run: NamedList<String>,
    /// Whether some of the changes are pending review.
    pub is_pending: bool,
    /// New files that hold tests, by their names.
    pub n_tests_added: u64,
    pub requests: u64,
    pub usage: Usage,
    pub duration_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionDone {
    pub tool: String,
    /// As the model wrote them, with long strings cut.
    pub arguments: String,
    /// `None`: it has not ended.
    pub status: Option<CallStatus>,
    pub duration_ms: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTouched {
    pub path: String,
    /// Where they were counted.
    pub lines: Option<ChangedLines>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRun {
    pub command: String,
    /// As the sandbox reports it, where it knows.
    pub exit_code: Option<i32>,
    pub count: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeniedAction {
    /// `None`: a host that a program wanted to reach.
    pub tool: Option<String>,
    pub arguments: String,
    pub reason: String,
}

impl ExecutionReport {
    pub fn of<'a>(events: impl IntoIterator<Item = &'a Event>) -> Self {
        let mut made = Making::default();
        for event in events {
            made.take(event);
        }
        made.end()
    }

    /// Returns the report in one line: `Modified 3 files, added 1 test`. A file that is new and
    /// holds tests counts as a test, every other one that changed as modified.
    pub fn line(&self) -> String {
        let n_changed = self.modified.n + self.created.n + self.deleted.n;
        let counted = |n: u64, what: &str| match n {
            1 => format!("1 {what}"),
            n => format!("{n} {what}s"),
        };
        format!(
            "Modified {}, added {}",
            counted(n_changed.saturating_sub(self.n_tests_added), "file"),
            counted(self.n_tests_added, "test")
        )
    }
}

/// How a path of the project is now, against what it was before the session.
struct Change {
    what: PathChanged,
    lines: Option<ChangedLines>,
}

/// Part of a session that ran in one process.
#[derive(Default)]
struct Sitting {
    begun: Option<Timestamp>,
    requests: u64,
    usage: Usage,
}

#[derive(Default)]
struct Making<'a> {
    report: ExecutionReport,
    actions: Vec<ActionDone>,
    /// Where the call of an id stands among the actions, until it has ended.
    open: HashMap<&'a str, usize>,
    asked: HashMap<&'a str, &'a ToolCall>,
    changes: BTreeMap<String, Change>,
    read: BTreeSet<String>,
    commands: Vec<CommandRun>,
    /// Where a command that ended with this code stands among them.
    known_commands: HashMap<(String, Option<i32>), usize>,
    /// Starts of programs that the sandbox counted and did not name.
    n_more_commands: u64,
    may_run: BTreeSet<String>,
    sitting: Sitting,
    last_at: Option<Timestamp>,
}

impl<'a> Making<'a> {
    fn take(&mut self, event: &'a Event) {
        if matches!(event.kind, Kind::SessionResumed { .. }) {
            self.end_sitting();
            self.report.status = None;
        }
        self.sitting.begun.get_or_insert(event.at);
        self.last_at = Some(event.at);
        match &event.kind {
            Kind::SessionStarted { session, .. } => self.report.session = Some(session.clone()),
            Kind::ModelReady { model, .. } => self.report.model = Some(model.clone()),
            Kind::SandboxStarted { image, .. } => self.report.image = Some(image.clone()),
            Kind::AssistantMessage { calls, usage, .. } => {
                self.asked
                    .extend(calls.iter().map(|call| (call.id.as_str(), call)));
                self.sitting.requests += 1;
                self.sitting.usage += *usage;
            }
            Kind::CallStarted {
                call,
                name,
                arguments,
            } => {
                self.open.insert(call, self.actions.len());
                self.actions.push(ActionDone {
                    tool: name.clone(),
                    arguments: shortened(arguments),
                    status: None,
                    duration_ms: 0,
                });
            }
            Kind::CallRan {
                programs, n_more, ..
            } => self.ran(programs, *n_more),
            Kind::CallFinished {
                call,
                name,
                status,
                duration_ms,
                seen,
                ..
            } => {
                let at = self.open.remove(call.as_str()).unwrap_or_else(|| {
                    self.actions.push(ActionDone {
                        tool: name.clone(),
                        arguments: self.arguments_of(call),
                        status: None,
                        duration_ms: 0,
                    });
                    self.actions.len() - 1
                });
                self.actions[at].status = Some(*status);
                self.actions[at].duration_ms = *duration_ms;
                self.read.extend(seen.iter().filter_map(|memo| match memo {
                    Memo::Read { path, .. } => Some(path.to_text()),
                    _ => None,
                }));
            }
            Kind::CallDecided {
                call,
                name,
                decision: Decision::Deny,
                reason,
            } => {
                let arguments = self.arguments_of(call);
                self.report.denied.add(DeniedAction {
                    tool: Some(name.clone()),
                    arguments,
                    reason: reason.clone(),
                });
            }
            Kind::NetworkAttempted(attempt) if !attempt.allowed => {
                self.report.denied.add(DeniedAction {
                    tool: None,
                    arguments: attempt.place(),
                    reason: attempt.because.clone(),
                });
            }
            Kind::ProjectChanged(changes) => {
                self.report.is_pending = changes.pending;
                self.may_run.extend(changes.may_run.iter().cloned());
                for path in changes.paths.iter().filter(|path| !path.is_folder) {
                    if let Some(from) = &path.from {
                        self.changed(from, PathChanged::Deleted, None);
                    }
                    self.changed(&path.path, path.change, path.lines);
                }
            }
            Kind::RunFinished {
                status,
                turns,
                usage,
                duration_ms,
                ..
            } => {
                self.report.status = Some(*status);
                self.report.requests = self.report.requests.saturating_add(u64::from(*turns));
                self.report.usage += *usage;
                self.report.duration_ms = self.report.duration_ms.saturating_add(*duration_ms);
                self.sitting = Sitting::default();
            }
            _ => {}
        }
    }

    fn arguments_of(&self, call: &str) -> String {
        self.asked
            .get(call)
            .map(|call| shortened(&call.arguments))
            .unwrap_or_default()
    }

    fn ran(&mut self, programs: &[Program], n_more: u64) {
        for program in programs {
            let command = cut(&program_words(program), MOST_CHARS);
            let key = (command.clone(), program.exit_code);
            let at = *self.known_commands.entry(key).or_insert_with(|| {
                self.commands.push(CommandRun {
                    command,
                    exit_code: program.exit_code,
                    count: 0,
                });
                self.commands.len() - 1
            });
            let count = &mut self.commands[at].count;
            *count = count.saturating_add(program.count);
        }
        self.n_more_commands = self.n_more_commands.saturating_add(n_more);
    }

    /// Merges a change into the earlier ones of the path.
    fn changed(&mut self, path: &str, what: PathChanged, lines: Option<ChangedLines>) {
        let what = match what {
            PathChanged::Renamed => PathChanged::Created,
            what => what,
        };
        let Some(known) = self.changes.get_mut(path) else {
            self.changes.insert(path.to_owned(), Change { what, lines });
            return;
        };
        known.what = match (known.what, what) {
            (PathChanged::Created, PathChanged::Deleted) => {
                self.changes.remove(path);
                return;
            }
            (PathChanged::Created, _) => PathChanged::Created,
            (_, PathChanged::Deleted) => PathChanged::Deleted,
            _ => PathChanged::Modified,
        };
        match (&mut known.lines, lines) {
            (Some(sum), Some(lines)) => *sum += lines,
            (known, lines) => *known = lines,
        }
    }

    /// Counts what a process did that has not said how it ended.
    fn end_sitting(&mut self) {
        let Sitting {
            begun,
            requests,
            usage,
        } = std::mem::take(&mut self.sitting);
        if let (Some(begun), Some(last)) = (begun, self.last_at) {
            let ms = last.duration_since(begun).as_millis();
            let ms = u64::try_from(ms).unwrap_or_default();
            self.report.duration_ms = self.report.duration_ms.saturating_add(ms);
        }
        self.report.requests += requests;
        self.report.usage += usage;
    }

    fn end(mut self) -> ExecutionReport {
        self.end_sitting();
        let mut report = self.report;
        report.actions = self.actions.into_iter().collect();
        for (path, change) in self.changes {
            let list = match change.what {
                PathChanged::Created | PathChanged::Renamed => {
                    report.n_tests_added += u64::from(holds_tests(&path));
                    &mut report.created
                }
                PathChanged::Modified => &mut report.modified,
                PathChanged::Deleted => &mut report.deleted,
            };
            let lines = change.lines;
            list.add(FileTouched { path, lines });
        }
        report.read = self
            .read
            .into_iter()
            .map(|path| FileTouched { path, lines: None })
            .collect();
        for run in self.commands {
            if runs_tests(&run.command) {
                report.tests.add(run);
            } else {
                report.commands.add(run);
            }
        }
        report.commands.n = report.commands.n.saturating_add(self.n_more_commands);
        report.may_run = self.may_run.into_iter().collect();
        report
    }
}

/// Returns arguments in which no string is long. What is no JSON is cut.
fn shortened(arguments: &str) -> String {
    fn shorten(value: &mut Value) {
        match value {
            Value::String(text) => *text = cut(text, MOST_CHARS),
            Value::Array(items) => {
                items.truncate(MOST_ITEMS);
                items.iter_mut().for_each(shorten);
            }
            Value::Object(fields) => fields.values_mut().for_each(shorten),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    if arguments.len() <= MOST_CHARS {
        return arguments.to_owned();
    }
    let shorter = serde_json::from_str(arguments).map(|mut value: Value| {
        shorten(&mut value);
        value.to_string()
    });
    cut(shorter.as_deref().unwrap_or(arguments), MOST_ARGUMENTS)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns whether a command line runs tests, by the list of those that do; it only advises.
fn runs_tests(command: &str) -> bool {
    let words: Vec<&str> = command
        .split_whitespace()
        .take(6)
        .map(|word| word.rsplit('/').next().unwrap_or(word))
        .collect();
    // A script runs as an argument of its interpreter.
    let begins = words.iter().take(2).enumerate().map(|(at, _)| &words[at..]);
    let known = || {
        TEST_COMMANDS
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty())
    };
    begins.into_iter().any(|begin| {
        known().any(|line| {
            line.split(' ')
                .enumerate()
                .all(|(at, word)| begin.get(at).is_some_and(|has| is_program(has, word)))
        })
    })
}

/// Returns whether that is the program, whatever its version: `python3.12` is `python`.
fn is_program(word: &str, program: &str) -> bool {
    word == program
        || word.strip_prefix(program).is_some_and(|version| {
            !version.is_empty() && version.chars().all(|c| c.is_ascii_digit() || c == '.')
        })
}

/// Returns whether a file holds tests, by its name or its folder's: one of their words is `test`,
/// `tests` or `spec`.
fn holds_tests(path: &str) -> bool {
    let mut word = String::new();
    let mut is_low = false;
    let mut is_test = false;
    for c in path.chars().chain([' ']) {
        // A new word begins at a capital behind a small letter, too.
        if !c.is_alphanumeric() || c.is_uppercase() && is_low {
            is_test |= matches!(word.as_str(), "test" | "tests" | "spec" | "specs");
            word.clear();
        }
        is_low = c.is_lowercase();
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    is_test
}

#[cfg(test)]
mod tests {
    use super::super::ChangedPath;
    use super::super::ProjectChanges;
    use super::*;

    fn at(second: u8, kind: Kind) -> Event {
        Event {
            at: format!("2026-11-21T10:00:{second:02}Z")
                .parse()
                .expect("a time"),
            kind,
        }
    }

    fn changed(paths: &[(&str, PathChanged)]) -> Kind {
        Kind::ProjectChanged(ProjectChanges {
            n: paths.len() as u64,
            paths: paths
                .iter()
                .map(|(path, change)| ChangedPath {
                    path: (*path).to_owned(),
                    change: *change,
                    from: None,
                    is_folder: false,
                    lines: Some(ChangedLines {
                        added: 2,
                        removed: 1,
                    }),
                })
                .collect(),
            ..ProjectChanges::default()
        })
    }

    fn names(list: &NamedList<FileTouched>) -> Vec<&str> {
        list.first.iter().map(|file| file.path.as_str()).collect()
    }

    #[test]
    fn changes_of_several_turns_are_told_as_what_they_come_to() {
        use PathChanged::Created;
        use PathChanged::Deleted;
        use PathChanged::Modified;
        let events = [
            at(
                0,
                changed(&[("made", Created), ("gone", Created), ("old", Modified)]),
            ),
            at(
                1,
                changed(&[("made", Modified), ("gone", Deleted), ("old", Deleted)]),
            ),
            at(
                2,
                changed(&[("old", Created), ("tests/test_a.py", Created)]),
            ),
        ];
        let report = ExecutionReport::of(&events);
        assert_eq!(names(&report.created), ["made", "tests/test_a.py"]);
        assert_eq!(names(&report.modified), ["old"]);
        assert!(report.deleted.is_empty());
        assert_eq!(
            report.created.first[0].lines,
            Some(ChangedLines {
                added: 4,
                removed: 2
            })
        );
        assert_eq!(report.line(), "Modified 2 files, added 1 test");
    }

    #[test]
    fn time_and_tokens_count_also_where_a_session_was_killed_or_is_not_over() {
        let usage = Usage {
            prompt: 10,
            cached: 5,
            completion: 2,
            cost_usd: None,
        };
        let answer = || Kind::AssistantMessage {
            text: String::new(),
            thinking: String::new(),
            calls: Vec::new(),
            raw: None,
            usage,
            interrupted: false,
            cut: false,
            duration_ms: 1,
        };
        let finished = Kind::RunFinished {
            status: RunStatus::Completed,
            exit_code: 0,
            response: String::new(),
            turns: 3,
            tool_calls: 0,
            usage,
            limit: None,
            error: None,
            duration_ms: 7000,
        };
        let resumed = || Kind::SessionResumed {
            podbay: String::new(),
            mode: String::new(),
            task: None,
        };
        let events = [
            at(0, answer()),
            at(1, finished),
            // Killed.
            at(2, resumed()),
            at(4, answer()),
            // Not over.
            at(10, resumed()),
            at(11, answer()),
        ];
        let report = ExecutionReport::of(&events);
        assert_eq!((report.requests, report.duration_ms), (5, 10_000));
        assert_eq!((report.usage.prompt, report.status), (30, None));
    }

    #[test]
    fn commands_are_merged_and_those_that_run_tests_stand_apart() {
        let program = |argv: &[&str], exit_code| Program {
            argv: argv.iter().map(|word| (*word).into()).collect(),
            directory: "/workspace".into(),
            count: 1,
            exit_code,
            truncated: false,
        };
        let programs = vec![
            program(&["ls", "-l"], Some(0)),
            program(&["/usr/bin/python3.12", "-m", "pytest", "-q"], Some(1)),
            program(&["ls", "-l"], Some(0)),
        ];
        let report = ExecutionReport::of(&[at(
            0,
            Kind::CallRan {
                call: "c1".into(),
                programs,
                n_more: 3,
                hook: None,
                background: None,
            },
        )]);
        assert_eq!((report.commands.n, report.commands.first.len()), (4, 1));
        assert_eq!(report.commands.first[0].count, 2);
        assert_eq!(report.tests.first[0].exit_code, Some(1));
        for (command, is_test) in [
            ("cargo test -q", true),
            ("bash /usr/local/bin/pytest", true),
            ("node /usr/bin/npm test", true),
            ("grep test src", false),
            ("test -f x", false),
            ("pytester", false),
            ("cargo build", false),
        ] {
            assert_eq!(runs_tests(command), is_test, "{command}");
        }
    }

    #[test]
    fn a_file_of_tests_is_known_by_a_word_of_its_name() {
        for (path, is_test) in [
            ("tests/a.py", true),
            ("src/app_test.go", true),
            ("AppTest.java", true),
            ("a.spec.ts", true),
            ("src/latest.rs", false),
            ("contest.py", false),
            ("testing.md", false),
        ] {
            assert_eq!(holds_tests(path), is_test, "{path}");
        }
    }

    #[test]
    fn arguments_of_a_report_are_short_and_still_json() {
        let long = format!(r#"{{"path":"a","content":"{}"}}"#, "x".repeat(100_000));
        let short = shortened(&long);
        let value: Value = serde_json::from_str(&short).expect("still JSON");
        assert_eq!(value["path"], "a");
        assert!(short.len() < 300, "{short}");
        assert!(shortened(&"y".repeat(100_000)).len() <= MOST_ARGUMENTS + 3);
    }
}
