//! The API key of an endpoint. Settings name its place; it is read only when the endpoint is used.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::user_file;
use podbay_event::Secret;

/// Most bytes of a key file; the longest keys in use have a few KiB.
const LONGEST: u64 = 64 << 10;

const OTHER: &str = "write the key alone into a file (chmod 600) and name that with `llm.api_key_file`, or name a variable with --api-key-env";

/// Why a configured key cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{problem}")]
pub struct KeyError {
    problem: String,
    hint: String,
}

impl KeyError {
    /// Returns the remedy.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

/// Reads the key from the value of an environment variable.
pub fn key_of_variable(name: &str, value: Option<&str>) -> Result<Secret, KeyError> {
    let failed = |problem: String| KeyError {
        problem,
        hint: format!("export {name}=…, or name another one with --api-key-env"),
    };
    let value = value.map(str::trim).filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| {
        failed(format!(
            "the environment variable {name}, which should hold the API key, is not set"
        ))
    })?;
    one_line(value).ok_or_else(|| {
        failed(format!(
            "the environment variable {name} holds several lines, and an API key is one"
        ))
    })
}

/// Reads the key from a file that other users cannot read.
pub fn key_of_file(path: &Path) -> Result<Secret, KeyError> {
    let shown = path.display();
    let failed = |problem: String, hint: &str| KeyError {
        problem,
        hint: hint.to_owned(),
    };
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => failed(
            format!("the file of the API key, {shown}, does not exist"),
            OTHER,
        ),
        io::ErrorKind::PermissionDenied => failed(
            format!("the file of the API key, {shown}, cannot be read: {error}"),
            "it must be yours, or name another one",
        ),
        _ => failed(
            format!("the file of the API key, {shown}, cannot be used: {error}"),
            OTHER,
        ),
    };
    let (file, facts) = user_file::open(path).map_err(unreadable)?;
    if facts.mode() & 0o077 != 0 {
        let problem = format!(
            "others can read the file of the API key, {shown} (mode {:o})",
            facts.mode() & 0o777
        );
        return Err(KeyError {
            problem,
            hint: format!("chmod 600 {shown}"),
        });
    }
    let text = user_file::text(file, LONGEST).map_err(unreadable)?;
    let text = text.trim();
    if text.is_empty() {
        return Err(failed(
            format!("the file of the API key, {shown}, is empty"),
            OTHER,
        ));
    }
    one_line(text).ok_or_else(|| {
        failed(
            format!("the file of the API key, {shown}, has several lines, and a key is one"),
            OTHER,
        )
    })
}

/// Returns the single line of a text as a key; a header can carry no other.
fn one_line(text: &str) -> Option<Secret> {
    (!text.contains(['\n', '\r'])).then(|| Secret::new(text))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn only_a_file_with_one_line_is_a_key() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("key");
        let read = |bytes: &[u8]| {
            fs::write(&path, bytes).expect("written");
            fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("changed");
            key_of_file(&path)
                .map(|key| key.expose().to_owned())
                .map_err(|error| error.to_string())
        };
        assert_eq!(read(b" sk-1\n"), Ok("sk-1".to_owned()));
        let long = vec![b'k'; LONGEST as usize + 1];
        for (bytes, words) in [
            (&b" \n"[..], "is empty"),
            (b"sk-1\nsk-2\n", "several lines"),
            (b"\xff\xfe", "not text"),
            (&long, "65536 bytes"),
        ] {
            let said = read(bytes).expect_err("is no key");
            assert!(said.contains(words) && !said.contains("sk-1"), "{said}");
        }
        read(b"sk-1").expect("a key");
        fs::set_permissions(&path, Permissions::from_mode(0o644)).expect("changed");
        assert!(
            key_of_file(&path)
                .expect_err("others read it")
                .hint()
                .contains("chmod 600")
        );
    }

    #[test]
    fn a_key_that_is_no_regular_file_is_refused_without_blocking() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
        for (path, words) in [
            (pipe, "not a regular file"),
            (folder.path().to_owned(), "a folder"),
            ("/dev/zero".into(), "not a regular file"),
            (folder.path().join("absent"), "does not exist"),
        ] {
            let error = key_of_file(&path).expect_err("is no key");
            assert!(
                error.to_string().contains(words) && !error.hint().contains("chmod 600 /"),
                "{error}: {}",
                error.hint()
            );
        }
    }

    #[test]
    fn a_key_in_a_variable_is_one_line_too() {
        assert_eq!(
            key_of_variable("K", Some(" sk \n"))
                .expect("a key")
                .expose(),
            "sk"
        );
        for (value, words) in [
            (None, "is not set"),
            (Some(" "), "is not set"),
            (Some("a\nb"), "several lines"),
        ] {
            assert!(
                key_of_variable("K", value)
                    .expect_err("is no key")
                    .to_string()
                    .contains(words)
            );
        }
    }
}
