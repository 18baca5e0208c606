use std::path::PathBuf;
use std::time::Duration;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::BuildImage;
use super::Engine;
use super::Error;
use super::FileLock;
use super::ImageFacts;
use super::Labels;
use super::Options;
use super::Role;
use super::base_image;
use super::debian_archive;
use super::debian_archive::ChosenBuildArgs;
use super::image_lookup::ImageLookup;
use super::recipes::Base;
use super::recipes::RECIPES;
use super::recipes::Recipe;
use super::recipes::base_hash;
use podbay_event::InstanceId;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

/// Makes images available: builds ours, pulls others.
#[derive(Clone)]
pub struct Provision {
    pub(super) engine: Engine,
    /// `None`: nothing is pulled.
    patience: Option<Duration>,
    locks: PathBuf,
    options: Options,
    /// Nothing is pulled or built: an image is present, or unavailable.
    offline: bool,
    allow_install: bool,
    progress: ProgressSink,
}

/// One of our images, as `podbay images list` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedImage {
    pub name: String,
    pub state: ImageState,
    /// `None` if it is absent.
    pub facts: Option<ImageFacts>,
}

/// Whether an image is what this build of Podbay would make.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageState {
    Present,
    /// Made from other files, or from a base that has changed since.
    Outdated,
    Absent,
}

/// What one of our images was made from: its label `spec`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ImageOrigin<'a> {
    pub(super) recipe: &'a str,
    pub(super) base: &'a str,
    pub(super) base_id: &'a str,
}

impl<'a> ImageOrigin<'a> {
    fn parse(spec: &'a str) -> Option<Self> {
        let mut parts = spec.split(' ');
        let made = Self {
            recipe: parts.next()?,
            base: parts.next()?,
            base_id: parts.next()?,
        };
        parts.next().is_none().then_some(made)
    }

    pub(super) fn of(facts: &'a ImageFacts) -> Option<Self> {
        Self::parse(facts.labels.as_ref()?.spec.as_deref()?)
    }
}

impl std::fmt::Display for ImageOrigin<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {} {}", self.recipe, self.base, self.base_id)
    }
}

impl Provision {
    /// `locks` is a folder for lock files: of two processes that want the same image, the second
    /// waits. With `offline`, nothing is pulled or built, since builds download packages.
    pub fn new(
        engine: &Engine,
        options: &Options,
        offline: bool,
        locks: impl Into<PathBuf>,
        progress: &ProgressSink,
    ) -> Self {
        Self {
            engine: engine.clone(),
            patience: options.pull.then(|| options.pull_timeout.duration()),
            locks: locks.into(),
            options: options.clone(),
            offline,
            allow_install: false,
            progress: progress.clone(),
        }
    }

    /// Allows it to install the programs that make a base image; only as root, and only if no
    /// registry answers.
    #[must_use]
    pub fn allow_install(mut self, allow: bool) -> Self {
        self.allow_install = allow;
        self
    }

