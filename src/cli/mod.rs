//! The command line: arguments in, exit code out.
//!
//! Each command has a file of its own: it turns its arguments into settings, shows what `app`
//! reports, and returns the code that scripts depend on. Nothing is decided here about sandboxes,
//! models or permissions. Start with [`main`].

mod agents;
mod args;
mod attack;
mod brief;
mod bundle;
mod cache;
mod call;
mod chat;
mod commands;
mod completions;
mod config;
mod confirmed;
mod debug;
mod delivery;
mod doctor;
mod environment;
mod execution_report;
mod face;
mod failure;
mod findings;
mod first_start;
mod fish;
mod flags;
mod front;
mod held_events;
mod help;
mod history;
mod id_completions;
mod images;
mod init;
mod install;
mod jobs;
mod later;
mod log;
mod manual;
mod mcp;
mod memory;
mod models;
mod network;
mod number;
mod other_session;
mod piped_input;
mod plan;
mod presets;
mod prompts;
mod raw;
mod review;
mod review_screen;
mod run;
mod serve_model;
mod sessions;
mod settings;
mod setup;
mod sh;
mod signals;
mod skills;
mod stats;
mod turn_commands;
mod undo;
mod why;

use std::ffi::OsString;
use std::io;
use std::io::Write;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use futures::FutureExt;
use serde::Serialize;

use self::args::Arguments;
use self::args::Command;
use podbay_app as app;
use podbay_app::Report;
use podbay_app::exit_code;
use podbay_ui as ui;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    app::install_crypto();
    let arguments = match help::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(error) => return ExitCode::from(misused(&error)),
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            say(&format!(
                "error: cannot start: {}\n",
                app::not_watched(error)
            ));
            return ExitCode::from(exit_code::FAILED);
        }
    };
    // A panic becomes an exit code of its own: scripts must be able to tell a bug of ours from a
    // task that failed.
    let outcome = runtime.block_on(AssertUnwindSafe(dispatch(arguments)).catch_unwind());
    // Threads that wait for the keyboard or a name must not hold up the end.
    runtime.shutdown_timeout(Duration::from_millis(100));
    let code = outcome
        .unwrap_or(Err(app::Error::Bug))
        .unwrap_or_else(|error| {
            report(&error);
            failure::show(
                &error,
                &mut io::stderr(),
                front::err_paint(&ui::Options::default()),
            );
            error.exit_code()
        });
    ExitCode::from(signals::decided(code))
}

async fn dispatch(arguments: Arguments) -> Result<u8, app::Error> {
    match arguments.command {
        None => chat::chat(arguments.chat).await,
        Some(Command::Chat(flags)) => chat::chat(flags).await,
        Some(Command::Quickstart(args)) => Box::pin(run::quickstart(args)).await,
        Some(Command::Run(args)) => run::run(args).await,
        Some(Command::Call(args)) => Box::pin(call::call(args)).await,
        Some(Command::Sh(args)) => Ok(shell_code(Box::pin(sh::sh(args)).await)),
        Some(Command::Jobs(command)) => jobs::jobs(command).await,
        Some(Command::Install(args)) => Box::pin(install::install(args)).await,
        Some(Command::Cache(command)) => Box::pin(cache::cache(command)).await,
        Some(Command::Up(args)) => Box::pin(environment::up(args)).await,
        Some(Command::Down(flags)) => environment::down(flags).await,
        Some(Command::Status(args)) => Box::pin(environment::status(args)).await,
        Some(Command::Logs(args)) if args.network => {
            why::network_log(args.place.path.as_deref(), args.session.as_deref())
        }
        Some(Command::Logs(args)) => environment::logs(args).await,
        Some(Command::Stats(args)) => stats::stats(&args),
        Some(Command::Why(args)) => why::why(&args),
        Some(Command::Network(command)) => {
            Ok(shell_code(Box::pin(network::network(command)).await))
        }
        Some(Command::Images(command)) => images::images(command).await,
        Some(Command::Mcp(command)) => mcp::mcp(command).await,
        Some(Command::Memory(command)) => memory::memory(&command),
        Some(Command::Agents(command)) => agents::agents(&command),
        Some(Command::Skills(command)) => skills::skills(&command),
        Some(Command::Models(command)) => Box::pin(models::models(command)).await,
        Some(Command::Sessions(command)) => sessions::sessions(command).await,
        Some(Command::Doctor(args)) => Box::pin(doctor::doctor(args)).await,
        Some(Command::Init(args)) => init::init(&args),
        Some(Command::Config(args)) => config::config(args).await,
        Some(Command::Gc(arguments)) => images::gc(arguments).await,
        Some(Command::Review(args)) => review::review_args(args).await,
        Some(Command::Undo(args)) => undo::undo(args).await,
        Some(Command::Debug(command)) => debug::debug(command),
        Some(Command::Completions(args)) => completions::completions(&args),
        Some(Command::Complete(args)) => Box::pin(completions::complete(&args)).await,
        Some(Command::Man(args)) => completions::man(&args),
        Some(Command::ServeModel(args)) => serve_model::serve_model(args).await,
        Some(Command::Other(words)) => {
            Box::pin(other(words, &std::env::args_os().collect::<Vec<_>>())).await
        }
    }
}

