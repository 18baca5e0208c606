//! The files of a model: where each comes from, and its path on this machine.

use std::path::Path;
use std::path::PathBuf;

use reqwest::Url;

use super::Entry;
use super::Source;
use super::atomic_file;

/// One file of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ModelFile {
    /// Path below the folder of models.
    pub(super) to: PathBuf,
    pub(super) from: FileSource,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileSource {
    /// A URL, of the hub or another server.
    Address {
        url: String,
        of_hub: bool,
    },
    File(PathBuf),
    /// A file in the package of the entry's source.
    Package,
}

/// Returns the files of a model. Models of different sources never share a path, whatever their
/// files' names.
pub(super) fn pieces(entry: &Entry, hub: &Url) -> Vec<ModelFile> {
    match &entry.source {
        Source::Hub {
            repository,
            revision,
            files,
        } => {
            let folder = format!(
                "{}{}",
                repository.replace('/', "--"),
                if revision == "main" {
                    String::new()
                } else {
                    format!("@{revision}")
                }
            );
            let base = hub.as_str().trim_end_matches('/');
            let piece = |file: &String| ModelFile {
                to: Path::new("hub").join(&folder).join(file.replace('/', "--")),
                from: FileSource::Address {
                    url: format!("{base}/{repository}/resolve/{revision}/{file}"),
                    of_hub: true,
                },
            };
            files.iter().map(piece).collect()
        }
        Source::Url { files } => {
            // All parts of a model are in one folder, and find each other by name.
            let folder = Path::new("url").join(
                &atomic_file::hex(&atomic_file::sha256(
                    files
                        .first()
                        .map_or("", |first| folder_of(first))
                        .as_bytes(),
                ))[..12],
            );
            let piece = |url: &String| ModelFile {
                to: folder.join(last(url)),
                from: FileSource::Address {
                    url: url.clone(),
                    of_hub: false,
                },
            };
            files.iter().map(piece).collect()
        }
        Source::Path { files } => {
            let piece = |path: &PathBuf| {
                Some(ModelFile {
                    to: Path::new("local").join(path.file_name()?),
                    from: FileSource::File(path.clone()),
                })
            };
            files.iter().filter_map(piece).collect()
        }
        Source::Wheel { member, .. } => vec![ModelFile {
            to: PathBuf::from(last(member)),
            from: FileSource::Package,
        }],
    }
}

impl ModelFile {
    /// Returns a description of the file's source for the user, without the URL's password.
    pub(super) fn origin(&self, entry: &Entry) -> String {
        match (&self.from, &entry.source) {
            (FileSource::Address { url, .. }, _) => {
                Url::parse(url).map_or_else(|_| String::new(), |url| super::download::shown(&url))
            }
            (FileSource::File(path), _) => path.display().to_string(),
            (FileSource::Package, Source::Wheel { url, member, .. }) => format!("{url} ({member})"),
            (FileSource::Package, _) => String::new(),
        }
    }
}

fn without_query(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

fn folder_of(url: &str) -> &str {
    without_query(url)
        .rsplit_once('/')
        .map_or("", |(folder, _)| folder)
}

/// Returns the last component of a path, without characters that could make it another path.
pub(super) fn last(path: &str) -> String {
    let name = without_query(path).rsplit('/').next().unwrap_or_default();
    let clean: String = name
        .chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() || "._-+".contains(c) {
                c
            } else {
                '_'
            }
        })
        .collect();
    if clean.starts_with('.') || clean.is_empty() {
        format!("model{clean}")
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::super::catalogue::built_in;
    use super::super::reference::parse;
    use super::*;

    fn hub() -> Url {
        Url::parse("https://hub.example/").expect("an address")
    }

    #[test]
    fn no_two_models_share_a_file() {
        let others = [
            "hf:a/b/c.gguf",
            "hf:a/d/c.gguf",
            "hf:a/b@v1/c.gguf",
            "https://e.example/c.gguf",
            "https://f.example/c.gguf",
        ];
        let others = others.map(|text| parse(text, &hub()).expect("fine").expect("a reference"));
        let mut seen = std::collections::HashSet::new();
        for entry in built_in().iter().chain(&others) {
            for piece in pieces(entry, &hub()) {
                assert!(
                    piece.to.is_relative() && !piece.to.to_string_lossy().contains(".."),
                    "{piece:?}"
                );
                assert!(!piece.origin(entry).is_empty());
                assert!(seen.insert(piece.to), "{}", entry.id);
            }
        }
    }

    #[test]
    fn a_hub_file_is_requested_by_its_revision() {
        let entry = parse("hf:a/b@v1/x/c.gguf", &hub())
            .expect("fine")
            .expect("a reference");
        let from = FileSource::Address {
            url: "https://hub.example/a/b/resolve/v1/x/c.gguf".into(),
            of_hub: true,
        };
        assert_eq!(
            pieces(&entry, &hub()),
            [ModelFile {
                to: "hub/a--b@v1/x--c.gguf".into(),
                from
            }]
        );
    }

    #[test]
    fn a_url_cannot_name_a_path_outside_the_folder() {
        for (url, name) in [
            ("https://a/b/..", "model.."),
            ("https://a/b/?x=/../y", "model"),
            ("https://a/.x.gguf#y", "model.x.gguf"),
        ] {
            assert_eq!(last(url), name);
        }
    }
}
