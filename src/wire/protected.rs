use super::BytesPath;
use super::copy_name::originals;

/// A file that is protected by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protected {
    /// The protected component of the path.
    pub name: String,
    /// Its name alone says that it is a secret: reading is protected too.
    pub is_secret: bool,
}

/// How a name tells that its file is a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretName {
    /// By itself.
    Certain,
    /// If the file contains a private key.
    IfKey,
    /// If it is a folder.
    IfFolder,
}

/// Suffixes that mark an example of a secret file rather than the file.
const EXAMPLES: [&str; 4] = [".example", ".sample", ".template", ".dist"];
const FOLDERS: [&str; 5] = [".aws", ".ssh", ".gnupg", ".kube", ".envs"];
const FILES: [&str; 25] = [
    ".env",
    ".netrc",
    "_netrc",
    ".pypirc",
    ".npmrc",
    ".git-credentials",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".dockercfg",
    ".htpasswd",
    ".s3cfg",
    ".boto",
    ".databrickscfg",
    ".vault-token",
    ".vault_pass",
    "rclone.conf",
    // Rails: 32 digits that decrypt its credentials.
    "master.key",
    ".terraformrc",
    // The name alone is also that of commands and packages.
    ".kubeconfig",
    "kubeconfig.yaml",
    "kubeconfig.yml",
    ".dev.vars",
    ".secrets",
];
/// Prefixes of environment files.
const ENVIRONMENTS: [&str; 4] = [".env.", ".env_", ".env-", ".dev.vars."];
/// Suffixes of files made for keys or passwords: environments, key stores, terraform's state and
/// variables.
const SECRET_SUFFIXES: [&str; 12] = [
    "env", "p12", "pfx", "jks", "keystore", "kdbx", "kdb", "ppk", "agekey", "tfstate", "tfvars",
    "ovpn",
];
/// The same, with a suffix for the format or the age.
const SECRET_ENDS: [&str; 2] = [".tfvars.json", ".tfstate.backup"];
const CREDENTIAL_SUFFIXES: [&str; 7] = ["json", "yaml", "yml", "toml", "ini", "csv", ""];
/// Settings files that are named after their contents.
const SECRET_SETTINGS: [&str; 5] = ["json", "yaml", "yml", "toml", "ini"];

const ACCOUNTS: [&str; 3] = ["service-account", "service_account", "serviceaccount"];
/// Files that are secrets only in a folder of this name.
const IN_FOLDERS: [(&str, &str); 6] = [
    (".docker", "config.json"),
    (".composer", "auth.json"),
    ("gh", "hosts.yml"),
    (".vscode", "sftp.json"),
    (".azure", "accesstokens.json"),
    (".azure", "msal_token_cache.json"),
];

/// Returns why a path is protected, if it is.
///
/// Every component of the path is checked, in lower case: on a file system that folds case `.ENV`
/// is `.env`. Policy checks the path as the model gave it, to ask or to deny; the guest checks
/// where a path led, to refuse what was not approved. The kernel keeps a sandbox inside the
/// project.
pub fn protected_name(path: &BytesPath) -> Option<Protected> {
    let text = path.to_text();
    let parts: Vec<&str> = text
        .split('/')
        .filter(|part| !part.is_empty() && *part != ".")
        .collect();
    let last = parts.len().checked_sub(1)?;
    parts.iter().enumerate().find_map(|(at, part)| {
        let folded = fold(part);
        let hit = |is_secret| {
            Some(Protected {
                name: (*part).to_owned(),
                is_secret,
            })
        };
        if FOLDERS.contains(&folded.as_str()) {
            return hit(true);
        }
        if folded == ".git" || folded == ".podbay" {
            return hit(false);
        }
        if at != last {
            return None;
        }
        let names = originals(&folded);
        let is_any = |of: &dyn Fn(&str) -> bool| names.iter().any(|name| of(name));
        if is_any(&is_secret_file)
            || at > 0 && is_any(&|name| is_secret_in(&fold(parts[at - 1]), name))
        {
            return hit(true);
        }
        if is_any(&is_key) || is_any(&is_credentials) {
            hit(false)
        } else {
            None
        }
    })
}

/// Returns whether a path is that of a secret which commands in a sandbox must not read: by its
/// name, or by that and its folder's.
pub fn secret_path(path: &[u8]) -> Option<SecretName> {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next()?;
    let folded = |part: &[u8]| fold(&BytesPath::from_bytes(part).to_text());
    let in_folder = |above: &[u8]| {
        let above = folded(above);
        originals(&folded(name))
            .iter()
            .any(|name| is_secret_in(&above, name))
            .then_some(SecretName::Certain)
    };
    parts
        .next()
        .and_then(in_folder)
        .or_else(|| secret_name(name))
}