/// All codes below are the command's own, so that every failure of ours has one code of its own.
fn shell_code(outcome: Result<u8, app::Error>) -> u8 {
    outcome.unwrap_or_else(|error| {
        failure::show(
            &error,
            &mut io::stderr(),
            front::err_paint(&ui::Options::default()),
        );
        exit_code::SHELL_FAILED
    })
}

/// Takes a word that is no command: a folder opens a chat there, anything else was meant otherwise.
/// `words` are that one and what follows, the end of the whole `line`.
async fn other(words: Vec<OsString>, line: &[OsString]) -> Result<u8, app::Error> {
    let first = words.first().cloned().unwrap_or_default();
    if let Some(error) = first.to_str().and_then(later::command) {
        return Err(error);
    }
    let folder = PathBuf::from(&first);
    if folder.is_dir() {
        return match help::parse(chat_in(&words, line)) {
            Ok(Arguments {
                command: Some(Command::Chat(flags)),
                ..
            }) => chat::chat(flags).await,
            Ok(_) => Ok(exit_code::USAGE),
            Err(error) => Ok(misused(&error)),
        };
    }
    let word = ui::text::line(&first.to_string_lossy());
    let all = help::command();
    if all.find_subcommand(&first).is_some() {
        let (command, found) = help::named(&all, &words);
        let hint = if help::takes(found, 'C') {
            format!("write it like this: {command} -C DIR …; `{command} --help` lists them")
        } else {
            format!("`{command}` takes no -C; `{command} --help` lists the flags that it takes")
        };
        return Err(app::Error::usage(
            format!("the flags in front of `{word}` belong behind it"),
            hint,
        ));
    }
    if let Some((prompt, line)) = prompt_in(&words, line) {
        return match help::parse(line) {
            Ok(Arguments {
                command: Some(Command::Chat(flags)),
                ..
            }) => Box::pin(chat::begin_with(flags, Some(prompt))).await,
            Ok(_) => Ok(exit_code::USAGE),
            Err(error) => Ok(misused(&error)),
        };
    }
    Err(app::Error::usage(
        format!("`{word}` is neither a command nor a folder"),
        format!(
            "a task is given like this: podbay run \"{word} …\"; `podbay --help` lists the commands"
        ),
    ))
}

/// Returns the line that opens a chat in the folder that `words` begin with. Flags count in front
/// of it as they do behind it.
fn chat_in(words: &[OsString], line: &[OsString]) -> Vec<OsString> {
    let n_in_front = line.len().saturating_sub(words.len() + 1);
    let in_front = line
        .iter()
        .skip(1)
        .take(n_in_front)
        .filter(|word| *word != "--");
    let (folder, behind) = words.split_at(1.min(words.len()));
    let chat: [OsString; 3] = ["podbay".into(), "chat".into(), "-C".into()];
    chat.iter()
        .chain(folder)
        .chain(in_front)
        .chain(behind)
        .cloned()
        .collect()
}

/// Returns words as the first message of a chat, and the line that opens it. One word alone is more
/// likely a command that is misspelt.
fn prompt_in(words: &[OsString], line: &[OsString]) -> Option<(String, Vec<OsString>)> {
    let is_flag = |word: &OsString| word.to_string_lossy().starts_with('-');
    let n = words.iter().take_while(|word| !is_flag(word)).count();
    let said: Vec<&str> = words[..n].iter().filter_map(|word| word.to_str()).collect();
    let prompt = said.join(" ");
    if said.len() < n || !prompt.trim().contains(char::is_whitespace) {
        return None;
    }
    let n_in_front = line.len().saturating_sub(words.len() + 1);
    let in_front = line.iter().skip(1).take(n_in_front);
    let chat: [OsString; 2] = ["podbay".into(), "chat".into()];
    let line = chat.iter().chain(in_front.filter(|word| *word != "--"));
    Some((prompt, line.chain(&words[n..]).cloned().collect()))
}

/// Shows help, the version, or what is wrong with the command line. A script that asked for JSON
/// gets its object here too.
fn misused(error: &clap::Error) -> u8 {
    if !error.use_stderr() {
        // Colours are the parser's business, so it writes by itself; what the stream keeps back
        // must not be lost at the end.
        return match error.print().and_then(|()| io::stdout().flush()) {
            Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
                let error = delivery::undelivered(source);
                failure::show(
                    &error,
                    &mut io::stderr(),
                    front::err_paint(&ui::Options::default()),
                );
                error.exit_code()
            }
            _ => exit_code::DONE,
        };
    }
    let (all, words) = (
        help::command(),
        std::env::args_os().skip(1).collect::<Vec<_>>(),
    );
    report(&app::Error::usage(
        first_words(error),
        format!("see `{} --help`", help::named(&all, &words).0),
    ));
    let _ = error.print();
    if std::env::args_os().nth(1).is_some_and(|word| word == "sh") {
        exit_code::SHELL_FAILED
    } else {
        exit_code::USAGE
    }
}

