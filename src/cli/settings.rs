//! `podbay config list`, `get`, `set` and the other commands on the settings and the user's file.

use std::io;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::args::ConfigFlags;
use super::args::FormatFlags;
use super::args::OutputFormat;
use super::delivery::deliver;
use super::delivery::deliver_json;
use super::failure;
use super::front::err_paint;
use super::setup;
use super::setup::Setup;
use podbay_app as app;
use podbay_app::exit_code;
use podbay_config as config;
use podbay_config::Config;
use podbay_config::Explained;
use podbay_config::Origin;
use podbay_config::SettingsFile;
use podbay_config::Sources;
use podbay_ui as ui;
use podbay_ui::Keyboard;
use podbay_ui::text;

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only this section, or the keys that begin like this
    #[arg(value_name = "KEY")]
    prefix: Option<String>,
    /// Only what a file, a variable or a flag sets
    #[arg(long)]
    changed: bool,
    #[command(flatten)]
    format: FormatFlags,
    #[command(flatten)]
    place: Place,
}

/// Whose settings.
#[derive(Debug, Args)]
struct Place {
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
    #[command(flatten)]
    config: ConfigFlags,
}

#[derive(Debug, Args)]
pub(super) struct GetArgs {
    /// Such as sandbox.memory
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    format: FormatFlags,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, Args)]
pub(super) struct SetArgs {
    /// Such as sandbox.memory
    #[arg(value_name = "KEY")]
    key: String,
    /// A number, a text, true or false; a list as `a,b` or as in TOML
    #[arg(value_name = "VALUE", allow_hyphen_values = true)]
    value: String,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
pub(super) struct UnsetArgs {
    /// A key, or a section with all that is in it
    #[arg(value_name = "KEY")]
    key: String,
    #[command(flatten)]
    format: FormatFlags,
}

#[derive(Debug, Args)]
pub(super) struct PathArgs {
    /// Every file that settings are read from here, the weakest first
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    format: FormatFlags,
    /// Project folder
    #[arg(long, short = 'C', value_name = "DIR", aliases = ["working-dir", "workdir"])]
    path: Option<PathBuf>,
}

/// A setting as a script reads it.
#[derive(Serialize)]
struct Told<'a> {
    key: &'a str,
    value: &'a Value,
    origins: Vec<ToldOrigin>,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    variable: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<&'a str>,
}

/// Where a value came from, as a script reads it.
#[derive(Serialize)]
struct ToldOrigin {
    layer: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// The variable or the flag.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
}

impl ToldOrigin {
    fn all(origins: &[Origin], sources: &Sources) -> Vec<Self> {
        let of = |origin: &Origin| {
            let layer = sources.layer_of(origin);
            let (path, line, name) = match origin {
                Origin::Default => (None, None, None),
                Origin::File { path, line } => {
                    (Some(path.display().to_string()), Some(*line), None)
                }
                Origin::Environment { variable } => (None, None, Some(variable.clone())),
                Origin::Flag { name } => (None, None, Some(name.clone())),
            };
            Self {
                layer,
                path,
                line,
                name,
            }
        };
        origins.iter().map(of).collect()
    }
}

#[derive(Serialize)]
struct ToldList<'a> {
    settings: Vec<Told<'a>>,
    warnings: Vec<String>,
}

/// The settings of a place, with what is odd about them said, and where they were read from.
fn read(place: &Place, shown: OutputFormat) -> Result<(Setup, Sources), app::Error> {
    let setup = Setup::in_project(&place.config, place.path.as_deref(), Vec::new())?;
    setup.check_folder(place.path.as_deref())?;
    let terminal = setup.terminal(shown);
    setup.show_warnings(&terminal);
    setup::warn_of(&app::rule_problems(&setup.config), &terminal);
    let mut sources = Sources::from_env(std::env::vars_os());
    sources.file.clone_from(&place.config.config);
    sources.project = setup
        .settings
        .project
        .as_ref()
        .map(app::ProjectSettings::layer);
    Ok((setup, sources))
}

pub(super) fn list(args: &ListArgs) -> Result<u8, app::Error> {
    let (setup, sources) = read(&args.place, args.format.shown())?;
    let prefix = args.prefix.as_deref().unwrap_or_default();
    let all: Vec<Explained> = config::explain(&setup.settings.loaded)
        .into_iter()
        .filter(|one| one.setting.key.starts_with(prefix))
        .filter(|one| !args.changed || is_set(one))
        .collect();
    if all.is_empty() && !prefix.is_empty() && !args.changed {
        config::check_key::<Config>(prefix).map_err(app::Error::Config)?;
    }
    if !args.format.is_json() {
        deliver(&text::clean(&config::shown(&all)))?;
        return Ok(exit_code::DONE);
    }
    let settings = all.iter().map(|one| Told {
        key: &one.setting.key,
        value: &one.value,
        origins: ToldOrigin::all(&one.origins, &sources),
        default: Some(&one.setting.default),
        variable: Some(&one.setting.variable),
        meaning: Some(&one.setting.doc),
    });
    deliver_json(&ToldList {
        settings: settings.collect(),
        warnings: setup.settings.warnings(),
    })?;
    Ok(exit_code::DONE)
}

