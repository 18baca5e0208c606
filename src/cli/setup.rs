use std::io;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use super::args::ConfigFlags;
use super::args::OutputFormat;
use super::flags::Overrides;
use super::front::Terminal;
use crate::app;
use crate::app::Mode;
use crate::app::Place;
use crate::app::State;
use crate::config;
use crate::config::Config;
use crate::config::Sources;
use crate::event::Secret;
use crate::ui::text;

/// The settings of one command and the state folder.
pub(super) struct Setup {
    pub(super) config: Config,
    pub(super) state: State,
    warnings: Vec<String>,
}

impl Setup {
    /// Reads the settings, with those of flags on top.
    pub(super) fn new(flags: &ConfigFlags, overrides: Overrides) -> Result<Self, app::Error> {
        let mut sources = Sources::from_env(std::env::vars_os());
        sources.file.clone_from(&flags.config);
        sources.flags = overrides;
        let loaded = Config::load(&sources).map_err(app::Error::Config)?;
        if app::is_attached(&loaded.config) {
            super::flags::check_attached(&sources.flags)?;
        }
        let state = State::from_env(|name| std::env::var_os(name)).map_err(app::Error::Session)?;
        super::trace(flags.verbose);
        Ok(Self { config: loaded.config, state, warnings: loaded.warnings })
    }

    /// Adds the rules of `--allow` and `--deny` to those of the files.
    pub(super) fn add_rules(&mut self, allow: &[String], deny: &[String]) {
        self.config.policy.allow.extend_from_slice(allow);
        self.config.policy.deny.extend_from_slice(deny);
    }

    pub(super) fn terminal(&self, format: OutputFormat) -> Terminal {
        Terminal::new(format, &self.config.ui)
    }

    /// Shows what is odd about the settings, once.
    pub(super) fn show_warnings(&self, terminal: &Terminal) {
        for warning in &self.warnings {
            let _ = writeln!(io::stderr(), "{} {}", terminal.paint.warn("warning:"), text::clean(warning));
        }
    }

    /// Returns where the command works; without a folder that is the current one.
    pub(super) fn place(&self, folder: Option<&Path>, mode: Mode) -> Result<Place, app::Error> {
        let is_attached = app::is_attached(&self.config);
        if is_attached && folder.is_some() {
            return Err(app::Error::not_attached("a project folder (-C)"));
        }
        let project = self::folder(folder)?;
        // Only that it exists is looked at: what a project says about its own treatment is not believed.
        let exists = std::fs::symlink_metadata(project.join(config::PROJECT_FILE)).is_ok();
        if let Some(note) = config::project_note(exists && !is_attached) {
            super::say(&format!("note: {note}\n"));
        }
        Ok(Place { project, config: self.config.clone(), state: self.state.clone(), mode, api_key: api_key(&self.config)? })
    }
}

/// Returns the folder that was named, else the current one.
pub(super) fn folder(named: Option<&Path>) -> Result<PathBuf, app::Error> {
    match named {
        Some(folder) => Ok(folder.to_owned()),
        None => std::env::current_dir().map_err(|source| app::Error::Io { doing: "find the current folder".to_owned(), source }),
    }
}

/// Reads the endpoint's key from the place that the settings name.
pub(super) fn api_key(config: &Config) -> Result<Option<Secret>, app::Error> {
    if let Some(name) = &config.llm.api_key_env {
        let value = std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let value = value.ok_or_else(|| {
            app::Error::usage(
                format!("the environment variable {name}, which should hold the API key, is not set"),
                format!("export {name}=…, or name another one with --api-key-env"),
            )
        })?;
        return Ok(Some(Secret::new(value.trim())));
    }
    let Some(path) = &config.llm.api_key_file else { return Ok(None) };
    let path = PathBuf::from(path);
    let failed = |source| app::Error::Io { doing: format!("read the API key from {}", path.display()), source };
    let facts = std::fs::metadata(&path).map_err(failed)?;
    if facts.mode() & 0o077 != 0 {
        let problem = format!("others can read the file of the API key, {} (mode {:o})", path.display(), facts.mode() & 0o777);
        return Err(app::Error::usage(problem, format!("chmod 600 {}", path.display())));
    }
    let key = std::fs::read_to_string(&path).map_err(failed)?;
    Ok(Some(Secret::new(key.trim())))
}
