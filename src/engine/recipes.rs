//! The folders of `images/`, embedded in the program, so that a copy of the program suffices.

use bytes::Bytes;
use sha2::Digest;
use sha2::Sha256;

use super::Error;
use super::debian_archive::ChosenBuildArgs;

/// One of our images, and what it is made from.
#[derive(Debug)]
pub(super) struct Recipe {
    /// The image's name without a tag.
    pub(super) image: &'static str,
    pub(super) base: Base,
    files: &'static [File],
    /// Whether this program is copied into it.
    program: bool,
}

/// The base of one of our images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    /// A release of Debian.
    Debian(&'static str),
    /// Another image of ours.
    Ours(&'static str),
}

#[derive(Debug)]
struct File {
    name: &'static str,
    content: &'static [u8],
    executable: bool,
}

/// The script that makes a base's file system where no registry answers.
pub(super) const BASE_SCRIPT: &[u8] = include_bytes!("../../images/base/make.sh");

const WORKSPACE: Base = Base::Ours("podbay/workspace");

macro_rules! dockerfile {
    ($folder:literal) => {
        File {
            name: "Dockerfile",
            content: include_bytes!(concat!("../../images/", $folder, "/Dockerfile")),
            executable: false,
        }
    };
}

/// An image comes after its base.
pub(super) const RECIPES: [Recipe; 8] = [
    Recipe {
        image: "podbay/workspace",
        base: Base::Debian("trixie"),
        files: &[
            dockerfile!("workspace"),
            File {
                name: "apt-install",
                content: include_bytes!("../../images/workspace/apt-install"),
                executable: true,
            },
        ],
        program: false,
    },
    Recipe {
        image: "podbay/llama-server",
        base: Base::Debian("forky"),
        files: &[dockerfile!("llama-server")],
        program: false,
    },
    Recipe {
        image: "podbay/podbay",
        base: Base::Debian("trixie"),
        files: &[dockerfile!("podbay")],
        program: true,
    },
    Recipe {
        image: "podbay/python",
        base: WORKSPACE,
        files: &[dockerfile!("python")],
        program: false,
    },
    Recipe {
        image: "podbay/node",
        base: WORKSPACE,
        files: &[dockerfile!("node")],
        program: false,
    },
    Recipe {
        image: "podbay/go",
        base: WORKSPACE,
        files: &[dockerfile!("go")],
        program: false,
    },
    Recipe {
        image: "podbay/java",
        base: WORKSPACE,
        files: &[dockerfile!("java")],
        program: false,
    },
    Recipe {
        image: "podbay/rust",
        base: WORKSPACE,
        files: &[dockerfile!("rust")],
        program: false,
    },
];

impl Recipe {
    /// Returns the recipe of one of our images, with or without the tag `latest`.
    pub(super) fn find(image: &str) -> Option<&'static Self> {
        let name = image.strip_suffix(":latest").unwrap_or(image);
        RECIPES.iter().find(|recipe| recipe.image == name)
    }

    /// Returns path, bytes and mode of every file of the build context.
    pub(super) fn context(&self) -> Result<Vec<(String, Bytes, bool)>, Error> {
        let carried = self.files.iter().map(|file| {
            (
                file.name.to_owned(),
                Bytes::from_static(file.content),
                file.executable,
            )
        });
        let own = if self.program {
            Some(("podbay".to_owned(), program()?, true))
        } else {
            None
        };
        Ok(carried.chain(own).collect())
    }

    /// Returns whether it is built in stages, of which the legacy builder leaves images behind.
    pub(super) fn has_stages(&self) -> bool {
        let is_mark = |line: &[u8]| line.starts_with(b"ARG STAGE=");
        self.files.iter().any(|file| {
            file.name == "Dockerfile" && file.content.split(|&byte| byte == b'\n').any(is_mark)
        })
    }

    /// Returns a hash of the files and of the user's build arguments.
    pub(super) fn hash(&self, chosen: &ChosenBuildArgs) -> Result<String, Error> {
        let mut hasher = Sha256::new();
        for (name, content, executable) in self.context()? {
            hasher.update(name);
            hasher.update([0, u8::from(executable)]);
            hasher.update(content.len().to_le_bytes());
            hasher.update(content);
        }
        chosen.hash_into(&mut hasher);
        Ok(short(&hasher.finalize()))
    }
}

/// Returns a hash of the script that makes bases and of the archive chosen for them.
pub(super) fn base_hash(chosen: &ChosenBuildArgs) -> String {
    let mut hasher = Sha256::new_with_prefix(BASE_SCRIPT);
    if let Some(mirror) = chosen.mirror() {
        hasher.update(mirror);
    }
    short(&hasher.finalize())
}

/// Reads the running program; its path may belong to a newer build by now.
fn program() -> Result<Bytes, Error> {
    std::fs::read("/proc/self/exe")
        .map(Bytes::from)
        .map_err(|source| Error::Program {
            program: "podbay",
            source,
        })
}

fn short(digest: &[u8]) -> String {
    digest
        .iter()
        .take(16)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    #[test]
    fn every_file_of_every_image_folder_is_embedded() {
        let images = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../images");
        let mut found = BTreeSet::new();
        for folder in fs::read_dir(&images).expect("the folder of images") {
            let folder = folder.expect("readable").path();
            for file in fs::read_dir(&folder).expect("a folder for each image") {
                let file = file.expect("readable").path();
                let executable =
                    fs::metadata(&file).expect("readable").permissions().mode() & 0o100 != 0;
                let name = file
                    .strip_prefix(&images)
                    .expect("it lies there")
                    .to_str()
                    .expect("UTF-8")
                    .to_owned();
                found.insert((name, fs::read(&file).expect("readable"), executable));
            }
        }
        let mut carried = BTreeSet::from([("base/make.sh".to_owned(), BASE_SCRIPT.to_vec(), true)]);
        for recipe in &RECIPES {
            let folder = recipe.image.strip_prefix("podbay/").expect("our prefix");
            for file in recipe.files {
                carried.insert((
                    format!("{folder}/{}", file.name),
                    file.content.to_vec(),
                    file.executable,
                ));
            }
        }
        let names = |set: &BTreeSet<(String, Vec<u8>, bool)>| {
            set.iter().map(|file| file.0.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&carried), names(&found));
        assert!(carried == found, "a file's bytes or mode differ");
    }

    #[test]
    fn every_leftover_build_stage_is_labelled() {
        for recipe in &RECIPES {
            let dockerfile = recipe
                .files
                .iter()
                .find(|file| file.name == "Dockerfile")
                .expect("each has one");
            let text = std::str::from_utf8(dockerfile.content).expect("UTF-8");
            let n_stages = text
                .lines()
                .filter(|line| line.starts_with("FROM "))
                .count();
            let n_marks = text
                .lines()
                .filter(|line| *line == "LABEL dev.podbay.stage=${STAGE}")
                .count();
            assert_eq!(
                (n_marks, recipe.has_stages()),
                (n_stages - 1, n_stages > 1),
                "{}",
                recipe.image
            );
        }
    }

    #[test]
    fn a_base_comes_before_the_images_on_it() {
        for (at, recipe) in RECIPES.iter().enumerate() {
            if let Base::Ours(name) = recipe.base {
                assert!(
                    RECIPES[..at].iter().any(|earlier| earlier.image == name),
                    "{}",
                    recipe.image
                );
            }
        }
    }

    #[test]
    fn another_tag_names_another_image() {
        assert!(Recipe::find("podbay/python:latest").is_some());
        assert!(Recipe::find("podbay/python:mine").is_none());
        assert!(Recipe::find("python").is_none());
    }
}
