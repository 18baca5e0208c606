use std::io;
use std::io::Write;
use std::path::Path;
use std::path::PathBuf;

use super::args::ConfigFlags;
use super::args::OutputFormat;
use super::args::SessionFlags;
use super::flags::Overrides;
use super::front::Terminal;
use podbay_app as app;
use podbay_app::Mode;
use podbay_app::Place;
use podbay_app::Settings;
use podbay_app::State;
use podbay_config as config;
use podbay_config::Config;
use podbay_config::Sources;
use podbay_event::Secret;
use podbay_ui::text;

/// The settings of one command and the state folder.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) state: State,
    pub(super) settings: Settings,
}

impl Setup {
    /// Reads the settings of a command that works in no project, with those of flags on top.
    pub(super) fn new(flags: &ConfigFlags, overrides: Overrides) -> Result<Self, app::Error> {
        Self::read(flags, overrides, |sources, _| {
            Ok(Settings {
                loaded: Config::load(&sources).map_err(app::Error::Config)?,
                project: None,
            })
        })
    }

    /// Reads the settings of a command that works in a project, by default in the current folder.
    pub(super) fn in_project(
        flags: &ConfigFlags,
        folder: Option<&Path>,
        overrides: Overrides,
    ) -> Result<Self, app::Error> {
        let folder = self::folder(folder)?;
        Self::read(flags, overrides, |sources, state| {
            app::settings(sources, &folder, state)
        })
    }

    fn read(
        flags: &ConfigFlags,
        overrides: Overrides,
        read: impl FnOnce(Sources, &State) -> Result<Settings, app::Error>,
    ) -> Result<Self, app::Error> {
        let mut sources = Sources::from_env(std::env::vars_os());
        sources.file.clone_from(&flags.config);
        sources.flags = overrides;
        let overrides = sources.flags.clone();
        let state = State::from_env(|name| std::env::var_os(name)).map_err(app::Error::Session)?;
        let settings = read(sources, &state)?;
        if app::is_attached(&settings.loaded.config) {
            super::flags::check_attached(&overrides)?;
        }
        super::log::begin(flags.verbose);
        Ok(Self {
            config: settings.loaded.config.clone(),
            state,
            settings,
        })
    }

    /// Refuses a project folder that was named and is none.
    pub(super) fn check_folder(&self, named: Option<&Path>) -> Result<(), app::Error> {
        named.map_or(Ok(()), |folder| app::check_folder(folder, &self.state))
    }

    /// Ends the trust in the project's own settings if they are gone.
    pub(super) fn end_trust_without_file(&self, folder: Option<&Path>) -> Result<(), app::Error> {
        app::end_trust_without_file(&self.settings, &self::folder(folder)?, &self.state)
    }

    /// Adds the rules of flags to those of the files; a mode that is named takes the place of an
    /// autonomy that is set.
    pub(super) fn add_permissions(&mut self, flags: &SessionFlags) {
        let policy = &mut self.config.policy;
        policy.autonomy = policy.autonomy.filter(|_| flags.mode.is_none());
        policy.allow.extend_from_slice(&flags.allow);
        policy.ask.extend_from_slice(&flags.ask);
        policy.gate.extend_from_slice(&flags.gate);
        policy.deny.extend_from_slice(&flags.deny);
    }

    /// Forgets which model the settings name, and its key: no model is asked.
    pub(super) fn without_model(&mut self) {
        self.config.llm = Config::default().llm;
    }

    pub(super) fn terminal(&self, format: OutputFormat) -> Terminal {
        Terminal::new(format, &self.config.ui)
    }

    /// Shows what is odd about the settings, once, and returns it.
    pub(super) fn show_warnings(&self, terminal: &Terminal) -> Vec<String> {
        let warnings = self.settings.warnings();
        warn_of(&warnings, terminal);
        warnings
    }

    /// Returns where a command works that asks a model; without a folder that is the current one.
    pub(super) fn place(&self, folder: Option<&Path>, mode: Mode) -> Result<Place, app::Error> {
        Ok(Place {
            api_key: api_key(&self.config)?,
            ..self.place_without_key(folder, mode)?
        })
    }

    /// Returns where a command works that asks no model: it needs no key, and one that cannot be
    /// read is nothing to it.
    pub(super) fn place_without_key(
        &self,
        folder: Option<&Path>,
        mode: Mode,
    ) -> Result<Place, app::Error> {
        let is_attached = app::is_attached(&self.config);
        if is_attached && folder.is_some() {
            return Err(app::Error::not_attached("a project folder (-C)"));
        }
        let project = self::folder(folder)?;
        Ok(Place {
            project,
            config: self.config.clone(),
            state: self.state.clone(),
            mode,
            api_key: None,
            resume: None,
            plan: app::PlanStart::AsLeft,
        })
    }
}

/// Says each of these where it is read.
pub(super) fn warn_of(warnings: &[String], terminal: &Terminal) {
    for warning in warnings {
        let _ = writeln!(
            io::stderr(),
            "{} {}",
            terminal.paint.warn("warning:"),
            text::clean(warning)
        );
        terminal.tell(&app::warning(warning));
    }
}

/// Returns the folder that was named, else the current one.
pub(super) fn folder(named: Option<&Path>) -> Result<PathBuf, app::Error> {
    match named {
        Some(folder) => Ok(folder.to_owned()),
        None => std::env::current_dir().map_err(|source| app::Error::Io {
            doing: "find the current folder".to_owned(),
            source,
        }),
    }
}

/// Reads the endpoint's key from the place that the settings name. Without an endpoint nobody is
/// given one, and none is read.
pub(super) fn api_key(config: &Config) -> Result<Option<Secret>, app::Error> {
    let llm = &config.llm;
    let key = match (&llm.endpoint, &llm.api_key_env, &llm.api_key_file) {
        (Some(_), Some(name), _) => config::key_of_variable(
            name,
            std::env::var_os(name)
                .as_ref()
                .and_then(|value| value.to_str()),
        ),
        (Some(_), None, Some(path)) => config::key_of_file(Path::new(path)),
        _ => return Ok(None),
    };
    key.map(Some)
        .map_err(|error| app::Error::usage(error.to_string(), error.hint()))
}
