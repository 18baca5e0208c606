use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::path::PathBuf;

use super::Error;
use super::gguf;

/// Most parts of one model.
const MOST_PARTS: u32 = 999;

/// A model whose file is on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Model {
    /// The name under which the server serves it.
    pub name: String,
    /// Its files, without symlinks; large models are split.
    pub files: Vec<PathBuf>,
    /// Device and inode of each file when it was opened.
    pub identities: Vec<(u64, u64)>,
    /// Size of all files in bytes.
    pub size: u64,
    /// Newest modification time of the files, in nanoseconds.
    pub changed: i128,
    /// Context length in tokens that the model was trained for.
    pub context: Option<u64>,
    /// Bytes of memory for one token of context.
    pub bytes_per_token: Option<u64>,
    /// Whether it is too small to write code and only proves the set-up.
    pub is_smoke: bool,
    /// A note for users of the model.
    pub note: Option<String>,
}

/// Checks a file that is to be served.
pub(super) async fn open(path: PathBuf) -> Result<Model, Error> {
    // Blocking: headers have vocabularies of a hundred thousand words, and disks may sleep.
    tokio::task::spawn_blocking(move || open_blocking(&path))
        .await
        .expect("reading a file does not panic")
}

fn open_blocking(given: &Path) -> Result<Model, Error> {
    let refuse = |path: &Path, problem: String, hint| Error::Model {
        path: path.to_owned(),
        problem,
        hint,
    };
    let mut model = Model {
        name: given
            .file_stem()
            .map(|stem| {
                stem.to_string_lossy()
                    .chars()
                    .filter(|c| !c.is_control())
                    .take(100)
                    .collect()
            })
            .unwrap_or_default(),
        files: Vec::new(),
        identities: Vec::new(),
        size: 0,
        changed: 0,
        context: None,
        bytes_per_token: None,
        is_smoke: false,
        note: None,
    };
    if is_stray_part(given) {
        let problem =
            "its name says that it is a part of a model, and there is no model of such parts"
                .to_owned();
        return Err(refuse(
            given,
            problem,
            Some("parts are named NAME-00001-of-00003.gguf, at most 999: name the first one"),
        ));
    }
    for part in parts(given) {
        let real = fs::canonicalize(&part).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound if part == given => refuse(
                &part,
                "there is no such file".to_owned(),
                Some("check the path: --model, `inference.model`, or PODBAY_MODEL in the `.env` of compose.yaml"),
            ),
            std::io::ErrorKind::NotFound => refuse(&part, "this part of it is missing".to_owned(), Some("load all parts into one folder")),
            _ => refuse(&part, format!("it cannot be read: {error}"), Some("check who may read it: `ls -l`")),
        })?;
        let facts = fs::metadata(&real)
            .map_err(|error| refuse(&part, format!("it cannot be read: {error}"), None))?;
        model.identities.push((facts.dev(), facts.ino()));
        if facts.is_dir() {
            return Err(refuse(
                &part,
                "it is a folder".to_owned(),
                Some("name the .gguf file in it"),
            ));
        }
        if !facts.is_file() {
            return Err(refuse(&part, "it is not a regular file".to_owned(), None));
        }
        let file = fs::File::open(&real).map_err(|error| {
            refuse(
                &part,
                format!("it cannot be read: {error}"),
                Some("check who may read it: `ls -l`"),
            )
        })?;
        let head = gguf::read(file).map_err(|problem| {
            let hint = match problem {
                gguf::GgufError::Truncated { .. } => Some("load it again: the download or copy was cut short"),
                gguf::GgufError::NotGguf => Some("llama.cpp needs a model in its own format; hubs offer most models as GGUF too"),
                gguf::GgufError::Malformed(_) => Some("load it again, or name another file: this one holds no model that could be served"),
                gguf::GgufError::Version(_) => Some("convert it with a current llama.cpp, or load a newer file of the same model"),
                gguf::GgufError::Unreadable(_) => Some("check who may read it, and that its disk is well"),
            };
            refuse(&part, problem.to_string(), hint)
        })?;
        model.size += facts.len();
        model.changed = model
            .changed
            .max(i128::from(facts.mtime()) * 1_000_000_000 + i128::from(facts.mtime_nsec()));
        model.context = model.context.or(head.context);
        model.bytes_per_token = model.bytes_per_token.or(head.bytes_per_token);
        model.files.push(real);
    }
    Ok(model)
}

