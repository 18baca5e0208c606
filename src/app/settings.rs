use std::path::Path;

use super::Error;
use super::bench::open_project;
use podbay_config as config;
use podbay_config::Answers;
use podbay_config::Config;
use podbay_config::Loaded;
use podbay_config::Origin;
use podbay_config::ProjectFile;
use podbay_config::ProjectLayer;
use podbay_config::Sources;
use podbay_config::Trust;
use podbay_config::TrustState;
use podbay_config::Trusted;
use podbay_guest::LineDiff;
use podbay_inference::Catalogue;
use podbay_sandbox::Project;
use podbay_session::State;

/// The settings that hold in one place, and what became of those that came with the project.
#[derive(Clone, Debug)]
pub struct Settings {
    pub loaded: Loaded<Config>,
    /// `None`: no project, none of its own, or a sandbox that Podbay did not start.
    pub project: Option<ProjectSettings>,
}

/// The settings file of a project and what the user thinks of it.
#[derive(Clone, Debug)]
pub struct ProjectSettings {
    pub file: ProjectFile,
    pub standing: TrustState,
    project: Project,
}

impl ProjectSettings {
    pub(super) fn read(project: &Project, trust: &Trust) -> Result<Option<Self>, config::Error> {
        let Some(file) = ProjectFile::read(project.path())? else {
            return Ok(None);
        };
        let standing = trust.standing(&project.key(), project.path(), &file)?;
        Ok(Some(Self {
            file,
            standing,
            project: project.clone(),
        }))
    }

    /// Returns the layer that it is.
    pub fn layer(&self) -> ProjectLayer {
        ProjectLayer {
            file: self.file.clone(),
            trusted: self.standing == TrustState::Trusted,
        }
    }

    /// Returns whether other settings were trusted here before.
    pub fn has_changed(&self) -> bool {
        matches!(self.standing, TrustState::Changed { .. })
    }

    /// Returns what has changed since the user trusted the file, as a patch, if other settings were
    /// trusted before.
    pub fn difference(&self) -> Option<String> {
        match &self.standing {
            TrustState::Changed { before } => Some(
                LineDiff::of(before, self.file.text()).unified("as it was trusted", "as it is now"),
            ),
            TrustState::Trusted | TrustState::Untrusted => None,
        }
    }
}

impl Settings {
    /// Returns what a user should know of the settings, each a sentence.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = self.loaded.warnings.clone();
        warnings.extend(unused_model(&self.loaded));
        let Some(project) = &self.project else {
            return warnings;
        };
        warnings.extend(self.loaded.passed_over.iter().map(ToString::to_string));
        let path = project.file.path().display();
        match project.standing {
            TrustState::Changed { .. } => warnings.push(format!(
                "{path} has changed since you trusted it, so it may only make things tighter; `podbay config trust` shows what has changed"
            )),
            TrustState::Untrusted if !self.loaded.passed_over.is_empty() => {
                warnings.push(format!("{path} is not trusted; `podbay config trust` shows it and applies all of it"));
            }
            TrustState::Trusted | TrustState::Untrusted => {}
        }
        warnings
    }
}

/// Reads the settings that hold for work in a folder, those of the project among them.
///
/// A folder that cannot be a project has none; why it cannot is said by whoever opens it.
pub fn settings(mut sources: Sources, folder: &Path, state: &State) -> Result<Settings, Error> {
    let loaded = Config::load(&sources).map_err(Error::Config)?;
    if super::is_attached(&loaded.config) {
        return Ok(Settings {
            loaded,
            project: None,
        });
    }
    let Some(own) = project_settings(folder, state)? else {
        return Ok(Settings {
            loaded,
            project: None,
        });
    };
    sources.project = Some(own.layer());
    let loaded = Config::load(&sources).map_err(Error::Config)?;
    Ok(Settings {
        loaded,
        project: Some(own),
    })
}

/// Says what a model that the command line names is not taken for, where an endpoint answers.
///
/// A name alone is as good for an endpoint as for a server of our own; a user who has named the
/// endpoint too knows which it is.
fn unused_model(loaded: &Loaded<Config>) -> Option<String> {
    let config = &loaded.config;
    let (name, named) = (
        config.llm.model.as_deref()?.trim(),
        loaded.origins.of("llm.model"),
    );
    let endpoint = loaded.origins.of("llm.endpoint");
    if config.llm.endpoint.is_none() || !matches!(named, Origin::Flag { .. }) {
        return None;
    }
    let of_list = || {
        !matches!(endpoint, Origin::Flag { .. })
            && Catalogue::load(&config.inference).find(name).is_some()
    };
    let what = if name.contains("://") || name.starts_with("hf:") {
        "an address: nothing is loaded from there"
    } else if name.to_ascii_lowercase().ends_with(".gguf") {
        "a file: no server is started for it"
    } else if of_list() {
        "a model of `podbay models list`: no server is started for it"
    } else {
        return None;
    };
    Some(format!(
        "{named} `{name}` looks like {what}, because an endpoint is named (`llm.endpoint`, from {endpoint}); that one is asked for a \
         model of this name"
    ))
}

/// Refuses what is no folder. Which folders cannot be projects is said by whoever opens one.
pub fn check_folder(folder: &Path, state: &State) -> Result<(), Error> {
    if folder.is_dir() {
        Ok(())
    } else {
        open_project(folder, state).map(drop)
    }
}

