//! The user's own list of models. Each mistake is reported with its line and remedy, and never
//! affects correct entries.

use std::fs;
use std::io;
use std::path::Path;
use std::path::PathBuf;

use reqwest::Url;
use serde::Deserialize;
use toml::Spanned;
use toml::de::DeTable;
use toml::de::DeValue;

use super::Entry;
use super::Source;
use super::download;
use super::download::is_safe;
use super::gguf;
use super::model_file;
use super::opened_model::is_stray_part;
use super::opened_model::parts;
use super::reference::is_file_name;
use super::reference::is_repository;
use super::reference::is_word;

/// Most bytes of the list.
const MOST: u64 = 1 << 20;

/// Largest plausible numbers; larger ones are mistakes.
const MOST_BILLIONS: f64 = 100_000.0;
const MOST_TOKENS: u64 = 1 << 32;
const MOST_KIB: u64 = 1 << 20;
/// Longest name of a quantization.
const LONGEST_WORD: usize = 16;

/// A mistake in the user's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CatalogueMistake {
    pub path: PathBuf,
    /// Counted from 1; 0 for the whole file.
    pub line: usize,
    pub problem: String,
    pub remedy: String,
    /// Whether it affects every model of the list, not just one.
    pub costs_all: bool,
}

impl std::fmt::Display for CatalogueMistake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let path = self.path.display();
        match self.line {
            0 => write!(f, "{path}: {} ({})", self.problem, self.remedy),
            line => write!(f, "{path}:{line}: {} ({})", self.problem, self.remedy),
        }
    }
}

const FORM: &str = "docs/guides/models.md shows how an entry looks";

/// Reads the list. A missing file is an empty list, unless a setting names it.
pub(super) fn read(
    path: &Path,
    named: bool,
    others: &[Entry],
) -> (Vec<Entry>, Vec<CatalogueMistake>) {
    match text_of(path) {
        Ok(text) => parse(path, &text, others),
        Err(error) if error.kind() == io::ErrorKind::NotFound && !named => Default::default(),
        Err(error) => {
            let (problem, remedy) = (
                format!("it cannot be read: {error}"),
                "check `inference.catalogue` and who may read the file".to_owned(),
            );
            (
                Vec::new(),
                vec![CatalogueMistake {
                    path: path.to_owned(),
                    line: 0,
                    problem,
                    remedy,
                    costs_all: true,
                }],
            )
        }
    }
}

fn text_of(path: &Path) -> io::Result<String> {
    use io::Read;
    use std::os::unix::fs::OpenOptionsExt;
    // A FIFO in its place would block forever.
    let file = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut text = String::new();
    if file.take(MOST + 1).read_to_string(&mut text)? as u64 > MOST {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "it has more than 1 MiB",
        ));
    }
    Ok(text)
}

fn parse(path: &Path, text: &str, others: &[Entry]) -> (Vec<Entry>, Vec<CatalogueMistake>) {
    let (mut entries, mut mistakes): (Vec<Entry>, Vec<CatalogueMistake>) = Default::default();
    let at = |offset: usize| {
        text.as_bytes()
            .iter()
            .take(offset)
            .filter(|&&byte| byte == b'\n')
            .count()
            + 1
    };
    let mut wrong = |line: usize, problem: String, remedy: &str| {
        mistakes.push(CatalogueMistake {
            path: path.to_owned(),
            line,
            problem,
            remedy: remedy.to_owned(),
            costs_all: false,
        });
    };
    let table = match DeTable::parse(text) {
        Ok(table) => table,
        Err(error) => {
            let line = at(error.span().map_or(0, |span| span.start));
            wrong(
                line,
                error.message().replace('\n', ", "),
                "the file is TOML; until it can be read none of its models is known",
            );
            for mistake in &mut mistakes {
                mistake.costs_all = true;
            }
            return (entries, mistakes);
        }
    };
    for (key, value) in table.get_ref() {
        let DeValue::Array(list) = value.get_ref() else {
            wrong(
                at(key.span().start),
                format!("`{}` is no list of models", key.get_ref()),
                "each model begins with [[model]]",
            );
            continue;
        };
        if key.get_ref() != "model" {
            wrong(
                at(key.span().start),
                format!("there is no list `{}`", key.get_ref()),
                "each model begins with [[model]]",
            );
            continue;
        }
        for item in list {
            match entry(text, item) {
                Err((offset, problem)) => {
                    wrong(at(offset.unwrap_or(item.span().start)), problem, FORM);
                }
                Ok(entry) => {
                    let line = at(item.span().start);
                    let is_taken = |other: &Entry| other.id.eq_ignore_ascii_case(&entry.id);
                    if others.iter().chain(&entries).any(is_taken) {
                        wrong(
                            line,
                            format!("there is a model `{}` already", entry.id),
                            "give this one another id",
                        );
                    } else if let Err((problem, remedy)) = check(&entry) {
                        wrong(line, format!("the model `{}`: {problem}", entry.id), remedy);
                    } else {
                        entries.push(entry);
                    }
                }
            }
        }
    }
    (entries, mistakes)
}