/// Checks that `length` bytes of a file, from its current position, are a complete model; the error
/// says what is wrong.
pub fn check_model(file: fs::File, length: u64) -> Result<(), String> {
    gguf::read_part(file, length)
        .map(drop)
        .map_err(|problem| problem.to_string())
}

/// Returns all files of a split model: `NAME-00001-of-00003.gguf`.
pub fn parts(path: &Path) -> Vec<PathBuf> {
    match split(path) {
        Some((name, at, total)) if is_whole(at, total) => (1..=total)
            .map(|at| path.with_file_name(format!("{name}-{at:05}-of-{total:05}.gguf")))
            .collect(),
        _ => vec![path.to_owned()],
    }
}

/// Returns whether a file's name is that of a part with impossible numbers, which could not be
/// served.
pub(super) fn is_stray_part(path: &Path) -> bool {
    split(path).is_some_and(|(_, at, total)| !is_whole(at, total))
}

fn is_whole(at: u32, total: u32) -> bool {
    (1..=MOST_PARTS).contains(&total) && (1..=total).contains(&at)
}

/// Parses the name of a part: the model's name, the number of the part, and the number of parts.
fn split(path: &Path) -> Option<(&str, u32, u32)> {
    let stem = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, total) = stem.rsplit_once("-of-")?;
    let (name, at) = rest.rsplit_once('-')?;
    let number = |text: &str| {
        text.parse()
            .ok()
            .filter(|_| text.len() == 5 && text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    Some((name, number(at)?, number(total)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(path: &Path, because: &str) {
        let error = open_blocking(path).expect_err("must be refused");
        assert!(error.to_string().contains(because), "{error}");
        assert!(error.is_usage());
    }

    #[test]
    fn a_file_that_is_no_model_is_refused_with_the_reason() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("empty.gguf"), "").expect("written");
        fs::write(at("page.gguf"), "<!doctype html>").expect("written");
        fs::write(at("short.gguf"), b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0").expect("written");
        refused(&at("absent.gguf"), "no such file");
        refused(folder.path(), "it is a folder");
        refused(Path::new("/dev/null"), "not a regular file");
        refused(&at("empty.gguf"), "not a GGUF file");
        refused(&at("page.gguf"), "not a GGUF file");
        refused(&at("short.gguf"), "truncated");
        refused(&at("big-00001-of-00002.gguf"), "no such file");
    }

    #[test]
    fn a_split_model_has_all_its_parts() {
        let three = [
            "/m/a-00001-of-00003.gguf",
            "/m/a-00002-of-00003.gguf",
            "/m/a-00003-of-00003.gguf",
        ];
        assert_eq!(parts(Path::new(three[0])), three.map(PathBuf::from));
        for whole in ["/m/a.gguf", "/m/a-1-of-3.gguf", "/m/a-of-b.gguf"] {
            assert_eq!(parts(Path::new(whole)), [PathBuf::from(whole)]);
            assert!(!is_stray_part(Path::new(whole)));
        }
        assert!(!is_stray_part(Path::new(three[1])));
        for stray in [
            "/m/a-00001-of-99999.gguf",
            "/m/a-00001-of-00000.gguf",
            "/m/a-00004-of-00003.gguf",
            "/m/a-00000-of-00003.gguf",
        ] {
            assert!(is_stray_part(Path::new(stray)), "{stray}");
            refused(Path::new(stray), "a part of a model");
        }
    }
}
