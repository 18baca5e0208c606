//! The settings, the key they name, and the project folder.

use std::path::Path;
use std::path::PathBuf;

use super::check::Check;
use super::check::Group;
use super::check::chain;
use crate::Error;
use crate::bench::open_project_at;
use crate::rules;
use crate::settings::ProjectSettings;
use podbay_config as config;
use podbay_config::Config;
use podbay_config::Loaded;
use podbay_config::Sources;
use podbay_config::TrustState;
use podbay_event::Secret;
use podbay_inference::Catalogue;
use podbay_inference::CatalogueMistake;
use podbay_policy::Mode;
use podbay_sandbox::Project;

const GROUP: Group = Group::Settings;

/// Most oddities that are reported.
const MOST: usize = 20;

/// Judges the settings files, and returns the settings that the other checks go by: the defaults,
/// where these cannot be read.
pub(super) fn judge(
    sources: &Sources,
    loaded: Result<Loaded<Config>, config::Error>,
) -> (Config, Vec<Check>) {
    let loaded = match loaded {
        Ok(loaded) => loaded,
        Err(error) => {
            let mut check = Check::error(
                GROUP,
                "files",
                &error,
                Some(error.hint()),
                "correct or remove that file",
            );
            check
                .detail
                .push_str(" (no run starts like this; what follows goes by the defaults)");
            return (Config::default(), vec![check]);
        }
    };
    let files: Vec<String> = [&sources.system, &sources.user, &sources.file]
        .into_iter()
        .flatten()
        .filter(|path| path.exists())
        .map(|path| path.display().to_string())
        .collect();
    let detail = if files.is_empty() {
        "none, so the defaults and the environment hold".to_owned()
    } else {
        files.join(", ")
    };
    let mut checks = vec![Check::ok(GROUP, "files", detail)];
    let n_more = loaded.warnings.len().saturating_sub(MOST);
    for warning in loaded.warnings.into_iter().take(MOST) {
        checks.push(Check::warn(
            GROUP,
            "unknown key",
            warning,
            "correct it, or take it out: docs/configuration.md lists every key",
        ));
    }
    if n_more > 0 {
        checks.push(Check::warn(
            GROUP,
            "unknown key",
            format!("and {n_more} more"),
            "is this file meant for Podbay?",
        ));
    }
    let warn = |warning| checks.push(Check::warn(GROUP, "rules", warning, "correct the rule"));
    if let Err(error) = rules::policy(Mode::Auto, &loaded.config.policy, warn) {
        checks.push(Check::error(
            GROUP,
            "rules",
            &error,
            error.hint(),
            "correct the rule",
        ));
    }
    let mistakes = loaded.config.sandbox.mistakes().into_iter();
    checks.extend(mistakes.map(|error| {
        Check::error(
            GROUP,
            "sandbox",
            &error,
            error.hint(),
            "give it another value, or none",
        )
    }));
    (loaded.config, checks)
}

/// Judges where the key comes from. The key itself goes nowhere from here.
pub(super) fn key(config: &Config, read: &Result<Option<Secret>, Error>) -> Option<Check> {
    match read {
        Err(error) => Some(Check::fail(
            GROUP,
            "key",
            chain(error),
            error.hint().unwrap_or_else(|| "check that file".to_owned()),
        )),
        Ok(None) => None,
        Ok(Some(_)) => {
            let from = match (&config.llm.api_key_env, &config.llm.api_key_file) {
                (Some(name), _) => format!("set, in the environment variable {name}"),
                (None, Some(path)) => format!("set, in the file {path}"),
                (None, None) => "set".to_owned(),
            };
            Some(Check::ok(GROUP, "key", from))
        }
    }
}

/// Judges the user's own list of models.
pub(super) fn models(config: &Config) -> Vec<Check> {
    if config.llm.endpoint.is_some() {
        return Vec::new();
    }
    let judge = |mistake: CatalogueMistake| {
        let remedy = if mistake.costs_all {
            "correct that file"
        } else {
            "correct that entry; the others hold"
        };
        Check::warn(GROUP, "list of models", mistake.to_string(), remedy)
    };
    Catalogue::load(&config.inference)
        .mistakes
        .into_iter()
        .take(MOST)
        .map(judge)
        .collect()
}

/// Judges the project folder: one that was named must do, the current one may be none.
pub(super) fn project(named: Option<&Path>, state: &Path) -> Vec<Check> {
    let path = named.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let project = match open_project_at(&path, state) {
        Ok(project) => project,
        Err(error) if named.is_some() => {
            let remedy = error
                .hint()
                .unwrap_or_else(|| "name a project folder: -C DIR".to_owned());
            return vec![Check::fail(GROUP, "project", chain(&error), remedy)];
        }
        Err(error) => {
            let why = std::error::Error::source(&error)
                .map_or_else(|| error.to_string(), ToString::to_string);
            return vec![Check::ok(
                GROUP,
                "project",
                format!("none: {why} (name one with -C DIR)"),
            )];
        }
    };
    let mut checks = vec![folder(&project)];
    checks.extend(own(&project, state));
    checks
}