/// Parses one entry; the error has its offset in the text, if known.
fn entry(text: &str, item: &Spanned<DeValue<'_>>) -> Result<Entry, (Option<usize>, String)> {
    // Parsed separately, so that errors are its own. Blank lines before it keep the offsets.
    let span = item.span();
    let alone = |value: &DeValue<'_>| matches!(value, DeValue::Table(_));
    if !alone(item.get_ref()) {
        return Err((None, "a model is a table of its own".to_owned()));
    }
    Entry::deserialize(toml::de::ValueDeserializer::from(item.clone())).map_err(|error| {
        let place = error
            .span()
            .filter(|place| place.start >= span.start && place.start < text.len())
            .map(|place| place.start);
        (place, plain(error.message()))
    })
}

/// Rewords an error of the TOML parser, which names Rust types.
fn plain(message: &str) -> String {
    let message = message.replace('\n', ", ");
    if let Some((word, known)) = message
        .strip_prefix("unknown field ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        return format!(
            "there is no key {word}; there are: {}",
            known.trim_start_matches("one of ")
        );
    }
    if let Some((word, known)) = message
        .strip_prefix("unknown variant ")
        .and_then(|rest| rest.split_once(", expected "))
    {
        return format!("there is no {word}: write {known}");
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("it has no {key}, which it needs");
    }
    let rest = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    let Some((found, wanted)) = rest.and_then(|rest| rest.rsplit_once(", expected ")) else {
        return message;
    };
    let wanted = match wanted {
        "u64" => "a whole number, 0 or more",
        "f64" => "a number",
        "a string" => "a text, in double quotes",
        "a sequence" => "a list, such as [\"one\", \"two\"]",
        other => other,
    };
    format!("{found} does not fit: write {wanted}")
}

