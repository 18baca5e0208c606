use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::path::PathBuf;

use crate::guest::keep::git::excludes_in;
use crate::guest::keep::git::filters_in;
use crate::guest::keep::git::identity_in;
use crate::wire::keep::Identity;
use crate::wire::keep::Person;

/// Longest file of settings that is read.
const LONGEST: u64 = 1 << 20;
/// How many filters are named to a keeper.
const MOST_FILTERS: usize = 100;
/// How many bytes of rules of what git leaves alone a keeper is told of.
const MOST_RULES: usize = 64 << 10;

/// Who commits in a session where neither the repository nor the person's settings say.
const NOBODY: (&str, &str) = ("Podbay", "podbay@localhost");

/// Returns who the person is to git and which filters theirs has, by their own settings (`~/.gitconfig` and `git/config` in the folder of
/// settings) and by `gitconfig` in that of the machine. Files that these include are not read.
pub fn person(home: Option<&Path>, config: Option<&Path>, machine: Option<&Path>) -> Person {
    let files = [
        home.map(|home| home.join(".gitconfig")),
        config.map(|config| config.join("git/config")),
        machine.map(|machine| machine.join("gitconfig")),
    ];
    let (mut name, mut email, mut excludes) = (None, None, None);
    let mut person = Person::default();
    for text in files.into_iter().flatten().filter_map(|path| read(&path)) {
        let (own_name, own_email) = identity_in(&text);
        (name, email) = (name.or(own_name), email.or(own_email));
        excludes = excludes.or_else(|| excludes_in(&text));
        let (filters, has_more) = filters_in(&text);
        person.filters.extend(filters);
        person.has_more |= has_more;
    }
    person.filters.sort();
    person.filters.dedup();
    person.has_more |= person.filters.len() > MOST_FILTERS;
    person.filters.truncate(MOST_FILTERS);
    let rules = excludes.map_or_else(|| config.map(|config| config.join("git/ignore")), |said| at(home, said));
    person.ignored = rules.and_then(|path| read(&path)).map(|rules| lines(&rules)).unwrap_or_default();
    let or_nobody = |said: Option<String>, nobody: &str| said.unwrap_or_else(|| nobody.to_owned());
    person.identity = Some(Identity { name: or_nobody(name, NOBODY.0), email: or_nobody(email, NOBODY.1) });
    person
}

/// Returns where a path leads that settings name; `None`: nobody can tell without git.
fn at(home: Option<&Path>, said: Vec<u8>) -> Option<PathBuf> {
    let said = PathBuf::from(OsString::from_vec(said));
    match said.strip_prefix("~") {
        Ok(below) => Some(home?.join(below)),
        Err(_) => said.is_absolute().then_some(said),
    }
}

/// Returns as many lines as a keeper is told of, without those that no text can hold.
fn lines(rules: &[u8]) -> String {
    let lines = rules.split_inclusive(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut n_bytes = 0;
    let room = |line: &&str| {
        n_bytes += line.len();
        n_bytes <= MOST_RULES
    };
    lines.take_while(room).collect()
}

/// Reads as much of a file as is read of any.
fn read(path: &Path) -> Option<Vec<u8>> {
    // A pipe would have everybody wait.
    if !std::fs::metadata(path).is_ok_and(|facts| facts.is_file()) {
        return None;
    }
    let mut text = Vec::new();
    File::open(path).ok()?.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_person_is_who_their_own_settings_say() {
        let place = tempfile::tempdir().expect("a folder");
        let said = || {
            let identity = person(Some(place.path()), Some(place.path()), None).identity.expect("somebody");
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

    #[test]
    fn rules_of_what_is_ignored_come_from_where_the_settings_say() {
        let place = tempfile::tempdir().expect("a folder");
        let ignored = || person(Some(place.path()), Some(place.path()), None).ignored;
        assert_eq!(ignored(), "");
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(place.path().join("git/ignore"), b"*.log\n\xff\nend").expect("written");
        assert_eq!(ignored(), "*.log\nend");
        fs::write(place.path().join("rules"), format!(".idea/\n{}", "x".repeat(MOST_RULES))).expect("written");
        fs::write(place.path().join(".gitconfig"), "[core]\nexcludesFile = ~/rules\n").expect("written");
        assert_eq!(ignored(), ".idea/\n");
        fs::write(place.path().join(".gitconfig"), "[core]\nexcludesFile = relative\n").expect("written");
        assert_eq!(ignored(), "");
    }

    #[test]
    fn filters_of_all_settings_are_known_and_where_there_may_be_more_is_said() {
        let place = tempfile::tempdir().expect("a folder");
        let known = || {
            let person = person(Some(place.path()), Some(place.path()), Some(place.path()));
            (person.filters.iter().map(ToString::to_string).collect::<Vec<_>>(), person.has_more)
        };
        assert_eq!(known(), (vec![], false));
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(place.path().join(".gitconfig"), "[filter \"crypt\"]\n\tclean = enc\n\tsmudge = dec\n").expect("written");
        fs::write(place.path().join("git/config"), "[filter \"books\"]\nprocess = strip\n[filter \"none\"]\nclean =\nrequired\n")
            .expect("written");
        fs::write(place.path().join("gitconfig"), "[filter \"crypt\"]\nclean = other\n").expect("written");
        assert_eq!(known(), (vec!["books".to_owned(), "crypt".to_owned()], false));
        fs::write(place.path().join("gitconfig"), "[includeIf \"gitdir:~/work/\"]\npath = work\n").expect("written");
        assert_eq!(known(), (vec!["books".to_owned(), "crypt".to_owned()], true));
    }
}