/// Returns the same for a single name.
///
/// [`protected_name`], which only asks for an approval, covers these names and some more.
pub fn secret_name(name: &[u8]) -> Option<SecretName> {
    let folded = fold(&BytesPath::from_bytes(name).to_text());
    if FOLDERS.contains(&folded.as_str()) {
        return Some(SecretName::IfFolder);
    }
    let names = originals(&folded);
    if names
        .iter()
        .any(|name| is_secret_file(name) || is_credentials(name))
    {
        return Some(SecretName::Certain);
    }
    names
        .iter()
        .any(|name| is_key(name) || may_be_key(name) || may_be_ssh_key(name))
        .then_some(SecretName::IfKey)
}

/// Returns whether a name may be that of an additional ssh key: the contents tell it from
/// `id_card.py`.
fn may_be_ssh_key(name: &str) -> bool {
    let is_called_key = !name.contains('.')
        && ["_key", "-key", "_rsa", "_ed25519"]
            .iter()
            .any(|end| name.ends_with(end));
    is_called_key
        || name.starts_with("id_")
            && name
                .rsplit_once('.')
                .is_none_or(|(_, suffix)| suffix != "pub")
}

fn is_key(name: &str) -> bool {
    name.rsplit_once('.')
        .is_some_and(|(_, suffix)| suffix == "pem" || suffix == "key")
}

/// Returns whether a file may contain a key among other things: a service account has one beside
/// its name and addresses, a mere description has none; `*.asc` may be a signature or a text.
fn may_be_key(name: &str) -> bool {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_account = suffix == "json"
        && (ACCOUNTS.iter().any(|start| stem.starts_with(start))
            || stem.contains("firebase-adminsdk"));
    matches!(suffix, "p8" | "asc") || is_account
}

fn is_credentials(name: &str) -> bool {
    let (stem, suffix) = name.rsplit_once('.').unwrap_or((name, ""));
    stem.contains("credentials") && CREDENTIAL_SUFFIXES.contains(&suffix)
}

fn is_secret_in(folder: &str, name: &str) -> bool {
    // Of Rails as well, for each environment.
    IN_FOLDERS.contains(&(folder, name))
        || folder == "credentials" && name.strip_suffix(".key").is_some()
}

fn is_secret_file(name: &str) -> bool {
    if FILES.contains(&name) {
        return true;
    }
    if let Some(rest) = ENVIRONMENTS
        .iter()
        .find_map(|start| name.strip_prefix(start))
    {
        return !is_example(rest);
    }
    if let Some((stem, suffix)) = name.rsplit_once('.') {
        // `!.env` and `w .env` are a pattern and a line of a script, which name `.env`.
        let is_name = suffix != "env"
            || stem.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '-'));
        let is_settings = (stem == "secrets" || stem.starts_with("client_secret"))
            && SECRET_SETTINGS.contains(&suffix);
        if is_settings
            || SECRET_SUFFIXES.contains(&suffix) && !stem.is_empty() && is_name && !is_example(stem)
            || SECRET_ENDS.iter().any(|end| name.ends_with(end))
        {
            return true;
        }
    }
    name.strip_prefix("id_").is_some_and(|rest| {
        matches!(
            rest,
            "rsa" | "dsa" | "ecdsa" | "ed25519" | "ecdsa_sk" | "ed25519_sk"
        )
    })
}

/// Whether the rest of a secret's name says that it is an example: `example.env` counts like
/// `.env.example`.
fn is_example(rest: &str) -> bool {
    let dotted = format!(".{rest}");
    EXAMPLES.iter().any(|example| dotted.ends_with(example))
}

