use super::BytesPath;

/// A file that is protected by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The part of the path that is protected.
    pub name: String,
    /// Its name alone says that it holds a secret: reading is protected too.
    pub is_secret: bool,
}

/// How a name tells that its file holds a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretName {
    /// By itself.
    Certain,
    /// Where there is a private key in the file.
    IfKey,
    /// Where it is a folder.
    IfFolder,
}

/// Endings that mark an example of a secret file rather than the file.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];
const FOLDERS: [&str; 4] = [".aws", ".ssh", ".gnupg", ".kube"];
const FILES: [&str; 4] = [".env", ".netrc", ".pypirc", ".npmrc"];
const CREDENTIAL_SUFFIXES: [&str; 7] = ["json", "yaml", "yml", "toml", "ini", "csv", ""];

/// Returns why a path is protected, if it is.
///
/// Every part of the path is looked at, in lower case: on a file system that folds case `.ENV` is `.env`. Policy looks at the path as the
/// model gave it, to ask or to deny; the guest looks at what a path led to, to refuse what nobody was asked about. That a box cannot leave
/// the project is the kernel's doing.
pub fn protected_name(path: &BytesPath) -> Option<Protected> {
    let text = path.to_text();
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    let last = parts.len().checked_sub(1)?;
    parts.iter().enumerate().find_map(|(at, part)| {
        let folded = fold(part);
        let hit = |is_secret| Some(Protected { name: (*part).to_owned(), is_secret });
        if FOLDERS.contains(&folded.as_str()) {
            return hit(true);
        }
        if folded == ".git" || folded == ".podbay" {
            return hit(false);
        }
        if at != last {
            return None;
        }
        if is_secret_file(&folded) {
            return hit(true);
        }
        if is_key(&folded) || is_credentials(&folded) { hit(false) } else { None }
    })
}

/// Returns whether one name, without the path to it, is that of a secret which commands in a box must not read.
///
/// What only asks for a person's word ([`protected_name`]) knows the same names, and some more.
pub fn secret_name(name: &[u8]) -> Option<SecretName> {
    let folded = fold(&BytesPath::from_bytes(name).to_text());
    if FOLDERS.contains(&folded.as_str()) {
        return Some(SecretName::IfFolder);
    }
    if is_secret_file(&folded) || is_credentials(&folded) {
        return Some(SecretName::Certain);
    }
    (is_key(&folded) || may_be_ssh_key(&folded)).then_some(SecretName::IfKey)
}

/// Whether somebody may have called a key of ssh so who has several: what is in it tells it from `id_card.py`.
fn may_be_ssh_key(name: &str) -> bool {
    name.starts_with("id_") && name.rsplit_once('.').is_none_or(|(_, suffix)| suffix != "pub")
}

fn is_key(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(_, suffix)| suffix == "pem" || suffix == "key")
}

fn is_credentials(name: &str) -> bool {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    stem.contains("credentials") && CREDENTIAL_SUFFIXES.contains(&suffix)
}

fn is_secret_file(name: &str) -> bool {
    if FILES.contains(&name) {
        return true;
    }
    if let Some(rest) = name.strip_prefix(".env.") {
        return !EXAMPLES.iter().any(|example| format!(".{rest}").ends_with(example));
    }
    name.strip_prefix("id_").is_some_and(|rest| matches!(rest, "rsa" | "dsa" | "ecdsa" | "ed25519" | "ecdsa_sk" | "ed25519_sk"))
}

/// Folds case, and drops what some file systems ignore in names: HFS+ zero-width characters, trailing dots and spaces.
fn fold(part: &str) -> String {
    let kept: String = part
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}'))
        .collect();
    kept.trim_end_matches(['.', ' ']).to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, expected: Option<(&str, bool)>) {
        let found = protected_name(&BytesPath::from_text(path));
        assert_eq!(found, expected.map(|(name, is_secret)| Protected { name: name.to_owned(), is_secret }), "{path}");
    }

    #[test]
    fn secrets_are_known_by_their_names() {
        check(".env", Some((".env", true)));
        check("deploy/.env.production", Some((".env.production", true)));
        check(".ENV", Some((".ENV", true)));
        check("home/.ssh/config", Some((".ssh", true)));
        check(".netrc", Some((".netrc", true)));
        check("home/.pypirc", Some((".pypirc", true)));
        check(".npmrc", Some((".npmrc", true)));
        check(".gnupg/private-keys-v1.d/x", Some((".gnupg", true)));
        check("home/.kube/config", Some((".kube", true)));
        check(".aws/config", Some((".aws", true)));
        check("id_ed25519", Some(("id_ed25519", true)));
        check("certs/server.key", Some(("server.key", false)));
        check("aws-credentials.json", Some(("aws-credentials.json", false)));
        check("credentials", Some(("credentials", false)));
        check(".git/config", Some((".git", false)));
        check("sub/.g\u{200b}it/hooks/x", Some((".g\u{200b}it", false)));
        check(".git./config", Some((".git.", false)));
        check(".podbay/config.toml", Some((".podbay", false)));
    }

    #[test]
    fn a_name_tells_what_commands_must_not_read() {
        for (name, kind) in [
            (".env", Some(SecretName::Certain)),
            (".ENV.local", Some(SecretName::Certain)),
            ("aws-credentials.json", Some(SecretName::Certain)),
            ("id_rsa", Some(SecretName::Certain)),
            ("id_rsa_work", Some(SecretName::IfKey)),
            ("ID_github", Some(SecretName::IfKey)),
            ("id_card.py", Some(SecretName::IfKey)),
            ("id_github.pub", None),
            ("server.KEY", Some(SecretName::IfKey)),
            ("ca.pem", Some(SecretName::IfKey)),
            (".ssh", Some(SecretName::IfFolder)),
            (".env.example", None),
            ("id_rsa.pub", None),
            ("credentials.rs", None),
            (".git", None),
            ("key", None),
        ] {
            assert_eq!(secret_name(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn everyday_files_are_not() {
        for path in [
            ".env.example",
            ".env.local.template",
            "src/main.rs",
            "id_card.py",
            "id_rsa.pub",
            "keyboard.rs",
            "credentials.rs",
            ".gitignore",
            "",
            ".",
        ] {
            check(path, None);
        }
    }
}
