use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;

use podbay_inference::parts;
use podbay_sandbox::is_image_name;

/// The format that this version writes and reads.
pub(super) const FORMAT: u64 = 1;

/// The bundle's first entry.
pub(super) const MANIFEST: &str = "podbay-bundle.json";

/// Its second one: all images, as the engine packs them.
pub(super) const IMAGES: &str = "images.tar";

/// Folder of the models' entries.
const MODELS: &str = "models/";

/// Most bytes of a manifest.
pub(super) const MOST_MANIFEST: u64 = 1 << 20;

/// Most bytes of one part; larger numbers are lies.
const MOST_PART: u64 = 1 << 42;

/// Most images, and most files of models.
const MOST_ENTRIES: usize = 256;

/// What is in a bundle. Nothing in it says who made it, or where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Manifest {
    pub(super) format: u64,
    /// Version of the program that wrote it.
    pub(super) podbay: String,
    /// The processors it is for.
    pub(super) architecture: String,
    pub(super) images: Vec<Image>,
    pub(super) archive: Part,
    pub(super) models: Vec<Model>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct Image {
    /// With its tag.
    pub(super) name: String,
    /// SHA-256 of its configuration, which names all of its layers.
    pub(super) config: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Part {
    pub(super) size: u64,
    pub(super) sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Model {
    pub(super) name: String,
    /// Its name in the folder of models.
    pub(super) file: String,
    pub(super) size: u64,
    pub(super) sha256: String,
}

impl Manifest {
    /// Returns each entry behind the manifest: its path, its size and its hash.
    pub(super) fn entries(&self) -> Vec<(String, u64, &str)> {
        let archive = (
            IMAGES.to_owned(),
            self.archive.size,
            self.archive.sha256.as_str(),
        );
        let models = self.models.iter().map(|model| {
            (
                format!("{MODELS}{}", model.file),
                model.size,
                model.sha256.as_str(),
            )
        });
        std::iter::once(archive).chain(models).collect()
    }

    /// Looks for what no bundle of ours has.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.images.is_empty()
            || self.images.len() > MOST_ENTRIES
            || self.models.len() > MOST_ENTRIES
        {
            return Err(format!(
                "it lists {} images and {} models",
                self.images.len(),
                self.models.len()
            ));
        }
        let mut names = BTreeSet::new();
        for image in &self.images {
            let has_tag =
                podbay_engine::with_tag(&image.name).is_some_and(|full| full == image.name);
            if !is_image_name(&image.name) || !has_tag || !is_hash(&image.config) {
                return Err(format!("`{}` is no image with a tag", image.name));
            }
            if !names.insert(&image.name) {
                return Err(format!("the image `{}` is there twice", image.name));
            }
        }
        let mut files = BTreeSet::new();
        for model in &self.models {
            if !is_model_file(&model.file) {
                return Err(format!("`{}` is no name for a model's file", model.file));
            }
            if !is_model_name(&model.name) {
                return Err(format!("`{}` is no name for a model", model.name));
            }
            if !files.insert(model.file.to_ascii_lowercase()) {
                return Err(format!("the file `{}` is there twice", model.file));
            }
        }
        if let Some(name) = ambiguous(
            self.models
                .iter()
                .map(|model| (model.name.as_str(), model.file.as_str())),
        ) {
            return Err(format!("`{name}` names two models"));
        }
        for (path, size, hash) in self.entries() {
            if !is_hash(hash) || size > MOST_PART {
                return Err(format!("size or hash of `{path}` cannot be true"));
            }
        }
        Ok(())
    }
}

/// Returns a name that two models have. The parts of a split model are one model, and share theirs.
pub(super) fn ambiguous<'a>(models: impl Iterator<Item = (&'a str, &'a str)>) -> Option<&'a str> {
    let mut whole: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    for (name, file) in models {
        let file = Path::new(file);
        let known = whole
            .entry(name.to_ascii_lowercase())
            .or_insert_with(|| parts(file));
        if !known.iter().any(|part| part == file) {
            return Some(name);
        }
    }
    None
}

/// Returns whether a text is a SHA-256 as we write it.
pub(super) fn is_hash(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Returns whether a file of this name may be put into the folder of models.
pub(super) fn is_model_file(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+');
    // A tar's own header holds a hundred bytes of a name.
    (6..=90).contains(&name.len())
        && name.strip_suffix(".gguf").is_some()
        && !name.starts_with(['.', '-'])
        && name.chars().all(is_plain)
}

/// Returns whether a text can be the name of a model: it is shown, and typed by a user.
fn is_model_name(name: &str) -> bool {
    let is_odd = |c: char| c.is_control() || matches!(c, '/' | '\\');
    (1..=200).contains(&name.len())
        && name.trim() == name
        && !name.starts_with(['.', '-'])
        && !name.contains(is_odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole() -> Manifest {
        let hash = "0".repeat(64);
        Manifest {
            format: FORMAT,
            podbay: "0.1.0".to_owned(),
            architecture: "x86_64".to_owned(),
            images: vec![Image {
                name: "podbay/workspace:latest".to_owned(),
                config: hash.clone(),
            }],
            archive: Part {
                size: 1,
                sha256: hash.clone(),
            },
            models: vec![Model {
                name: "a".to_owned(),
                file: "a.gguf".to_owned(),
                size: 1,
                sha256: hash,
            }],
        }
    }

    #[test]
    fn the_parts_of_one_model_share_its_name() {
        let mut manifest = whole();
        let part = |at: u32| Model {
            file: format!("m-0000{at}-of-00002.gguf"),
            ..manifest.models[0].clone()
        };
        manifest.models = vec![part(1), part(2)];
        manifest.check().expect("one model");
        manifest.models[1].file = "n-00002-of-00002.gguf".to_owned();
        assert!(manifest.check().is_err());
    }

    #[track_caller]
    fn refused(change: impl FnOnce(&mut Manifest), because: &str) {
        let mut manifest = whole();
        change(&mut manifest);
        let problem = manifest.check().expect_err("must be refused");
        assert!(problem.contains(because), "{problem}");
    }

    #[test]
    fn what_no_bundle_of_ours_has_is_refused() {
        whole().check().expect("this one is whole");
        refused(|m| m.images.clear(), "0 images");
        refused(
            |m| m.images[0].name = "podbay/workspace".to_owned(),
            "no image with a tag",
        );
        refused(
            |m| m.images[0].name = "../x:1".to_owned(),
            "no image with a tag",
        );
        refused(
            |m| m.images[0].config = "F".repeat(64),
            "no image with a tag",
        );
        refused(|m| m.images.push(m.images[0].clone()), "twice");
        refused(
            |m| {
                m.models.push(Model {
                    file: "A.gguf".to_owned(),
                    ..m.models[0].clone()
                });
            },
            "twice",
        );
        refused(
            |m| {
                m.models.push(Model {
                    name: "A".to_owned(),
                    file: "b.gguf".to_owned(),
                    ..m.models[0].clone()
                });
            },
            "names two models",
        );
        for name in [
            "../../../y",
            "/y",
            "-y",
            "",
            " ",
            "a\u{1b}[2J",
            &"y".repeat(201),
        ] {
            refused(
                |m| m.models[0].name = name.to_owned(),
                "no name for a model",
            );
        }
        refused(|m| m.archive.size = u64::MAX, "images.tar");
        refused(|m| m.models[0].sha256.clear(), "models/a.gguf");
        for name in [
            "../a.gguf",
            "/a.gguf",
            "a/b.gguf",
            ".a.gguf",
            "-a.gguf",
            "a.sh",
            "a\n.gguf",
            &format!("{}.gguf", "a".repeat(90)),
        ] {
            refused(
                |m| m.models[0].file = name.to_owned(),
                "no name for a model's file",
            );
        }
    }
}
