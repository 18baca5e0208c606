//! Whether images are present and up to date: by a request for each, or by one list of all.

use std::collections::HashMap;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::Engine;
use super::Error;
use super::ImageFacts;
use super::Provision;
use super::image::split_tag;
use super::provision::ImageOrigin;
use super::provision::ImageState;
use super::provision::ours;
use super::recipes::Base;
use super::recipes::Recipe;

/// Where facts about an image come from.
pub(super) enum ImageLookup<'a> {
    Engine(&'a Engine),
    /// By name with tag.
    List(HashMap<String, ImageFacts>),
}

impl ImageLookup<'_> {
    fn of_list(images: Vec<ImageFacts>) -> Self {
        let by_name = images.into_iter().flat_map(|image| {
            let names = image.tags.clone();
            names.into_iter().map(move |name| (name, image.clone()))
        });
        Self::List(by_name.collect())
    }

    async fn image(
        &self,
        name: &str,
        cancel: &CancellationToken,
    ) -> Result<Option<ImageFacts>, Error> {
        match self {
            Self::Engine(engine) => engine.image(name, cancel).await,
            Self::List(images) => {
                let (repository, tag) = split_tag(name);
                Ok(images.get(&format!("{repository}:{tag}")).cloned())
            }
        }
    }
}

impl Provision {
    /// Returns those of these images that are present and, if they are ours, up to date. It takes
    /// one request, however many they are.
    #[boxed]
    pub async fn present<'n>(
        &self,
        names: &[&'n str],
        cancel: &CancellationToken,
    ) -> Result<Vec<&'n str>, Error> {
        let list = ImageLookup::of_list(self.engine.all_images(cancel).await?);
        let mut present = Vec::new();
        for &name in names {
            let is_present = match Recipe::find(name) {
                None => list.image(name, cancel).await?.is_some(),
                Some(recipe) => self.look(recipe, &list, cancel).await?.0 == ImageState::Present,
            };
            if is_present {
                present.push(name);
            }
        }
        Ok(present)
    }

    /// Compares an image with what it would be made from now.
    pub(super) async fn look(
        &self,
        recipe: &Recipe,
        images: &ImageLookup<'_>,
        cancel: &CancellationToken,
    ) -> Result<(ImageState, Option<ImageFacts>), Error> {
        let Some(facts) = images.image(recipe.image, cancel).await? else {
            return Ok((ImageState::Absent, None));
        };
        let hash = recipe.hash(&self.chosen()?)?;
        let Some(made) = ImageOrigin::of(&facts).filter(|made| made.recipe == hash) else {
            return Ok((ImageState::Outdated, Some(facts)));
        };
        // A removed base is not needed: the image contains all of it.
        let (state, base) = match recipe.base {
            Base::Debian(_) => (ImageState::Present, images.image(made.base, cancel).await?),
            Base::Ours(name) => Box::pin(self.look(ours(name), images, cancel)).await?,
        };
        let same = base.is_none_or(|base| base.id == made.base_id && state == ImageState::Present);
        Ok((
            if same {
                ImageState::Present
            } else {
                ImageState::Outdated
            },
            Some(facts),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_list_knows_an_image_by_each_of_its_names_with_or_without_latest() {
        let image = |id: &str, tags: &[&str]| ImageFacts {
            id: id.to_owned(),
            tags: tags.iter().map(|&tag| tag.to_owned()).collect(),
            labels: None,
            volumes: Vec::new(),
            env: Vec::new(),
            architecture: String::new(),
            size: 0,
        };
        let list = ImageLookup::of_list(vec![
            image("1", &["podbay/node:latest", "here:5000/node:mine"]),
            image("2", &["debian:trixie-slim"]),
            image("3", &[]),
        ]);
        for (name, id) in [
            ("podbay/node", Some("1")),
            ("podbay/node:latest", Some("1")),
            ("podbay/node:mine", None),
            ("here:5000/node:mine", Some("1")),
            ("here:5000/node", None),
            ("debian:trixie-slim", Some("2")),
            ("debian", None),
            ("node", None),
        ] {
            let found = list.image(name, &CancellationToken::new()).await;
            let found = found.expect("a list does not fail");
            assert_eq!(found.as_ref().map(|image| image.id.as_str()), id, "{name}");
        }
    }
}