/// Judges the project where Podbay did not start the sandbox: it is what that sandbox has, and none
/// can be named.
pub(super) fn attached_project(is_named: bool) -> Check {
    if is_named {
        let error = Error::not_attached("a project folder (-C)");
        return Check::error(GROUP, "project", &error, error.hint(), "leave out -C");
    }
    Check::ok(
        GROUP,
        "project",
        "what the sandbox at the socket has as its /workspace",
    )
}

/// Judges the settings that come with the project.
fn own(project: &Project, state: &Path) -> Option<Check> {
    const NAME: &str = "project's own";
    const TRUST: &str = "read it, then trust it with `podbay config trust`";
    let failed = |error: config::Error| {
        Check::error(
            GROUP,
            NAME,
            &error,
            Some(error.hint()),
            "correct or remove that file",
        )
    };
    let own = match ProjectSettings::read(project, &config::Trust::new(state.join("trust"))) {
        Ok(own) => own?,
        Err(error) => return Some(failed(error)),
    };
    let sources = Sources {
        project: Some(own.layer()),
        ..Sources::default()
    };
    let shown = own.file.path().display();
    Some(match (Config::load(&sources), &own.standing) {
        (Err(error), _) => failed(error),
        (Ok(_), TrustState::Trusted) => Check::ok(GROUP, NAME, format!("{shown}, which you trust")),
        (Ok(_), TrustState::Changed { .. }) => Check::warn(
            GROUP,
            NAME,
            format!(
                "{shown} has changed since you trusted it, and only what makes things tighter counts"
            ),
            TRUST,
        ),
        (Ok(loaded), TrustState::Untrusted) => match loaded.passed_over.len() {
            0 => Check::ok(
                GROUP,
                NAME,
                format!("{shown}, which only makes things tighter"),
            ),
            n => Check::warn(
                GROUP,
                NAME,
                format!(
                    "{n} of the settings in {shown} are passed over: a project may not loosen anything"
                ),
                TRUST,
            ),
        },
    })
}

fn folder(project: &Project) -> Check {
    let path = project.text();
    let (uid, _) = project.owner();
    if !project.is_writable() {
        let remedy = "give its owner the right to write: chmod u+w DIR; on a read-only file system, copy it elsewhere";
        return Check::warn(
            GROUP,
            "project",
            format!("{path} is not writable: reading works, changing files does not"),
            remedy,
        );
    }
    if uid == 0 {
        let detail =
            format!("{path} belongs to root, so commands run as uid 0 (without any capability)");
        return Check::warn(
            GROUP,
            "project",
            detail,
            "give it to a user: chown -R USER DIR",
        );
    }
    Check::ok(GROUP, "project", format!("{path}, of uid {uid}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doctor::Status;

    #[test]
    fn a_flood_of_unknown_keys_stays_short() {
        let warnings = (0..1000)
            .map(|at| format!("x:{at}: there is no setting `y`"))
            .collect();
        let loaded = Loaded {
            config: Config::default(),
            warnings,
            origins: config::Origins::default(),
            passed_over: Vec::new(),
        };
        let (_, checks) = judge(&Sources::default(), Ok(loaded));
        assert_eq!(checks.len(), 1 + MOST + 1);
        assert!(checks.last().expect("the last").detail.contains("980 more"));
    }

    #[test]
    fn a_rule_that_cannot_be_read_fails() {
        let mut config = Config::default();
        config.policy.allow.push("bash(cargo".to_owned());
        let loaded = Loaded {
            config,
            warnings: Vec::new(),
            origins: config::Origins::default(),
            passed_over: Vec::new(),
        };
        let (_, checks) = judge(&Sources::default(), Ok(loaded));
        assert_eq!(
            checks
                .last()
                .map(|check| (check.name.as_str(), check.status)),
            Some(("rules", Status::Fail))
        );
    }

    #[test]
    fn the_key_is_told_of_by_its_place_alone() {
        let mut config = Config::default();
        config.llm.api_key_env = Some("MY_KEY".to_owned());
        let check = key(&config, &Ok(Some(Secret::new("sk-sesame")))).expect("a check");
        assert!(
            check.detail.contains("MY_KEY") && !format!("{check:?}").contains("sesame"),
            "{check:?}"
        );
        assert_eq!(key(&config, &Ok(None)), None);
        let missing =
            key(&config, &Err(Error::usage("it is not set", "export it"))).expect("a check");
        assert_eq!(
            (missing.status, missing.remedy.as_deref()),
            (Status::Fail, Some("export it"))
        );
    }
}
