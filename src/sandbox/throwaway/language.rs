//! Languages, as rows of a data file.

use std::sync::LazyLock;

use serde::Deserialize;

const FILE: &str = include_str!("languages.toml");

/// A language whose code can run in a sandbox of its own.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    pub name: String,
    /// Images that have it, the best first.
    pub images: Vec<String>,
    /// The name of the file that the code is in.
    pub file: String,
    /// The command line that runs it.
    pub command: String,
}

#[derive(Deserialize)]
struct File {
    language: Vec<Language>,
}

static LANGUAGES: LazyLock<Vec<Language>> = LazyLock::new(|| {
    toml::from_str::<File>(FILE)
        .expect("our own file, which a test reads")
        .language
});

/// Returns all of them.
pub fn languages() -> &'static [Language] {
    &LANGUAGES
}

/// Returns the one of this name.
pub fn language(name: &str) -> Option<&'static Language> {
    languages().iter().find(|found| found.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::is_image_name;

    #[test]
    fn each_language_has_images_and_a_command_for_its_file() {
        let names: Vec<&str> = languages().iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["python", "node", "go", "java", "bash"]);
        for row in languages() {
            assert!(!row.images.is_empty(), "{}", row.name);
            assert!(
                row.images.iter().all(|image| is_image_name(image)),
                "{row:?}"
            );
            let (_, suffix) = row.file.rsplit_once('.').expect("a suffix");
            assert!(row.command.contains(&format!(".{suffix}")), "{row:?}");
        }
        assert_eq!(language("go").map(|row| row.file.as_str()), Some("main.go"));
        assert!(language("perl").is_none());
    }
}
