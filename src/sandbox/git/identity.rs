use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::guest::keep::git::identity_in;
use crate::wire::keep::Identity;

/// Longest file of settings that is read.
const LONGEST: u64 = 1 << 20;

/// Who commits in a session where neither the repository nor the person's settings say.
const NOBODY: (&str, &str) = ("Podbay", "podbay@localhost");

/// Returns who the person is to git, by their own settings (`~/.gitconfig` and `git/config` in the folder of settings). Files that these
/// include are not read.
pub fn identity(home: Option<&Path>, config: Option<&Path>) -> Identity {
    let files = [home.map(|home| home.join(".gitconfig")), config.map(|config| config.join("git/config"))];
    let mut identity = (None, None);
    for path in files.into_iter().flatten() {
        let Ok(file) = File::open(&path) else { continue };
        let mut text = Vec::new();
        if !file.metadata().is_ok_and(|facts| facts.is_file()) || file.take(LONGEST).read_to_end(&mut text).is_err() {
            continue;
        }
        let (name, email) = identity_in(&text);
        identity = (identity.0.or(name), identity.1.or(email));
    }
    Identity { name: identity.0.unwrap_or_else(|| NOBODY.0.to_owned()), email: identity.1.unwrap_or_else(|| NOBODY.1.to_owned()) }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_person_is_who_their_own_settings_say() {
        let place = tempfile::tempdir().expect("a folder");
        let said = || {
            let identity = identity(Some(place.path()), Some(place.path()));
            format!("{} <{}>", identity.name, identity.email)
        };
        assert_eq!(said(), "Podbay <podbay@localhost>");
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(place.path().join("git/config"), "[user]\nname = Other\nemail = other@example.org\n").expect("written");
        fs::write(place.path().join(".gitconfig"), "[user]\n\tname = \"Ann Lee\"\n[user \"x\"]\n\temail = no\n").expect("written");
        assert_eq!(said(), "Ann Lee <other@example.org>");
        fs::write(place.path().join(".gitconfig"), "[user\nname =").expect("written");
        assert_eq!(said(), "Other <other@example.org>");
    }
}
