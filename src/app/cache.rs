//! `podbay cache`: what installations have left, of all projects.

use std::path::PathBuf;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Error;
use super::bench::open_project;
use super::install_record::InstallRecord;
use podbay_config::Config;
use podbay_engine as engine;
use podbay_engine::Engine;
use podbay_sandbox as sandbox;
use podbay_session::State;

/// A cache of a project.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CacheLine {
    /// The package manager.
    pub name: String,
    pub project: String,
    pub volume: String,
    /// What was in it after the last installation; `null`: nobody counted.
    pub bytes: Option<u64>,
}

/// Which caches are to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CacheChoice {
    /// `None`: those of all projects.
    pub project: Option<PathBuf>,
    /// By the package manager's name; empty: all of them.
    pub names: Vec<String>,
}

/// What became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RemovedCaches {
    pub removed: Vec<CacheLine>,
    /// A sandbox has them mounted.
    pub in_use: Vec<CacheLine>,
}

/// Lists the caches of all projects.
#[boxed]
pub async fn list_caches(
    config: &Config,
    state: &State,
    cancel: &CancellationToken,
) -> Result<Vec<CacheLine>, Error> {
    engine::keep_machine_id(state.root());
    let engine = connect(config, cancel).await?;
    let found = sandbox::caches(&engine, cancel)
        .await
        .map_err(Error::Engine)?;
    Ok(found.iter().map(|cache| line(cache, state)).collect())
}

/// Removes caches. The next installation makes them anew.
#[boxed]
pub async fn remove_caches(
    config: &Config,
    state: &State,
    choice: &CacheChoice,
    cancel: &CancellationToken,
) -> Result<RemovedCaches, Error> {
    if let Some(unknown) = choice
        .names
        .iter()
        .find(|name| sandbox::ecosystem(name).is_none())
    {
        return Err(unknown_name(unknown));
    }
    let project = choice
        .project
        .as_ref()
        .map(|path| open_project(path, state))
        .transpose()?;
    engine::keep_machine_id(state.root());
    let engine = connect(config, cancel).await?;
    let mut done = RemovedCaches::default();
    for cache in sandbox::caches(&engine, cancel)
        .await
        .map_err(Error::Engine)?
    {
        let is_named = choice.names.is_empty() || choice.names.contains(&cache.ecosystem);
        let is_of_project = project.as_ref().is_none_or(|project| cache.is_of(project));
        if !is_named || !is_of_project {
            continue;
        }
        let line = line(&cache, state);
        let removed = engine.remove_volume(&cache.volume, cancel).await;
        if removed.map_err(Error::Engine)? {
            let mut record = InstallRecord::read(state, &cache.key);
            record.caches.remove(&cache.ecosystem);
            if cache.ecosystem == sandbox::SETUP {
                record.setup = None;
            }
            record.write(state, &cache.key)?;
            done.removed.push(line);
        } else {
            done.in_use.push(line);
        }
    }
    Ok(done)
}

/// Refuses the name of a package manager that is none.
pub(super) fn unknown_name(name: &str) -> Error {
    let known: Vec<&str> = sandbox::ecosystems()
        .iter()
        .map(|row| row.name.as_str())
        .collect();
    Error::usage(
        format!("`{name}` is no package manager that Podbay knows"),
        format!("there are {}", known.join(", ")),
    )
}

async fn connect(config: &Config, cancel: &CancellationToken) -> Result<Engine, Error> {
    Engine::connect(&config.engine, cancel)
        .await
        .map_err(Error::Engine)
}

fn line(cache: &sandbox::Cache, state: &State) -> CacheLine {
    let record = InstallRecord::read(state, &cache.key);
    CacheLine {
        name: cache.ecosystem.clone(),
        project: cache.project.clone(),
        volume: cache.volume.clone(),
        bytes: record.caches.get(&cache.ecosystem).copied(),
    }
}