/// Reads the settings that come with a project; `None` where there are none.
pub fn project_settings(folder: &Path, state: &State) -> Result<Option<ProjectSettings>, Error> {
    let Ok(project) = open_project(folder, state) else {
        return Ok(None);
    };
    ProjectSettings::read(&project, &Trust::new(state.trust())).map_err(Error::Config)
}

/// Ends the trust in a project's settings where their file is gone; for a command that begins work
/// or is about trust, not for one that only looks.
///
/// What comes back under the file's name was put there by somebody, who may have been an agent.
pub fn end_trust_without_file(
    settings: &Settings,
    folder: &Path,
    state: &State,
) -> Result<(), Error> {
    if settings.project.is_some() || super::is_attached(&settings.loaded.config) {
        return Ok(());
    }
    let Ok(project) = open_project(folder, state) else {
        return Ok(());
    };
    Trust::new(state.trust())
        .revoke(&project.key())
        .map(drop)
        .map_err(Error::Config)
}

/// Trusts a project's settings as they were read.
pub fn trust_settings(own: &ProjectSettings, state: &State) -> Result<(), Error> {
    Trust::new(state.trust())
        .accept(&own.project.key(), own.project.path(), &own.file)
        .map_err(Error::Config)
}

/// Takes trust back from settings that the user was shown and did not want.
pub fn distrust_settings(own: &ProjectSettings, state: &State) -> Result<(), Error> {
    Trust::new(state.trust())
        .revoke(&own.project.key())
        .map(drop)
        .map_err(Error::Config)
}

/// Takes trust in a project's settings back; returns whether there was any.
pub fn revoke_settings(folder: &Path, state: &State) -> Result<bool, Error> {
    let project = open_project(folder, state)?;
    Trust::new(state.trust())
        .revoke(&project.key())
        .map_err(Error::Config)
}

/// Returns the projects whose settings are trusted.
pub fn trusted_settings(state: &State) -> Result<Vec<Trusted>, Error> {
    Trust::new(state.trust()).list().map_err(Error::Config)
}

/// Returns what was allowed for good in a project, each in words and in the order of the answers.
pub fn lasting_answers(folder: &Path, state: &State) -> Result<Vec<String>, Error> {
    let all = answers(folder, state)?.list().map_err(Error::Config)?;
    Ok(all.iter().map(podbay_policy::ExactCall::words).collect())
}

/// Undoes what was allowed for good: the one of this number, counted from 1, or all. Returns
/// what it was, in words.
pub fn forget_answers(
    folder: &Path,
    state: &State,
    number: Option<usize>,
) -> Result<Vec<String>, Error> {
    let answers = answers(folder, state)?;
    let all = answers.list().map_err(Error::Config)?;
    let Some(number) = number else {
        answers.clear().map_err(Error::Config)?;
        return Ok(all.iter().map(podbay_policy::ExactCall::words).collect());
    };
    let Some(exact) = number.checked_sub(1).and_then(|at| all.get(at)) else {
        let hint = "`podbay config answers` lists them with their numbers";
        return Err(Error::usage(
            format!(
                "there is no answer {number}; this project has {}",
                all.len()
            ),
            hint,
        ));
    };
    answers.remove(exact).map_err(Error::Config)?;
    Ok(vec![exact.words()])
}

fn answers(folder: &Path, state: &State) -> Result<Answers, Error> {
    let project = open_project(folder, state)?;
    Ok(Answers::new(
        &state.answers(),
        &project.key(),
        project.path(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_config::Flag;

    #[track_caller]
    fn check(name: &str, endpoint_is_flag: bool, words: Option<&str>) {
        let endpoint = ("llm.endpoint", "http://127.0.0.1:9/v1");
        let mut sources = Sources::default();
        if endpoint_is_flag {
            sources
                .flags
                .push(Flag::new("--endpoint", endpoint.0, endpoint.1));
            sources.flags.push(Flag::new("--model", "llm.model", name));
        } else {
            sources
                .variables
                .push(("PODBAY_LLM_ENDPOINT".to_owned(), endpoint.1.to_owned()));
            sources
                .flags
                .push(Flag::new("--model", "inference.model", name));
        }
        let loaded = Config::load(&sources).expect("reads");
        assert_eq!(
            loaded.config.llm.model.as_deref(),
            Some(name),
            "it is asked for all the same"
        );
        let warnings = Settings {
            loaded,
            project: None,
        }
        .warnings();
        match words {
            Some(words) => assert!(
                warnings.len() == 1 && warnings[0].contains(words),
                "{name}: {warnings:?}"
            ),
            None => assert!(warnings.is_empty(), "{name}: {warnings:?}"),
        }
    }

    #[test]
    fn what_an_endpoint_cannot_be_asked_for_is_said() {
        check("qwen", false, None);
        check(
            "smollm2-135m",
            false,
            Some("`podbay models list`: no server is started for it, because an endpoint is named"),
        );
        check("smollm2-135m", false, Some("PODBAY_LLM_ENDPOINT"));
        check("smollm2-135m", true, None);
        for by_flag in [false, true] {
            check("./m.gguf", by_flag, Some("a file"));
            check("hf:a/b/c.gguf", by_flag, Some("an address"));
            check("https://a.example/c.gguf", by_flag, Some("an address"));
        }
    }
}