    /// Returns the image; builds or pulls it first if needed.
    ///
    /// If it is up to date, this takes two requests: the image, and its base.
    #[boxed]
    pub async fn ensure(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<ImageFacts, Error> {
        if let Some(facts) = self.find(name, cancel).await? {
            return Ok(facts);
        }
        let recipe = Recipe::find(name);
        if self.offline {
            let is_outdated = recipe.is_some() && self.engine.image(name, cancel).await?.is_some();
            return Err(Error::Offline {
                image: name.to_owned(),
                is_own: recipe.is_some(),
                is_outdated,
            });
        }
        match recipe {
            Some(recipe) => self.make(recipe, false, cancel).await,
            None => self.pull(name, cancel).await,
        }
    }

    /// Returns the image if it is present and, if it is ours, up to date.
    #[boxed]
    pub async fn find(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<ImageFacts>, Error> {
        let Some(recipe) = Recipe::find(name) else {
            return self.engine.image(name, cancel).await;
        };
        let (state, facts) = self
            .look(recipe, &ImageLookup::Engine(&self.engine), cancel)
            .await?;
        Ok(facts.filter(|_| state == ImageState::Present))
    }

    /// Returns whether Podbay builds the image of this name.
    pub fn is_own(name: &str) -> bool {
        Recipe::find(name).is_some()
    }

    /// Returns the names of the images that Podbay builds.
    pub fn own_names() -> Vec<&'static str> {
        RECIPES.iter().map(|recipe| recipe.image).collect()
    }

    /// Builds one of our images even if it is present; unchanged steps come from the engine's build
    /// cache.
    #[boxed]
    pub async fn build(&self, name: &str, cancel: &CancellationToken) -> Result<ImageFacts, Error> {
        let Some(recipe) = Recipe::find(name) else {
            let problem = format!(
                "Podbay builds only its own: {}",
                Self::own_names().join(", ")
            );
            return Err(Error::NoImage {
                image: name.to_owned(),
                problem,
            });
        };
        if self.offline {
            return Err(Error::Offline {
                image: name.to_owned(),
                is_own: true,
                is_outdated: true,
            });
        }
        self.make(recipe, true, cancel).await
    }

    /// Returns every image that Podbay can build, and the bases that it made for them.
    #[boxed]
    pub async fn list(&self, cancel: &CancellationToken) -> Result<Vec<ListedImage>, Error> {
        let mut listed = Vec::new();
        for recipe in &RECIPES {
            let (state, facts) = self
                .look(recipe, &ImageLookup::Engine(&self.engine), cancel)
                .await?;
            listed.push(ListedImage {
                name: recipe.image.to_owned(),
                state,
                facts,
            });
            if let Base::Debian(suite) = recipe.base {
                let name = base_image::base_name(suite);
                // Several images share a base.
                if !listed.iter().any(|image| image.name == name)
                    && let Some(facts) = self.engine.image(&name, cancel).await?
                {
                    let state = if is_current_base(&facts, &self.chosen()?) {
                        ImageState::Present
                    } else {
                        ImageState::Outdated
                    };
                    listed.push(ListedImage {
                        name,
                        state,
                        facts: Some(facts),
                    });
                }
            }
        }
        Ok(listed)
    }

    async fn make(
        &self,
        recipe: &Recipe,
        forced: bool,
        cancel: &CancellationToken,
    ) -> Result<ImageFacts, Error> {
        // Before the lock: no process waits for a second lock while it holds a first.
        let (base, base_id) = match recipe.base {
            Base::Debian(suite) => self.debian(suite, cancel).await?,
            Base::Ours(name) => (
                name.to_owned(),
                Box::pin(self.ensure(name, cancel)).await?.id,
            ),
        };
        let _lock = self.lock(recipe.image, cancel).await?;
        let old = match self
            .look(recipe, &ImageLookup::Engine(&self.engine), cancel)
            .await?
        {
            // Another process built it while this one waited.
            (ImageState::Present, Some(facts)) if !forced => return Ok(facts),
            (_, old) => old,
        };
        let chosen = self.chosen()?;
        let hash = recipe.hash(&chosen)?;
        let made = ImageOrigin {
            recipe: &hash,
            base: &base,
            base_id: &base_id,
        };
        let labels = Labels {
            spec: Some(made.to_string()),
            ..Labels::new(Role::Image)
        };
        let mut args = debian_archive::build_args(&chosen).await;
        args.insert("BASE".to_owned(), base.clone());
        // Of this build alone: another running build needs its own stages.
        let stage = recipe
            .has_stages()
            .then(|| InstanceId::random().to_string());
        args.extend(stage.clone().map(|stage| ("STAGE".to_owned(), stage)));
        let build = BuildImage {
            tag: recipe.image,
            files: &recipe.context()?,
            args: &args,
            labels: &labels,
            network: None,
        };
        self.engine.build(&build, &self.progress, cancel).await?;
        let facts = self.found(recipe.image, cancel).await?;
        if let Some(old) = old.filter(|old| old.id != facts.id) {
            self.discard(&old.id).await;
        }
        if let Some(stage) = stage {
            match self.engine.stages(&stage, cancel).await {
                Ok(left) => {
                    for id in left {
                        self.discard(&id).await;
                    }
                }
                Err(error) => tracing::debug!(%error, "leftovers of the build were not removed"),
            }
        }
        Ok(facts)
    }

    /// Returns name and id of a Debian base: a present one, the registry's, or one that we make.
    async fn debian(
        &self,
        suite: &str,
        cancel: &CancellationToken,
    ) -> Result<(String, String), Error> {
        let official = format!("debian:{suite}-slim");
        if let Some(facts) = self.engine.image(&official, cancel).await? {
            return Ok((official, facts.id));
        }
        // Our own base means that no registry answered before; asking again would only wait for its
        // timeout.
        let own = base_image::base_name(suite);
        let old = self.engine.image(&own, cancel).await?;
        let chosen = self.chosen()?;
        if let Some(facts) = old.as_ref().filter(|facts| is_current_base(facts, &chosen)) {
            return Ok((own, facts.id.clone()));
        }
        let pulled = match self.patience {
            Some(patience) => {
                self.engine
                    .pull(&official, patience, &self.progress, cancel)
                    .await
            }
            None => Err(Error::Pull {
                image: official.clone(),
                message: "`engine.pull` is off".to_owned(),
            }),
        };
        match pulled {
            Ok(()) => return Ok((official.clone(), self.found(&official, cancel).await?.id)),
            Err(error @ (Error::Cancelled { .. } | Error::NoSpace { .. })) => return Err(error),
            Err(error) => {
                tracing::info!(%error, "no registry gives the base image, so it is made from Debian's archive");
                let _lock = self.lock(&own, cancel).await?;
                if let Some(facts) = self
                    .engine
                    .image(&own, cancel)
                    .await?
                    .filter(|facts| is_current_base(facts, &chosen))
                {
                    return Ok((own, facts.id));
                }
                base_image::make(
                    &self.engine,
                    suite,
                    &chosen,
                    self.allow_install,
                    &self.progress,
                    cancel,
                )
                .await
                .map_err(|made| match made {
                    Error::NoBase { suite, problem } => Error::NoBase {
                        suite,
                        problem: format!("{error}; {problem}"),
                    },
                    other => other,
                })?;
            }
        }
        let facts = self.found(&own, cancel).await?;
        if let Some(old) = old.filter(|old| old.id != facts.id) {
            self.discard(&old.id).await;
        }
        Ok((own, facts.id))
    }

    /// Returns an image that is not ours: present, or from a registry.
    async fn pull(&self, name: &str, cancel: &CancellationToken) -> Result<ImageFacts, Error> {
        let missing = |problem: String| Error::NoImage {
            image: name.to_owned(),
            problem,
        };
        let Some(patience) = self.patience else {
            return Err(missing("`engine.pull` is off".to_owned()));
        };
        match self
            .engine
            .pull(name, patience, &self.progress, cancel)
            .await
        {
            Ok(()) => self.found(name, cancel).await,
            Err(Error::Pull { message, .. }) => {
                Err(missing(format!("pulling it failed: {message}")))
            }
            Err(error) => Err(error),
        }
    }

    async fn found(&self, name: &str, cancel: &CancellationToken) -> Result<ImageFacts, Error> {
        let facts = self.engine.image(name, cancel).await?;
        facts.ok_or_else(|| Error::NoImage {
            image: name.to_owned(),
            problem: "it was removed right after it was made".to_owned(),
        })
    }

    /// Returns the user's choices for builds; reading them is cheap, so it is part of checking an
    /// image.
    pub(super) fn chosen(&self) -> Result<ChosenBuildArgs, Error> {
        ChosenBuildArgs::new(&self.options, |name| std::env::var(name).ok())
    }

    async fn lock(&self, image: &str, cancel: &CancellationToken) -> Result<FileLock, Error> {
        let waiting = || {
            let task = format!("waiting for another Podbay that makes {image}");
            (self.progress)(Progress {
                task,
                done: 0,
                total: None,
                unit: Unit::Steps,
                detail: String::new(),
                finished: false,
            });
        };
        FileLock::wait(
            &self.locks,
            &format!("image-{}", image.replace('/', "-")),
            waiting,
            cancel,
        )
        .await
    }

    /// Removes an image that has lost its name, unless a container or another image needs it.
    async fn discard(&self, id: &str) {
        if let Err(error) = self
            .engine
            .remove_image(id, &CancellationToken::new())
            .await
        {
            tracing::debug!(%error, "the replaced image was not removed");
        }
    }
}

pub(super) fn ours(name: &str) -> &'static Recipe {
    Recipe::find(name).expect("a recipe stands on another of the table, which a test checks")
}

fn is_current_base(facts: &ImageFacts, chosen: &ChosenBuildArgs) -> bool {
    facts
        .labels
        .as_ref()
        .and_then(|labels| labels.spec.as_deref())
        == Some(base_hash(chosen).as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_images_origin_round_trips_through_its_label() {
        let made = ImageOrigin {
            recipe: "00ff",
            base: "debian:trixie-slim",
            base_id: "sha256:11",
        };
        assert_eq!(ImageOrigin::parse(&made.to_string()), Some(made));
        for other in ["", "00ff", "00ff base", "a b c d"] {
            assert_eq!(ImageOrigin::parse(other), None, "{other}");
        }
    }
}
