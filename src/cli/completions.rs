use std::fs;
use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Arg;
use clap::Args;
use clap::Command;
use clap::ValueHint;
use clap::builder::Resettable;
use clap::builder::Str;
use clap_complete::Shell;
use clap_mangen::Man;

use super::args::ConfigFlags;
use super::delivery::deliver;
use super::fish;
use super::front::Nobody;
use super::help;
use super::id_completions;
use super::id_completions::IdKind;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_ui::text;

#[derive(Debug, Args)]
pub(super) struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Args)]
pub(super) struct ManArgs {
    /// Folder to write the pages into
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct CompleteArgs {
    /// Of what
    #[arg(value_enum, value_name = "KIND")]
    kind: IdKind,
}

/// Sessions that are offered.
const MOST_IDS: usize = 50;

pub(super) fn completions(args: &CompletionsArgs) -> Result<u8, app::Error> {
    let mut command = visible(&help::command(), "");
    let script = if args.shell == Shell::Fish {
        fish::script(&mut command) + &id_completions::fish(&command)
    } else {
        let mut script = Vec::new();
        clap_complete::generate(args.shell, &mut command, "podbay", &mut script);
        let script = String::from_utf8_lossy(&script).into_owned();
        match args.shell {
            Shell::Bash => id_completions::bash(&script, &command),
            Shell::Zsh => id_completions::zsh(&script),
            _ => script,
        }
    };
    deliver(&script)?;
    Ok(exit_code::DONE)
}

/// Prints the ids of one kind, each with a description behind a tab, for the scripts above. What
/// cannot be found out is left out: nobody reads an error while a word is completed.
pub(super) async fn complete(args: &CompleteArgs) -> Result<u8, app::Error> {
    let setup = Setup::in_project(&ConfigFlags::default(), None, Vec::new())?;
    let lines: Vec<(String, String)> = match args.kind {
        IdKind::Sessions => app::list_sessions(&setup.state, MOST_IDS)?
            .sessions
            .into_iter()
            .map(|session| (session.session.to_string(), session.title))
            .collect(),
        IdKind::Reviews => {
            let place = setup.place_without_key(None, app::Mode::Auto)?;
            let sink: podbay_event::Sink = Arc::new(|_| {});
            let front = app::Front {
                sink,
                asker: Arc::new(Nobody),
                interrupt: app::Interrupt::new(),
            };
            app::review_names(&place, &front)
                .await?
                .into_iter()
                .map(|name| (name, String::new()))
                .collect()
        }
        IdKind::Settings => podbay_config::settings::<podbay_config::Config>()
            .into_iter()
            .map(|setting| (setting.key, first_sentence(&setting.doc).to_owned()))
            .collect(),
        IdKind::Models => app::list_models(&setup.config, &setup.state)?
            .models
            .into_iter()
            .map(|model| (model.name, model.title))
            .collect(),
    };
    let lines: String = lines
        .iter()
        .map(|(id, words)| match words.as_str() {
            "" => format!("{}\n", text::line(id)),
            words => format!("{}\t{}\n", text::line(id), text::line(words)),
        })
        .collect();
    deliver(&lines)?;
    Ok(exit_code::DONE)
}

fn first_sentence(words: &str) -> &str {
    words.split_once(". ").map_or(words, |(first, _)| first)
}

/// Writes `podbay.1`, `podbay-run.1` and so on, and says where.
pub(super) fn man(args: &ManArgs) -> Result<u8, app::Error> {
    let failed = |source| app::Error::Io {
        doing: format!("write the manual pages into {}", args.folder.display()),
        source,
    };
    fs::create_dir_all(&args.folder).map_err(failed)?;
    let mut command = visible(&help::command(), "");
    command.build();
    let mut n_pages = 0;
    pages(&command, "", &args.folder, &mut n_pages).map_err(failed)?;
    deliver(&format!("{n_pages} pages in {}\n", args.folder.display()))?;
    Ok(exit_code::DONE)
}

fn pages(command: &Command, path: &str, folder: &Path, n_pages: &mut usize) -> io::Result<()> {
    let name = format!("podbay {path}").trim_end().replace(' ', "-");
    fs::write(
        folder.join(format!("{name}.1")),
        page(command, &name, path)?,
    )?;
    *n_pages += 1;
    for below in command
        .get_subcommands()
        .filter(|below| below.get_name() != "help")
    {
        let word = below.get_name();
        pages(
            below,
            &if path.is_empty() {
                word.to_owned()
            } else {
                format!("{path} {word}")
            },
            folder,
            n_pages,
        )?;
    }
    Ok(())
}

/// Returns one page as `man` reads it.
fn page(command: &Command, name: &str, path: &str) -> io::Result<Vec<u8>> {
    // A date would make every build another one.
    let man = Man::new(command.clone().display_name(name))
        .title(name.to_uppercase())
        .date("")
        .source(concat!("podbay ", env!("CARGO_PKG_VERSION")))
        .manual("Podbay");
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    man.render_options_section(&mut page)?;
    let Some(manual) = help::page(path) else {
        return Ok(page);
    };
    writeln!(page, ".SH EXAMPLES")?;
    for (wish, line) in manual.examples {
        writeln!(
            page,
            ".PP\n{}\n.PP\n.RS 4\n.nf\n{}\n.fi\n.RE",
            roff(wish),
            roff(line)
        )?;
    }
    if let Some(codes) = help::codes(manual) {
        writeln!(page, ".SH \"EXIT STATUS\"")?;
        for (code, meaning) in codes {
            writeln!(page, ".TP\n\\fB{}\\fR\n{}", roff(code), roff(meaning))?;
        }
    }
    if !path.is_empty() {
        writeln!(page, ".SH \"SEE ALSO\"\n\\fBpodbay\\fR(1)")?;
    }
    Ok(page)
}

/// Returns text that `man` shows as it is.
fn roff(text: &str) -> String {
    let text = text
        .replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga");
    if text.starts_with('.') {
        format!("\\&{text}")
    } else {
        text
    }
}

/// Returns the command line without what is hidden: no shell should offer what `--help` does not.
fn visible(command: &Command, path: &str) -> Command {
    let mut shown = Command::new(command.get_name().to_owned())
        .args(
            command
                .get_arguments()
                .filter(|argument| !argument.is_hide_set())
                .map(|argument| alone(argument, path)),
        )
        .subcommands(
            command
                .get_subcommands()
                .filter(|below| !below.is_hide_set())
                .map(|below| {
                    let path = format!("{path} {}", below.get_name());
                    visible(below, path.trim_start())
                }),
        );
    if let Some(about) = command.get_about() {
        shown = shown.about(about.clone());
    }
    if let Some(about) = command.get_long_about() {
        shown = shown.long_about(about.clone());
    }
    if let Some(version) = command.get_version() {
        shown = shown.version(version.to_owned());
    }
    shown
}

/// Returns what is shown of a flag, without its rules: those may name others that are hidden.
fn alone(argument: &Arg, path: &str) -> Arg {
    let mut shown = Arg::new(argument.get_id().clone())
        .action(argument.get_action().clone())
        .value_parser(argument.get_value_parser().clone())
        .value_hint(IdKind::of(path, argument).map_or_else(|| hint(argument), |kind| kind.mark().0))
        .required(argument.is_required_set())
        .last(argument.is_last_set())
        .index(argument.get_index())
        .short(argument.get_short())
        .long(Resettable::from(
            argument.get_long().map(|name| Str::from(name.to_owned())),
        ))
        .help(Resettable::from(argument.get_help().cloned()))
        .long_help(Resettable::from(argument.get_long_help().cloned()))
        .help_heading(Resettable::from(
            argument
                .get_help_heading()
                .map(|name| Str::from(name.to_owned())),
        ))
        .default_values(argument.get_default_values().iter().cloned());
    if let Some(names) = argument.get_value_names() {
        shown = shown.value_names(names.iter().cloned());
    }
    if let Some(n) = argument.get_num_args() {
        shown = shown.num_args(n);
    }
    shown
}

/// Says what a value is, so that no shell offers files, or all commands there are, in the place of
/// a number.
fn hint(argument: &Arg) -> ValueHint {
    const NO_PATHS: [&str; 13] = [
        "N",
        "URL",
        "VAR",
        "SIZE",
        "DURATION",
        "RULE",
        "USD",
        "REF",
        "ID",
        "KEY",
        "TASK",
        "HOST[:PORT]",
        "JSON",
    ];
    let is_no_path = |names: &[Str]| names.iter().all(|name| NO_PATHS.contains(&name.as_str()));
    match argument.get_value_hint() {
        ValueHint::Unknown
            if argument.get_action().takes_values()
                && argument.get_value_names().is_some_and(is_no_path) =>
        {
            ValueHint::Other
        }
        hint => hint,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_hidden_is_offered() {
        let shown = visible(&help::command(), "");
        assert!(shown.find_subcommand("run").is_some() && shown.find_subcommand("man").is_none());
        let run = shown.find_subcommand("run").expect("it is there");
        assert!(
            run.get_arguments()
                .any(|argument| argument.get_long() == Some("endpoint"))
        );
        assert!(
            !run.get_arguments()
                .any(|argument| argument.get_long() == Some("api-key"))
        );
    }

    #[test]
    fn text_keeps_its_letters_in_a_manual_page() {
        assert_eq!(roff("a-b \\ 'c'"), "a\\-b \\e \\(aqc\\(aq");
        assert_eq!(roff(".hidden"), "\\&.hidden");
    }
}
