//! Models that are named by their source: a file of the hub, or a URL.

use std::env;
use std::path::Path;
use std::path::PathBuf;

use reqwest::Url;

use super::Entry;
use super::Error;
use super::Source;
use super::catalogue::main_branch;
use super::download::is_safe;
use super::download::shown;
use super::opened_model::is_stray_part;
use super::opened_model::parts;

const STRAY: &str =
    "its name says that it is a part of a model, and there is no model of such parts";

/// Parses `hf:OWNER/REPOSITORY/FILE.gguf` or a URL; `None` for other text.
pub(super) fn parse(text: &str, hub: &Url) -> Result<Option<Entry>, Error> {
    let refuse = |problem: &str| Error::Reference {
        text: text.chars().take(200).collect(),
        problem: problem.to_owned(),
    };
    if let Some(rest) = text.strip_prefix("hf:") {
        let mut words = rest.splitn(3, '/');
        let (Some(owner), Some(name), Some(file)) = (words.next(), words.next(), words.next())
        else {
            return Err(refuse("it names no owner, repository and file"));
        };
        let (name, revision) = name
            .split_once('@')
            .map_or((name, main_branch()), |(name, revision)| {
                (name, revision.to_owned())
            });
        return of_hub(&format!("{owner}/{name}"), &revision, file)
            .map(Some)
            .map_err(refuse);
    }
    if !text.contains("://") {
        return Ok(None);
    }
    let url = Url::parse(text).map_err(|error| {
        // In an invalid URL too, a password ends at the last `@`.
        let text = text
            .rsplit_once('@')
            .map_or_else(|| text.to_owned(), |(_, rest)| format!("…@{rest}"));
        Error::Reference {
            text,
            problem: format!("the address cannot be read: {error}"),
        }
    })?;
    // Error messages show the URL without its password.
    let refuse = |problem: &str| Error::Reference {
        text: shown(&url),
        problem: problem.to_owned(),
    };
    if url.scheme() == "file" {
        return Err(refuse(
            "a file of this machine is named by its path alone, without file://",
        ));
    }
    if !is_safe(&url) {
        return Err(refuse(
            "the address is not encrypted; only https:// can be loaded, and http:// from this machine itself",
        ));
    }
    if let Some((repository, revision, file)) = page_of_hub(&url, hub) {
        return of_hub(&repository, &revision, &file)
            .map(Some)
            .map_err(refuse);
    }
    let file = url
        .path_segments()
        .and_then(|mut segments| segments.next_back().map(str::to_owned))
        .unwrap_or_default();
    if !is_file_name(&file) {
        return Err(refuse("the address is not that of a .gguf file"));
    }
    if is_stray_part(Path::new(&file)) {
        return Err(refuse(STRAY));
    }
    let files = all_parts(&file)
        .into_iter()
        .filter_map(|part| url.join(&part).ok());
    // All parts get the query; `join` drops it.
    let files = files.map(|mut part| {
        part.set_query(url.query());
        part.to_string()
    });
    Ok(Some(entry(
        &file,
        Source::Url {
            files: files.collect(),
        },
    )))
}

/// Makes an entry for files of this machine.
pub(super) fn of_path(path: &Path) -> Entry {
    let name = path
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    entry(&name, Source::Path { files: parts(path) })
}

/// Expands `~/`: a path from a configuration file has passed no shell.
pub(super) fn expand(text: &str) -> PathBuf {
    match text.strip_prefix("~/").zip(env::var_os("HOME")) {
        Some((rest, home)) => Path::new(&home).join(rest),
        None => PathBuf::from(text),
    }
}

fn of_hub(repository: &str, revision: &str, file: &str) -> Result<Entry, &'static str> {
    if !is_repository(repository) {
        return Err("a repository is written OWNER/NAME");
    }
    if !is_word(revision) {
        return Err("what follows @ is no branch, tag or commit");
    }
    if !is_file_name(file) {
        return Err("it names no .gguf file of the repository");
    }
    if is_stray_part(Path::new(file)) {
        return Err(STRAY);
    }
    let source = Source::Hub {
        repository: repository.to_owned(),
        revision: revision.to_owned(),
        files: all_parts(file),
    };
    Ok(entry(file, source))
}

/// Parses the URL of a file's page, as users copy it from the browser.
fn page_of_hub(url: &Url, hub: &Url) -> Option<(String, String, String)> {
    let base = hub.as_str().trim_end_matches('/');
    let rest = url
        .as_str()
        .strip_prefix(base)?
        .strip_prefix('/')?
        .split(['?', '#'])
        .next()?;
    let words: Vec<&str> = rest.splitn(5, '/').collect();
    let [owner, name, "resolve" | "blob", revision, file] = words[..] else {
        return None;
    };
    Some((
        format!("{owner}/{name}"),
        revision.to_owned(),
        file.to_owned(),
    ))
}