/// A table of free names has its origins below it.
fn is_set(one: &Explained) -> bool {
    one.origins != [Origin::Default] || one.value != one.setting.default
}

pub(super) fn get(args: &GetArgs) -> Result<u8, app::Error> {
    let (setup, sources) = read(&args.place, args.format.shown())?;
    let key = args.key.as_str();
    config::check_key::<Config>(key).map_err(app::Error::Config)?;
    let found = config::value(&setup.settings.loaded, key);
    let is_set = found.as_ref().is_some_and(|(value, _)| !value.is_null());
    let (value, origins) = found.unwrap_or((Value::Null, vec![Origin::Default]));
    if args.format.is_json() {
        deliver_json(&Told {
            key,
            value: &value,
            origins: ToldOrigin::all(&origins, &sources),
            default: None,
            variable: None,
            meaning: None,
        })?;
    } else if is_set {
        deliver(&format!("{}\n", plain(&value)))?;
        if io::stderr().is_terminal() {
            let from: Vec<String> = origins.iter().map(Origin::to_string).collect();
            super::say(&format!("({})\n", text::line(&from.join(", "))));
        }
    } else {
        super::say(&format!("`{}` is not set\n", text::line(key)));
    }
    Ok(if is_set {
        exit_code::DONE
    } else {
        exit_code::FAILED
    })
}

/// Returns a value for scripts: a text as it is, all else as JSON.
fn plain(value: &Value) -> String {
    match value {
        Value::String(words) => text::clean(words),
        other => text::clean(&other.to_string()),
    }
}

/// What became of the file, as a script reads it.
#[derive(Serialize)]
struct Changed<'a> {
    key: &'a str,
    /// Null: it was removed.
    value: Option<String>,
    is_changed: bool,
    path: String,
    /// What overrides it here.
    overridden_by: Option<String>,
}

pub(super) fn set(args: &SetArgs) -> Result<u8, app::Error> {
    let mut file = user_file()?;
    let before = file.text().to_owned();
    let value = file
        .set::<Config>(&args.key, &args.value)
        .map_err(app::Error::Config)?;
    check(&file)?;
    if file.text() != before {
        file.save().map_err(app::Error::Config)?;
    }
    told(&args.key, Some(value.to_string()), true, &file, args.format)
}

pub(super) fn unset(args: &UnsetArgs) -> Result<u8, app::Error> {
    let mut file = user_file()?;
    let is_changed = file
        .unset::<Config>(&args.key)
        .map_err(app::Error::Config)?;
    if is_changed {
        check(&file)?;
        file.save().map_err(app::Error::Config)?;
    } else {
        // A key that no setting has and that is not there is misspelt.
        config::check_key::<Config>(&args.key).map_err(app::Error::Config)?;
    }
    told(&args.key, None, is_changed, &file, args.format)
}

fn told(
    key: &str,
    value: Option<String>,
    is_changed: bool,
    file: &SettingsFile,
    format: FormatFlags,
) -> Result<u8, app::Error> {
    let path = file.path().display().to_string();
    let overridden_by = if value.is_some() {
        overridden_by(key)
    } else {
        None
    };
    if format.is_json() {
        deliver_json(&Changed {
            key,
            value,
            is_changed,
            path,
            overridden_by,
        })?;
        return Ok(exit_code::DONE);
    }
    let words = match (&value, is_changed) {
        (Some(value), _) => format!("{key} = {value}  ({path})"),
        (None, true) => format!("{key} is removed from {path}"),
        (None, false) => format!("{key} is not in {path}"),
    };
    deliver(&format!("{}\n", text::line(&words)))?;
    if let Some(stronger) = overridden_by {
        super::say(&format!(
            "note: {} overrides it here\n",
            text::line(&stronger)
        ));
    }
    Ok(exit_code::DONE)
}

/// Returns what is stronger here than the user's file. Settings that cannot be read say so when they
/// are used.
fn overridden_by(key: &str) -> Option<String> {
    let setup = Setup::in_project(&ConfigFlags::default(), None, Vec::new()).ok()?;
    let sources = Sources::from_env(std::env::vars_os());
    let (_, origins) = config::value(&setup.settings.loaded, key)?;
    let last = origins.last()?;
    let is_other = !matches!(last, Origin::Default) && sources.layer_of(last) != "user";
    is_other.then(|| last.to_string())
}

fn user_path(sources: &Sources) -> Result<&PathBuf, app::Error> {
    sources.user.as_ref().ok_or_else(|| {
        app::Error::usage(
            "there is no folder for the user's settings",
            "set HOME, or XDG_CONFIG_HOME, to an absolute path",
        )
    })
}

/// Returns the path of the user's file for a message.
pub(super) fn user_path_words() -> String {
    let sources = Sources::from_env(std::env::vars_os());
    user_path(&sources).map_or_else(
        |_| "the user's settings file".to_owned(),
        |path| path.display().to_string(),
    )
}

