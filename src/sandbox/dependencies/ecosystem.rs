//! Package managers, as rows of a data file.

use std::sync::LazyLock;

use podbay_wire::CACHE_FOLDER;
use podbay_wire::CACHE_OWNED;
use serde::Deserialize;

const FILE: &str = include_str!("ecosystems.toml");

/// The row of what `[setup]` commands keep.
pub const SETUP: &str = "setup";

/// A package manager.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ecosystem {
    pub name: String,
    /// What `install` runs, in a few words.
    #[serde(default)]
    pub summary: String,
    /// A command line that succeeds in an image that has what it takes.
    pub probe: String,
    /// The runtime of ours that has it.
    #[serde(default)]
    pub runtime: Option<String>,
    /// The hosts of its usual registry.
    #[serde(default)]
    pub preset: Option<String>,
    #[serde(default)]
    manifests: Vec<String>,
    #[serde(default)]
    unless: Vec<String>,
    #[serde(default)]
    pub files: Vec<NamedFile>,
    #[serde(default)]
    install: String,
    #[serde(default)]
    install_variables: Vec<String>,
    #[serde(default)]
    variables: Vec<String>,
    /// A folder with programs, behind those of the image.
    #[serde(default)]
    path: Option<String>,
}

/// A file that may name registries, by its path in the project.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedFile {
    pub name: String,
    /// What a line must have to count; none: every line counts.
    #[serde(default)]
    pub(super) marks: Vec<String>,
    /// What the lines that count stand between.
    #[serde(default)]
    pub(super) section: Option<[String; 2]>,
    /// URLs that name no host of an installation.
    #[serde(default)]
    pub(super) ignored: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    ecosystem: Vec<Ecosystem>,
}

static ECOSYSTEMS: LazyLock<Vec<Ecosystem>> = LazyLock::new(|| {
    toml::from_str::<File>(FILE)
        .expect("our own file, which a test reads")
        .ecosystem
});

/// Returns all of them.
pub fn ecosystems() -> &'static [Ecosystem] {
    &ECOSYSTEMS
}

/// Returns the one of this name.
pub fn ecosystem(name: &str) -> Option<&'static Ecosystem> {
    ecosystems().iter().find(|found| found.name == name)
}

/// Returns those that a project uses, by the names in its top folder.
pub fn ecosystems_of(names: &[&str]) -> Vec<&'static Ecosystem> {
    let has = |files: &[String]| files.iter().any(|file| names.contains(&file.as_str()));
    ecosystems()
        .iter()
        .filter(|ecosystem| has(&ecosystem.manifests) && !has(&ecosystem.unless))
        .collect()
}

impl Ecosystem {
    /// Returns where its cache is mounted.
    pub(super) fn mounted_at(&self) -> String {
        format!("{CACHE_FOLDER}/{}", self.name)
    }

    /// Returns the folder of its cache that commands may use.
    pub fn folder(&self) -> String {
        format!("{}/{CACHE_OWNED}", self.mounted_at())
    }

    /// Returns the script that gets a project's dependencies.
    pub fn script(&self, image: &str) -> String {
        self.filled(&self.install, image)
    }

    /// Returns the variables of the install phase, beside those of every command.
    pub fn install_variables(&self, image: &str) -> Vec<(String, String)> {
        let pair = |pair: &String| {
            let (name, value) = pair.split_once('=')?;
            Some((name.to_owned(), self.filled(value, image)))
        };
        self.install_variables.iter().filter_map(pair).collect()
    }

    /// Returns the variables of every command, as `NAME=VALUE`.
    pub(super) fn variables(&self, image: &str) -> Vec<String> {
        self.variables
            .iter()
            .map(|pair| self.filled(pair, image))
            .collect()
    }

    /// Returns the folder of the programs that were installed.
    pub(super) fn path(&self, image: &str) -> Option<String> {
        self.path.as_ref().map(|path| self.filled(path, image))
    }

    /// Names the files by which a project shows that it uses this one.
    pub fn manifests(&self) -> &[String] {
        &self.manifests
    }

    fn filled(&self, text: &str, image: &str) -> String {
        text.replace("{cache}", &self.folder())
            .replace("{image}", &short(image))
    }
}

/// Returns enough of an image's id to tell it from others, as a part of a file's name.
fn short(image: &str) -> String {
    let id = image.rsplit(':').next().unwrap_or(image);
    id.chars()
        .filter(char::is_ascii_alphanumeric)
        .take(12)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::super::network::presets;
    use super::*;

    #[track_caller]
    fn check(names: &[&str], expected: &[&str]) {
        let found: Vec<&str> = ecosystems_of(names)
            .into_iter()
            .map(|found| found.name.as_str())
            .collect();
        assert_eq!(found, expected, "{names:?}");
    }

    #[test]
    fn a_project_uses_what_its_manifests_say() {
        check(&["README.md"], &[]);
        check(&["requirements.txt"], &["pip"]);
        check(&["pyproject.toml", "uv.lock"], &["uv"]);
        check(&["package.json", "package-lock.json"], &["npm"]);
        check(&["package.json", "pnpm-lock.yaml"], &["pnpm"]);
        check(&["package.json", "yarn.lock"], &[]);
        check(
            &["Cargo.toml", "go.mod", "pom.xml"],
            &["cargo", "go", "maven"],
        );
    }

    #[test]
    fn every_row_has_a_name_of_its_own_and_known_parts() {
        let names: BTreeSet<&str> = ecosystems().iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names.len(), ecosystems().len());
        assert!(ecosystem(SETUP).is_some_and(|row| row.manifests.is_empty()));
        for row in ecosystems() {
            assert!(row.name.bytes().all(|byte| byte.is_ascii_lowercase()));
            let is_known = |name: &String| presets().iter().any(|preset| preset.name == *name);
            assert!(row.preset.iter().all(is_known), "{}", row.name);
            assert_eq!(row.install.is_empty(), row.name == SETUP, "{}", row.name);
            assert_eq!(row.summary.is_empty(), row.name == SETUP, "{}", row.name);
            let program = row.summary.split(' ').next().unwrap_or_default();
            assert!(row.install.contains(program), "{}", row.name);
            for pair in row.install_variables.iter().chain(&row.variables) {
                assert!(
                    pair.split_once('=')
                        .is_some_and(|(name, _)| !name.is_empty())
                );
            }
            let filled = [row.script("sha256:00ff"), row.variables("x").concat()].concat();
            assert!(!filled.contains("{cache}") && !filled.contains("{image}"));
        }
    }

    #[test]
    fn what_fits_one_image_has_a_folder_of_its_own() {
        let pip = ecosystem("pip").expect("a row");
        assert_eq!(
            pip.variables("sha256:0123456789abcdef"),
            ["PYTHONPATH=/run/podbay/cache/pip/data/site-0123456789ab"]
        );
        assert_ne!(pip.variables("sha256:01"), pip.variables("sha256:02"));
    }
}