/// Checks the values; the error is the problem and its remedy.
pub(super) fn check(entry: &Entry) -> Result<(), (String, &'static str)> {
    let is_hash = |hash: &str| {
        hash.len() == 64
            && hash
                .bytes()
                .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
    };
    if !is_word(&entry.id) {
        return Err((
            "its id is no plain word".to_owned(),
            "use letters, digits, `.`, `_` and `-`, and begin with a letter or digit",
        ));
    }
    if entry.sha256.as_deref().is_some_and(|hash| !is_hash(hash)) {
        return Err((
            "its sha256 is no hash".to_owned(),
            "write 64 small hexadecimal digits, as sha256sum prints them",
        ));
    }
    if entry.sha256.is_some() && entry.size == 0 {
        return Err((
            "it has a sha256 and no size".to_owned(),
            "write its size in bytes too",
        ));
    }
    if [entry.parameters, entry.active]
        .into_iter()
        .flatten()
        .any(|billions| !(0.001..=MOST_BILLIONS).contains(&billions))
    {
        return Err((
            "it has no such number of parameters".to_owned(),
            "write them in billions, such as 7.6",
        ));
    }
    if entry
        .active
        .zip(entry.parameters)
        .is_some_and(|(active, all)| active > all)
    {
        return Err((
            "more of its parameters are active than it has".to_owned(),
            "`active` is the part of `parameters` that computes a token",
        ));
    }
    if entry.size > download::MOST {
        return Err((
            format!("no model has {} bytes", entry.size),
            "write its size in bytes, or leave it out",
        ));
    }
    if entry.context.is_some_and(|tokens| tokens > MOST_TOKENS) {
        return Err((
            "no model sees that many tokens".to_owned(),
            "write the tokens it was made for, such as 32768",
        ));
    }
    if entry.kib_per_token.is_some_and(|kib| kib > MOST_KIB) {
        return Err((
            "no token takes that much memory".to_owned(),
            "write the KiB of one token, such as 144, or leave it out",
        ));
    }
    if entry
        .quantization
        .as_deref()
        .is_some_and(|word| word.len() > LONGEST_WORD || !is_word(word))
    {
        return Err((
            "its quantization is no such word".to_owned(),
            "write it as in the file's name, such as Q4_K_M",
        ));
    }
    let n_files = match &entry.source {
        Source::Hub {
            repository,
            revision,
            files,
        } => {
            if !is_repository(repository) {
                return Err((
                    format!("`{repository}` is no repository"),
                    "write it as the hub does: owner/name",
                ));
            }
            if !is_word(revision) {
                return Err((
                    format!("`{revision}` is no revision"),
                    "name a branch, a tag or a commit",
                ));
            }
            if let Some(file) = files.iter().find(|file| !is_file_name(file)) {
                return Err((
                    format!("`{file}` is no file of a repository"),
                    "write its path in the repository; it ends in .gguf",
                ));
            }
            files.len()
        }
        Source::Url { files } => {
            if let Some(file) = files
                .iter()
                .find(|file| !Url::parse(file).is_ok_and(|url| is_safe(&url)))
            {
                return Err((
                    format!("`{file}` cannot be loaded"),
                    "write an address that begins with https://",
                ));
            }
            files.len()
        }
        Source::Path { files } => {
            if let Some(file) = files.iter().find(|file| !file.is_absolute()) {
                return Err((
                    format!("`{}` could be anywhere", file.display()),
                    "write the whole path, from / on",
                ));
            }
            files.iter().try_for_each(|file| check_file(file))?;
            files.len()
        }
        Source::Wheel {
            url,
            sha256,
            member,
            ..
        } => {
            if !Url::parse(url).is_ok_and(|url| is_safe(&url)) {
                return Err((
                    format!("`{url}` cannot be loaded"),
                    "write an address that begins with https://",
                ));
            }
            if !is_hash(sha256) || entry.sha256.is_none() {
                return Err((
                    "a package needs its own sha256 and that of the model in it".to_owned(),
                    "write both",
                ));
            }
            if !is_file_name(member) {
                return Err((
                    format!("`{member}` is no file of a package"),
                    "write its path in the archive; it ends in .gguf",
                ));
            }
            1
        }
    };
    if !are_one_model(&entry.source) {
        return Err((
            "its files are not all parts of one model".to_owned(),
            "name one file, or all parts in their order: NAME-00001-of-00002.gguf, NAME-00002-of-00002.gguf",
        ));
    }
    match n_files {
        0 => Err(("it has no files".to_owned(), "name at least one")),
        2.. if entry.sha256.is_some() => Err((
            "one sha256 cannot be that of several files".to_owned(),
            "leave it out: the hub knows them",
        )),
        _ => Ok(()),
    }
}