/// Writes settings into the user's file, all of them or none; returns its path.
pub(super) fn write_all(settings: &[(String, String)]) -> Result<PathBuf, app::Error> {
    let mut file = user_file()?;
    for (key, value) in settings {
        file.set::<Config>(key, value).map_err(app::Error::Config)?;
    }
    check(&file)?;
    file.save().map_err(app::Error::Config)?;
    Ok(file.path().to_owned())
}

fn user_file() -> Result<SettingsFile, app::Error> {
    let sources = Sources::from_env(std::env::vars_os());
    SettingsFile::open(user_path(&sources)?).map_err(app::Error::Config)
}

/// Refuses a text that could not be read again; returns what is odd about it.
fn check(file: &SettingsFile) -> Result<Vec<String>, app::Error> {
    let mut sources = Sources::from_env(std::env::vars_os()).of_user();
    sources.user = Some(file.path().to_owned());
    sources.user_text = Some(file.text().to_owned());
    let loaded = Config::load(&sources).map_err(app::Error::Config)?;
    Ok(loaded.warnings)
}

pub(super) fn path(args: &PathArgs) -> Result<u8, app::Error> {
    let sources = Sources::from_env(std::env::vars_os());
    let user = SettingsFile::open(user_path(&sources)?).map_or_else(
        |_| user_path(&sources).cloned(),
        |file| Ok(file.path().to_owned()),
    )?;
    if !args.all && !args.format.is_json() {
        deliver(&format!("{}\n", user.display()))?;
        return Ok(exit_code::DONE);
    }
    let project = setup::folder(args.path.as_deref())?.join(config::PROJECT_FILE);
    let files: Vec<FileTold> = [
        ("system", sources.system.clone()),
        ("user", Some(user)),
        ("project", Some(project)),
    ]
    .into_iter()
    .filter_map(|(layer, path)| path.map(|path| FileTold::of(layer, &path)))
    .collect();
    if args.format.is_json() {
        deliver_json(&Files { files })?;
        return Ok(exit_code::DONE);
    }
    let line = |file: &FileTold| {
        let without = if file.exists { "" } else { "  (not there)" };
        format!("{:<8} {}{without}\n", file.layer, text::line(&file.path))
    };
    deliver(&files.iter().map(line).collect::<String>())?;
    Ok(exit_code::DONE)
}

#[derive(Serialize)]
struct Files {
    files: Vec<FileTold>,
}

#[derive(Serialize)]
struct FileTold {
    layer: &'static str,
    path: String,
    exists: bool,
}

impl FileTold {
    fn of(layer: &'static str, path: &std::path::Path) -> Self {
        Self {
            layer,
            path: path.display().to_string(),
            exists: path.exists(),
        }
    }
}

pub(super) fn schema() -> Result<u8, app::Error> {
    deliver_json(&config::schema::<Config>())?;
    Ok(exit_code::DONE)
}

/// Opens the user's file in their editor. It is written once it can be read again.
pub(super) async fn edit() -> Result<u8, app::Error> {
    let keyboard = Keyboard::stdin().map_err(|source| app::Error::Io {
        doing: "open the keyboard".to_owned(),
        source,
    })?;
    if !keyboard.is_terminal() {
        return Err(app::Error::usage(
            "there is no terminal to edit at",
            "`podbay config set KEY VALUE` changes one setting",
        ));
    }
    let mut file = user_file()?;
    let before = if file.text().is_empty() {
        config::template::<Config>()
    } else {
        file.text().to_owned()
    };
    let suffix = file.path().extension().and_then(|end| end.to_str());
    let suffix = format!(".{}", suffix.unwrap_or("toml"));
    let mut text = before.clone();
    loop {
        text = ui::edit_text(&text, &suffix)
            .map_err(|problem| app::Error::usage(problem, "set VISUAL or EDITOR to one"))?;
        if text == before {
            super::say("nothing was changed\n");
            return Ok(exit_code::DONE);
        }
        file.set_text(text.clone());
        let paint = err_paint(&ui::Options::default());
        let problem = match check(&file) {
            Ok(warnings) => {
                for warning in warnings {
                    super::say(&format!(
                        "{} {}\n",
                        paint.warn("warning:"),
                        text::clean(&warning)
                    ));
                }
                file.save().map_err(app::Error::Config)?;
                deliver(&format!("{} is written\n", file.path().display()))?;
                return Ok(exit_code::DONE);
            }
            Err(problem) => problem,
        };
        failure::show(&problem, &mut io::stderr(), paint);
        let question = "Edit it again? Without that, nothing is changed.";
        let cancel = CancellationToken::new();
        if !ui::confirm(question, &keyboard, &mut io::stderr(), &cancel).await {
            super::say("nothing was changed\n");
            return Ok(exit_code::USAGE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_printed_as_it_is_and_all_else_as_json() {
        assert_eq!(plain(&"2GiB".into()), "2GiB");
        assert_eq!(plain(&serde_json::json!(["a", 1])), "[\"a\",1]");
        assert_eq!(plain(&true.into()), "true");
    }
}