/// Prints what a script gets that has asked for JSON, where a command failed before it had a
/// result: the report of a run, and of every command with `--json` its error.
fn report(error: &app::Error) {
    // Words that are no text are part of what is wrong; they must not end this too. Those of a
    // command in the sandbox are not ours.
    let words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let wants = |format: &str| {
        words.windows(2).any(|pair| pair == ["--output", format])
            || words.contains(&format!("--output={format}"))
    };
    let (all, line) = (
        help::command(),
        std::env::args_os().skip(1).collect::<Vec<_>>(),
    );
    // Those that have both flags have a result of their own form, and no run's.
    let is_list = help::named(&all, &line)
        .1
        .get_arguments()
        .any(|argument| argument.get_id() == "json");
    let mut report = Report::failed(error, None, 0);
    report.exit_code = signals::decided(report.exit_code);
    // Where even that cannot be written, the error stream and the exit code still say it.
    let _ = if !is_list && wants("json") {
        ui::json::result(&mut io::stdout(), &report)
    } else if !is_list && wants("jsonl") {
        ui::json::result_line(&mut io::stdout(), &report)
    } else if wants("json") || words.iter().any(|word| word == "--json") {
        ui::json::result(
            &mut io::stdout(),
            &NoResult {
                status: "error",
                exit_code: report.exit_code,
                error: error.report(),
            },
        )
    } else {
        Ok(())
    };
}

/// What a script gets where there is no result.
#[derive(Serialize)]
struct NoResult {
    status: &'static str,
    exit_code: u8,
    error: app::ErrorReport,
}

/// Returns what is wrong without the usage that follows it.
fn first_words(error: &clap::Error) -> String {
    let text = error.render().to_string();
    let words: Vec<&str> = text
        .lines()
        .take_while(|line| !line.trim().is_empty())
        .map(str::trim)
        .collect();
    words.join(" ").trim_start_matches("error: ").to_owned()
}

/// Writes to the error stream. Where even that is gone there is nobody left to tell.
fn say(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads the line as the program does, and what becomes of it.
    fn chat(line: &[&str]) -> Result<args::SessionFlags, clap::Error> {
        let line: Vec<OsString> = line.iter().map(OsString::from).collect();
        let Some(Command::Other(words)) = help::parse(line.clone())?.command else {
            panic!("{line:?} names a command")
        };
        match help::parse(chat_in(&words, &line))?.command {
            Some(Command::Chat(flags)) => Ok(flags),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_form_of_output_that_call_does_not_have_is_no_word_of_its_own() {
        for flag in [&["--output", "json"][..], &["--output=json"]] {
            let line = ["podbay", "call", "read_file", "{}"]
                .iter()
                .chain(flag)
                .map(OsString::from);
            let error = help::parse(line)
                .expect_err("there is no such flag")
                .to_string();
            assert!(
                error.contains("--output")
                    && error.contains("what a model would read")
                    && !error.contains("-- --"),
                "{error}"
            );
        }
    }

    #[test]
    fn several_words_are_the_first_message_of_a_chat_and_one_is_not() {
        let words = |line: &[&str]| line.iter().map(OsString::from).collect::<Vec<_>>();
        let prompt = |line: &[&str], n: usize| {
            let line = words(line);
            prompt_in(&line[n..], &line)
        };
        let chat = words(&["podbay", "chat", "--strict", "--mode", "auto"]);
        for line in [
            &["podbay", "--strict", "fix the test", "--mode", "auto"][..],
            &["podbay", "--strict", "fix", "the", "test", "--mode", "auto"],
        ] {
            assert_eq!(
                prompt(line, 2),
                Some(("fix the test".to_owned(), chat.clone()))
            );
        }
        assert_eq!(prompt(&["podbay", "quickstat"], 1), None);
        assert_eq!(prompt(&["podbay", " quickstat "], 1), None);
    }

    #[test]
    fn flags_count_in_front_of_a_folder_as_they_do_behind_it() {
        let front = [
            "podbay",
            "--endpoint",
            "http://e/v1",
            "--mode",
            "deny",
            "--strict",
            "folder",
        ];
        let behind = [
            "podbay",
            "folder",
            "--endpoint",
            "http://e/v1",
            "--mode",
            "deny",
            "--strict",
        ];
        let both = [
            "podbay",
            "--endpoint=http://e/v1",
            "--strict",
            "folder",
            "--mode",
            "deny",
        ];
        let all = format!("{:?}", chat(&behind).expect("reads"));
        assert!(
            all.contains("http://e/v1") && all.contains("Deny") && all.contains("folder"),
            "{all}"
        );
        for line in [&front[..], &both] {
            assert_eq!(format!("{:?}", chat(line).expect("reads")), all, "{line:?}");
        }
        let twice = chat(&["podbay", "--mode", "deny", "folder", "--mode", "auto"])
            .expect_err("which one?");
        assert_eq!(
            twice.kind(),
            clap::error::ErrorKind::ArgumentConflict,
            "{twice}"
        );
    }
}