/// Folds case, and removes what some file systems ignore in names: HFS+ zero-width characters,
/// trailing dots and spaces.
fn fold(part: &str) -> String {
    // Each name of a project is folded, and nearly all are of this kind.
    if part.is_ascii() {
        return part.trim_end_matches(['.', ' ']).to_ascii_lowercase();
    }
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
        assert_eq!(
            found,
            expected.map(|(name, is_secret)| Protected {
                name: name.to_owned(),
                is_secret
            }),
            "{path}"
        );
    }

    #[test]
    fn secrets_are_recognized_by_name() {
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
        check(
            "aws-credentials.json",
            Some(("aws-credentials.json", false)),
        );
        check("credentials", Some(("credentials", false)));
        check(".git/config", Some((".git", false)));
        check("sub/.g\u{200b}it/hooks/x", Some((".g\u{200b}it", false)));
        check(".git./config", Some((".git.", false)));
        check(".podbay/config.toml", Some((".podbay", false)));
    }

    #[test]
    fn names_tell_what_commands_must_not_read() {
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
            ("prod.env", Some(SecretName::Certain)),
            ("my prod.env", Some(SecretName::Certain)),
            ("w .env", None),
            ("!.env", None),
            ("example.env", None),
            ("prod.sample.env", None),
            ("prod.env.example", None),
            ("environment", None),
            ("_netrc", Some(SecretName::Certain)),
            (".git-credentials", Some(SecretName::Certain)),
            (".pgpass", Some(SecretName::Certain)),
            (".dockercfg", Some(SecretName::Certain)),
            ("release.p12", Some(SecretName::Certain)),
            ("upload.Keystore", Some(SecretName::Certain)),
            ("vault.kdbx", Some(SecretName::Certain)),
            ("terraform.tfstate", Some(SecretName::Certain)),
            ("terraform.tfstate.backup", Some(SecretName::Certain)),
            ("prod.auto.tfvars.json", Some(SecretName::Certain)),
            ("terraform.tfvars.example", None),
            ("secrets.yaml", Some(SecretName::Certain)),
            (
                "client_secret_1-x.apps.googleusercontent.com.json",
                Some(SecretName::Certain),
            ),
            ("secrets.rs", None),
            ("secrets", None),
            ("secret.yaml", None),
            ("master.key", Some(SecretName::Certain)),
            ("service-account-prod.json", Some(SecretName::IfKey)),
            ("service-account.yaml", None),
            ("AuthKey_1.p8", Some(SecretName::IfKey)),
            ("keystore.rs", None),
            (".env~", Some(SecretName::Certain)),
            ("prod.env.bak", Some(SecretName::Certain)),
            (".env_local", Some(SecretName::Certain)),
            (".env-prod", Some(SecretName::Certain)),
            (".env_example.sample", None),
            (".env.example.bak", None),
            (".envrc", None),
            ("server.key.old", Some(SecretName::IfKey)),
            ("server.pem.bak", Some(SecretName::IfKey)),
            ("id_ed25519.bak", Some(SecretName::Certain)),
            ("deploy_key", Some(SecretName::IfKey)),
            ("deploy_key.pub", None),
            ("deploy_key.rs", None),
            (".kubeconfig", Some(SecretName::Certain)),
            ("kubeconfig", None),
            (".dev.vars", Some(SecretName::Certain)),
            (".dev.vars.production", Some(SecretName::Certain)),
            (".dev.vars.example", None),
            (".secrets", Some(SecretName::Certain)),
            (".secrets.baseline", None),
            (".envs", Some(SecretName::IfFolder)),
            ("app-firebase-adminsdk-x1.json", Some(SecretName::IfKey)),
            ("firebase.json", None),
            ("main.rs.bak", None),
            ("~", None),
            // Copies by editors, file managers and browsers.
            (".env.swp", Some(SecretName::Certain)),
            (".npmrc.swp", Some(SecretName::Certain)),
            (".npmrc.swo", Some(SecretName::Certain)),
            (".id_rsa.swp", Some(SecretName::Certain)),
            (".env.un~", Some(SecretName::Certain)),
            ("..env.un~", Some(SecretName::Certain)),
            (".id_ed25519.un~", Some(SecretName::Certain)),
            ("#.env#", Some(SecretName::Certain)),
            (".#.env", Some(SecretName::Certain)),
            (".env.~1~", Some(SecretName::Certain)),
            (".env,v", Some(SecretName::Certain)),
            ("id_rsa,v", Some(SecretName::Certain)),
            (".env (1)", Some(SecretName::Certain)),
            (".netrc (another copy)", Some(SecretName::Certain)),
            ("secrets (1).yaml", Some(SecretName::Certain)),
            ("secrets copy 2.yaml", Some(SecretName::Certain)),
            ("id_rsa copy", Some(SecretName::Certain)),
            ("id_rsa - Copy", Some(SecretName::Certain)),
            ("Copy of .npmrc", Some(SecretName::Certain)),
            ("id_rsa.1", Some(SecretName::Certain)),
            (".server.pem.swp", Some(SecretName::IfKey)),
            ("server (1).key", Some(SecretName::IfKey)),
            (".deploy_key.swp", Some(SecretName::IfKey)),
            (".main.rs.swp", None),
            ("#main.rs#", None),
            ("main.rs,v", None),
            ("notes (1).txt", None),
            ("photo copy 2.png", None),
            (".env.example.swp", None),
            ("..env.example.un~", None),
            (".env.example (1)", None),
            (".id_rsa.pub.swp", None),
            ("id_rsa copy.pub", None),
            ("()", None),
            ("#", None),
            ("copy", None),
            ("copy of", None),
        ] {
            assert_eq!(secret_name(name.as_bytes()), kind, "{name}");
        }
    }

    #[test]
    fn some_names_are_secrets_only_in_their_folders() {
        check("home/.docker/config.json", Some(("config.json", true)));
        check("docker/config.json", None);
        for (path, is_secret) in [
            (".docker/config.json", true),
            ("x/.Docker/Config.json", true),
            ("config.json", false),
            (".docker/x", false),
        ] {
            assert_eq!(
                secret_path(path.as_bytes()),
                is_secret.then_some(SecretName::Certain),
                "{path}"
            );
        }
        assert_eq!(secret_path(b"deep/.env"), Some(SecretName::Certain));
        assert_eq!(
            secret_path(b"config/credentials/production.key"),
            Some(SecretName::Certain)
        );
        assert_eq!(
            secret_path(b"config/production.key"),
            Some(SecretName::IfKey)
        );
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