/// Refuses a path of something else than a model. A missing file may be created later.
fn check_file(path: &Path) -> Result<(), (String, &'static str)> {
    let shown = path.display();
    match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => Err((
            format!("`{shown}` is a folder"),
            "name the .gguf file in it",
        )),
        Ok(facts) if !facts.is_file() => Err((
            format!("`{shown}` is not a regular file"),
            "name a .gguf file",
        )),
        Ok(_) if begins_otherwise(path) => Err((
            format!("`{shown}` is not a GGUF file"),
            "llama.cpp needs a model in its own format; hubs offer most models as GGUF too",
        )),
        _ => Ok(()),
    }
}

/// Returns whether a file starts with other bytes than a model. An unreadable file is reported when
/// it is used.
fn begins_otherwise(path: &Path) -> bool {
    use io::Read;
    let mut head = Vec::new();
    let read = fs::File::open(path)
        .and_then(|file| file.take(gguf::MAGIC.len() as u64).read_to_end(&mut head));
    read.is_ok() && head != gguf::MAGIC
}

/// Returns whether the files of a source are one, or all parts of one: the server gets the first
/// part and finds the others by name.
fn are_one_model(source: &Source) -> bool {
    let names: Vec<PathBuf> = match source {
        Source::Hub { files, .. } => files.iter().map(PathBuf::from).collect(),
        Source::Path { files } => files
            .iter()
            .filter_map(|file| file.file_name().map(PathBuf::from))
            .collect(),
        Source::Url { files } => files
            .iter()
            .map(|file| PathBuf::from(model_file::last(file)))
            .collect(),
        Source::Wheel { .. } => return true,
    };
    names
        .first()
        .is_none_or(|first| !is_stray_part(first) && parts(first) == names)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "[[model]]\nid = \"mine\"\nsource = { kind = \"url\", files = [\"https://a.example/m.gguf\"] }\n";

    #[track_caller]
    fn check(list: &str, n_right: usize, mistakes: &[(usize, &str)]) {
        let (entries, found) = parse(
            Path::new("/m.toml"),
            list,
            super::super::catalogue::built_in(),
        );
        assert_eq!(entries.len(), n_right, "{found:?}");
        assert_eq!(found.len(), mistakes.len(), "{found:?}");
        for (mistake, (line, words)) in found.iter().zip(mistakes) {
            assert_eq!(mistake.line, *line, "{mistake}");
            assert!(
                mistake.to_string().contains(words) && !mistake.remedy.is_empty(),
                "{mistake}"
            );
        }
    }

    #[test]
    fn implausible_numbers_are_mistakes() {
        for (line, words) in [
            ("parameters = 1e300", "no such number of parameters"),
            ("active = 1e-9", "no such number of parameters"),
            ("parameters = nan", "no such number of parameters"),
            (
                "parameters = 1\nactive = 30",
                "more of its parameters are active",
            ),
            (
                "size = 9223372036854775807",
                "no model has 9223372036854775807 bytes",
            ),
            ("context = 9223372036854775807", "that many tokens"),
            ("kib_per_token = 9223372036854775807", "that much memory"),
            ("quantization = \"Q4_K_M and a long story\"", "no such word"),
        ] {
            check(&format!("{GOOD}{line}\n"), 0, &[(1, words)]);
        }
        check(
            &format!(
                "{GOOD}parameters = 7.6\nactive = 0.5\nsize = 5000000000\ncontext = 1048576\nkib_per_token = 144\n"
            ),
            1,
            &[],
        );
    }

    #[test]
    fn a_mistake_affects_only_its_own_entry() {
        check(GOOD, 1, &[]);
        check("", 0, &[]);
        let unknown = format!(
            "{GOOD}\n[[model]]\nid = \"b\"\nsise = 7\nsource = {{ kind = \"url\", files = [\"https://a.example/m\"] }}\n"
        );
        check(
            &unknown,
            1,
            &[(7, "there is no key `sise`; there are: `id`")],
        );
        check(
            &format!("[[model]]\nid = \"b\"\n{GOOD}"),
            1,
            &[(1, "it has no `source`")],
        );
        check(
            &format!("[[model]]\nid = 7\n{GOOD}"),
            1,
            &[(
                2,
                "integer `7` does not fit: write a text, in double quotes",
            )],
        );
        check(
            &format!("{GOOD}size = -1\n"),
            0,
            &[(4, "write a whole number, 0 or more")],
        );
        check(
            &GOOD.replace("\"url\"", "\"ftp\""),
            0,
            &[(3, "there is no `ftp`: write one of `hub`")],
        );
        check(&format!("{GOOD}{GOOD}"), 1, &[(4, "already")]);
        check(&GOOD.replace("mine", "Smollm2-135m"), 0, &[(1, "already")]);
        check(&format!("name = 3\n{GOOD}"), 1, &[(1, "`name` is no list")]);
        check(
            &format!("{GOOD}[[modell]]\nid = \"x\"\n"),
            1,
            &[(4, "no list `modell`")],
        );
        check(&format!("{GOOD}[[model]\n"), 0, &[(4, "TOML")]);
        check("model = [1]\n", 0, &[(1, "table")]);
    }

    #[test]
    fn forbidden_sources_are_refused_with_a_remedy() {
        check(&GOOD.replace("https:", "http:"), 0, &[(1, "https://")]);
        check(
            &GOOD.replace("https://a.example", "http://127.0.0.1:80"),
            1,
            &[],
        );
        check(&GOOD.replace("mine", "../x"), 0, &[(1, "plain word")]);
        let hub = |repository: &str, file: &str| {
            format!(
                "[[model]]\nid = \"h\"\nsource = {{ kind = \"hub\", repository = \"{repository}\", files = [\"{file}\"] }}\n"
            )
        };
        check(&hub("a/b", "c.gguf"), 1, &[]);
        check(
            &hub("a/b", "../../c.gguf"),
            0,
            &[(1, "no file of a repository")],
        );
        check(&hub("a", "c.gguf"), 0, &[(1, "owner/name")]);
        check(&hub("a/b", "c.bin"), 0, &[(1, ".gguf")]);
        for files in [
            "c.gguf\", \"d.gguf",
            "c-00001-of-00002.gguf",
            "c-00002-of-00002.gguf\", \"c-00001-of-00002.gguf",
            "c-00001-of-00002.gguf\", \"d-00002-of-00002.gguf",
            "c-00003-of-00002.gguf",
        ] {
            check(&hub("a/b", files), 0, &[(1, "not all parts of one model")]);
        }
        check(
            &hub(
                "a/b",
                "x/c-00001-of-00002.gguf\", \"x/c-00002-of-00002.gguf",
            ),
            1,
            &[],
        );
        let two = "https://a.example/m-00001-of-00002.gguf?k=7\", \"https://a.example/m-00002-of-00002.gguf?k=7";
        check(&GOOD.replace("https://a.example/m.gguf", two), 1, &[]);
        check(
            &GOOD.replace(
                "https://a.example/m.gguf",
                "https://a.example/m.gguf\", \"https://a.example/n.gguf",
            ),
            0,
            &[(1, "not all parts")],
        );
        check(
            &GOOD.replace("\"https://a.example/m.gguf\"", ""),
            0,
            &[(1, "no files")],
        );
        check(&format!("{GOOD}sha256 = \"00\"\n"), 0, &[(1, "no hash")]);
        check(
            &format!("{GOOD}parameters = -1.0\n"),
            0,
            &[(1, "parameters")],
        );
    }

    #[test]
    fn a_list_that_is_no_regular_file_is_reported() {
        let folder = tempfile::tempdir().expect("a folder");
        assert_eq!(
            read(&folder.path().join("absent"), false, &[]),
            (vec![], vec![])
        );
        for path in [
            folder.path().join("absent"),
            folder.path().to_owned(),
            PathBuf::from("/dev/zero"),
        ] {
            let (entries, mistakes) = read(&path, true, &[]);
            assert!(
                entries.is_empty() && mistakes.len() == 1 && mistakes[0].line == 0,
                "{mistakes:?}"
            );
        }
    }
}