fn all_parts(file: &str) -> Vec<String> {
    parts(Path::new(file))
        .into_iter()
        .map(|part| part.to_string_lossy().into_owned())
        .collect()
}

fn entry(file: &str, source: Source) -> Entry {
    let stem = Path::new(file)
        .file_stem()
        .map(|stem| stem.to_string_lossy().into_owned())
        .unwrap_or_default();
    let id: String = stem.chars().filter(|c| !c.is_control()).take(100).collect();
    Entry::bare(&id, source)
}

/// Returns whether a text is one safe path component.
pub(super) fn is_word(text: &str) -> bool {
    text.len() <= 200
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+'))
}

pub(super) fn is_repository(text: &str) -> bool {
    text.split_once('/')
        .is_some_and(|(owner, name)| is_word(owner) && is_word(name))
}

/// Returns whether a text is a safe relative path of a model's file.
pub(super) fn is_file_name(text: &str) -> bool {
    text.len() <= 200
        && text.to_ascii_lowercase().ends_with(".gguf")
        && text.split('/').all(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Option<Source>, Error> {
        let hub = Url::parse("https://huggingface.co").expect("an address");
        parse(text, &hub).map(|entry| entry.map(|entry| entry.source))
    }

    fn hub(repository: &str, revision: &str, files: &[&str]) -> Source {
        let files = files.iter().map(|&file| file.to_owned()).collect();
        Source::Hub {
            repository: repository.into(),
            revision: revision.into(),
            files,
        }
    }

    #[test]
    fn a_hub_file_has_several_spellings() {
        for text in [
            "hf:a/b/c.gguf",
            "https://huggingface.co/a/b/blob/main/c.gguf",
            "https://huggingface.co/a/b/resolve/main/c.gguf?download=true",
        ] {
            assert_eq!(
                read(text).expect("fine"),
                Some(hub("a/b", "main", &["c.gguf"])),
                "{text}"
            );
        }
        assert_eq!(
            read("hf:a/b@v1/x/c.gguf").expect("fine"),
            Some(hub("a/b", "v1", &["x/c.gguf"]))
        );
        let split = hub(
            "a/b",
            "main",
            &["c-00001-of-00002.gguf", "c-00002-of-00002.gguf"],
        );
        assert_eq!(
            read("hf:a/b/c-00001-of-00002.gguf").expect("fine"),
            Some(split)
        );
    }

    #[test]
    fn a_url_keeps_its_query_and_password() {
        let url = Source::Url {
            files: vec!["https://a.example/m/c.gguf?key=7".into()],
        };
        assert_eq!(
            read("https://a.example/m/c.gguf?key=7").expect("fine"),
            Some(url)
        );
        assert_eq!(read("smollm2-135m").expect("fine"), None);
        assert_eq!(read("./here.gguf").expect("fine"), None);
    }

    #[test]
    fn a_reference_to_another_place_is_refused() {
        for bad in [
            "hf:a/b",
            "hf:a/b/c.bin",
            "hf:a/../c.gguf",
            "hf:a/b/../../c.gguf",
            "hf:a/b@../c.gguf",
            "http://a.example/c.gguf",
            "file:///etc/c.gguf",
            "https://a.example/",
            "https://a.example/c.zip",
            "https://",
        ] {
            assert!(
                read(bad).is_err_and(|error| error.is_usage() && error.hint().is_some()),
                "{bad}"
            );
        }
        let error = read("http://me:sesame@a.example/c.gguf").expect_err("plain");
        assert!(!error.to_string().contains("sesame"), "{error}");
    }

    #[test]
    fn a_malformed_reference_is_refused_with_the_reason() {
        let hub = Url::parse("https://hub.example/").expect("an address");
        for (text, words) in [
            ("hf:o/r/m-00001-of-99999.gguf", "a part of a model"),
            (
                "https://e.example/m-00004-of-00003.gguf",
                "a part of a model",
            ),
            ("file:///x.gguf", "by its path alone"),
        ] {
            assert!(
                parse(text, &hub)
                    .expect_err("is refused")
                    .to_string()
                    .contains(words),
                "{text}"
            );
        }
        assert!(
            parse("hf:o/r/m-00001-of-00003.gguf", &hub)
                .expect("fine")
                .is_some()
        );
    }
}
