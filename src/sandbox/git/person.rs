use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use nix::libc;

use podbay_guest::keep::git::FilterSettings;
use podbay_guest::keep::git::excludes_in;
use podbay_guest::keep::git::filters_named;
use podbay_guest::keep::git::identity_in;
use podbay_guest::keep::git::line_ends_in;
use podbay_wire::BytesPath;
use podbay_wire::keep::AttributesFile;
use podbay_wire::keep::Identity;
use podbay_wire::keep::UserGitSettings;

/// Most bytes of a settings file.
const LONGEST: u64 = 1 << 20;
/// Most filters that a keeper is given.
const MOST_FILTERS: usize = 100;
/// Most bytes of ignore rules that a keeper is given.
const MOST_RULES: usize = 64 << 10;

/// Most included settings files, and how deep they nest, which is git's own limit.
const MOST_FILES: usize = 64;
const DEEPEST: usize = 10;

/// The committer of a session, if neither the repository nor the user's settings name one.
const NOBODY: (&str, &str) = ("Podbay", "podbay@localhost");

/// Returns the user's identity, line-end settings and filters from their own settings
/// (`~/.gitconfig` and `git/config` in the configuration folder) and the machine's `gitconfig`.
/// Included files are read for filters only, since conditional includes are not evaluated.
pub fn person(
    home: Option<&Path>,
    config: Option<&Path>,
    machine: Option<&Path>,
) -> UserGitSettings {
    let files = [
        home.map(|home| home.join(".gitconfig")),
        config.map(|config| config.join("git/config")),
        machine.map(|machine| machine.join("gitconfig")),
    ];
    let (mut name, mut email, mut excludes) = (None, None, None);
    let mut line_ends = BTreeMap::new();
    let mut filters = Filters {
        home,
        ..Filters::default()
    };
    let mut said = None;
    for (path, text) in files
        .into_iter()
        .flatten()
        .filter_map(|path| read(&path).map(|text| (path, text)))
    {
        let (own_name, own_email) = identity_in(&text);
        (name, email) = (name.or(own_name), email.or(own_email));
        excludes = excludes.or_else(|| excludes_in(&text));
        for (key, value) in line_ends_in(&text) {
            line_ends.entry(key).or_insert(value);
        }
        let attributes = filters.read(&path, &text, 0);
        said = said.or(attributes);
    }
    let is_said = said.is_some();
    filters.attributes.extend(said);
    let usual = config
        .filter(|_| !is_said)
        .map(|config| config.join("git/attributes"));
    let mut attributes: Vec<AttributesFile> = filters
        .attributes
        .iter()
        .filter_map(|said| attributes_said(home, said))
        .collect();
    attributes.extend(usual.map(|path| attributes_at(&path, false)));
    attributes.extend(machine.map(|machine| attributes_at(&machine.join("gitattributes"), true)));
    attributes.retain(|one| !one.filters.is_empty() || !one.path.as_bytes().starts_with(b"/"));
    let has_more = filters.has_more || filters.known.len() > MOST_FILTERS;
    let known = filters.known.into_iter().take(MOST_FILTERS).collect();
    let rules = excludes.map_or_else(
        || config.map(|config| config.join("git/ignore")),
        |said| at(home, said),
    );
    let ignored = rules
        .and_then(|path| read(&path))
        .map(|rules| lines(&rules))
        .unwrap_or_default();
    let or_nobody = |said: Option<String>, nobody: &str| said.unwrap_or_else(|| nobody.to_owned());
    let identity = Some(Identity {
        name: or_nobody(name, NOBODY.0),
        email: or_nobody(email, NOBODY.1),
    });
    UserGitSettings {
        identity,
        filters: known,
        has_more,
        attributes,
        ignored,
        line_ends,
    }
}

/// The filters in the user's settings, with all includes.
#[derive(Default)]
struct Filters<'a> {
    home: Option<&'a Path>,
    known: BTreeSet<BytesPath>,
    has_more: bool,
    /// Attribute files that an included file may name.
    attributes: BTreeSet<Vec<u8>>,
    n_files: usize,
}

impl Filters<'_> {
    /// Reads a file and its includes; returns the attribute file that it names itself.
    fn read(&mut self, path: &Path, text: &[u8], depth: usize) -> Option<Vec<u8>> {
        let FilterSettings {
            filters,
            attributes,
            includes,
        } = FilterSettings::of(text);
        self.known.extend(filters);
        for said in includes {
            let Some(included) = included(self.home, path, said) else {
                self.has_more = true;
                continue;
            };
            // Git ignores a missing file too.
            let Some(text) = read(&included) else {
                continue;
            };
            self.n_files += 1;
            if depth == DEEPEST || self.n_files > MOST_FILES {
                self.has_more = true;
                continue;
            }
            let attributes = self.read(&included, &text, depth + 1);
            self.attributes.extend(attributes);
        }
        attributes
    }
}

/// Returns the path of an included file; `None` if only git could resolve it.
fn included(home: Option<&Path>, by: &Path, said: Vec<u8>) -> Option<PathBuf> {
    let is_beside = !said.starts_with(b"~") && !said.starts_with(b"%(");
    if is_beside {
        Some(by.parent()?.join(OsString::from_vec(said)))
    } else {
        at(home, said)
    }
}

/// Returns the content of a global attribute file that settings name. A relative path is inside
/// each repository.
fn attributes_said(home: Option<&Path>, said: &[u8]) -> Option<AttributesFile> {
    if said.is_empty() {
        return None;
    }
    let is_relative =
        !said.starts_with(b"/") && !said.starts_with(b"~") && !said.starts_with(b"%(");
    if is_relative {
        return Some(AttributesFile {
            path: BytesPath::from_bytes(said),
            filters: Vec::new(),
            is_of_machine: false,
        });
    }
    Some(attributes_at(&at(home, said.to_vec())?, false))
}

fn attributes_at(path: &Path, is_of_machine: bool) -> AttributesFile {
    let text = read(path).unwrap_or_default();
    let filters: BTreeSet<&[u8]> = filters_named(&text).collect();
    let filters = filters
        .into_iter()
        .take(MOST_FILTERS)
        .map(BytesPath::from_bytes)
        .collect();
    AttributesFile {
        path: BytesPath::from(path),
        filters,
        is_of_machine,
    }
}

/// Returns the path that settings name; `None` if only git could resolve it.
fn at(home: Option<&Path>, said: Vec<u8>) -> Option<PathBuf> {
    let said = PathBuf::from(OsString::from_vec(said));
    match said.strip_prefix("~") {
        Ok(below) => Some(home?.join(below)),
        Err(_) => said.is_absolute().then_some(said),
    }
}

/// Returns as many lines as a keeper accepts, without those that are not UTF-8.
fn lines(rules: &[u8]) -> String {
    let lines = rules
        .split_inclusive(|byte| *byte == b'\n')
        .filter_map(|line| std::str::from_utf8(line).ok());
    let mut n_bytes = 0;
    let room = |line: &&str| {
        n_bytes += line.len();
        n_bytes <= MOST_RULES
    };
    lines.take_while(room).collect()
}

/// Reads a file up to the bound.
fn read(path: &Path) -> Option<Vec<u8>> {
    // Opening a FIFO would block.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY)
        .open(path)
        .ok()?;
    if !file.metadata().is_ok_and(|facts| facts.is_file()) {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_users_identity_comes_from_their_own_settings() {
        let place = tempfile::tempdir().expect("a folder");
        let said = || {
            let identity = person(Some(place.path()), Some(place.path()), None)
                .identity
                .expect("somebody");
            format!("{} <{}>", identity.name, identity.email)
        };
        assert_eq!(said(), "Podbay <podbay@localhost>");
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(
            place.path().join("git/config"),
            "[user]\nname = Other\nemail = other@example.org\n",
        )
        .expect("written");
        fs::write(
            place.path().join(".gitconfig"),
            "[user]\n\tname = \"Ann Lee\"\n[user \"x\"]\n\temail = no\n",
        )
        .expect("written");
        assert_eq!(said(), "Ann Lee <other@example.org>");
        fs::write(place.path().join(".gitconfig"), "[user\nname =").expect("written");
        assert_eq!(said(), "Other <other@example.org>");
    }

    #[test]
    fn line_ends_come_from_the_first_settings_that_set_them() {
        let place = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        let said = || {
            let person = person(Some(place.path()), Some(place.path()), Some(place.path()));
            person
                .line_ends
                .iter()
                .map(|(key, value)| format!("{key} {value}"))
                .collect::<Vec<_>>()
        };
        assert_eq!(said(), [""; 0]);
        fs::create_dir(place.path().join("git")).expect("made");
        write("gitconfig", "[core]\nautocrlf = false\nsafecrlf = false\n");
        write("git/config", "[core]\nautocrlf = input\neol = lf\n");
        write(".gitconfig", "[core]\n\tautocrlf = true\n");
        assert_eq!(said(), ["autocrlf true", "eol lf", "safecrlf false"]);
        write(".gitconfig", "[core]\n\tautocrlf = !touch PWN\n");
        assert_eq!(said(), ["autocrlf input", "eol lf", "safecrlf false"]);
    }

    #[test]
    fn global_ignore_rules_are_read_from_the_configured_file() {
        let place = tempfile::tempdir().expect("a folder");
        let ignored = || person(Some(place.path()), Some(place.path()), None).ignored;
        assert_eq!(ignored(), "");
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(place.path().join("git/ignore"), b"*.log\n\xff\nend").expect("written");
        assert_eq!(ignored(), "*.log\nend");
        fs::write(
            place.path().join("rules"),
            format!(".idea/\n{}", "x".repeat(MOST_RULES)),
        )
        .expect("written");
        fs::write(
            place.path().join(".gitconfig"),
            "[core]\nexcludesFile = ~/rules\n",
        )
        .expect("written");
        assert_eq!(ignored(), ".idea/\n");
        fs::write(
            place.path().join(".gitconfig"),
            "[core]\nexcludesFile = relative\n",
        )
        .expect("written");
        assert_eq!(ignored(), "");
    }

    #[test]
    fn filters_of_all_settings_are_found_and_unknown_ones_reported() {
        let place = tempfile::tempdir().expect("a folder");
        let known = || {
            let person = person(Some(place.path()), Some(place.path()), Some(place.path()));
            (
                person
                    .filters
                    .iter()
                    .map(ToString::to_string)
                    .collect::<Vec<_>>(),
                person.has_more,
            )
        };
        assert_eq!(known(), (vec![], false));
        fs::create_dir(place.path().join("git")).expect("made");
        fs::write(
            place.path().join(".gitconfig"),
            "[filter \"crypt\"]\n\tclean = enc\n\tsmudge = dec\n",
        )
        .expect("written");
        fs::write(
            place.path().join("git/config"),
            "[filter \"books\"]\nprocess = strip\n[filter \"none\"]\nclean =\nrequired\n",
        )
        .expect("written");
        fs::write(
            place.path().join("gitconfig"),
            "[filter \"crypt\"]\nclean = other\n",
        )
        .expect("written");
        assert_eq!(
            known(),
            (vec!["books".to_owned(), "crypt".to_owned()], false)
        );
        // With included files, whether their condition holds or not; a missing file gives nothing.
        fs::write(
            place.path().join("gitconfig"),
            "[includeIf \"gitdir:~/work/\"]\npath = work\n[include]\npath = none\n",
        )
        .expect("written");
        fs::write(place.path().join("work"), "[include]\npath = ~/more\n").expect("written");
        fs::write(
            place.path().join("more"),
            "[filter \"deep\"]\nclean = deep\n[include]\npath = ~/work\n",
        )
        .expect("written");
        assert_eq!(
            known(),
            (
                vec!["books".to_owned(), "crypt".to_owned(), "deep".to_owned()],
                true
            ),
            "it goes round"
        );
        fs::write(
            place.path().join("more"),
            "[filter \"deep\"]\nclean = deep\n",
        )
        .expect("written");
        assert_eq!(
            known(),
            (
                vec!["books".to_owned(), "crypt".to_owned(), "deep".to_owned()],
                false
            )
        );
        fs::write(
            place.path().join("more"),
            "[include]\npath = ~somebody/more\n",
        )
        .expect("written");
        assert_eq!(
            known(),
            (vec!["books".to_owned(), "crypt".to_owned()], true)
        );
    }

    #[test]
    fn global_attributes_are_read_from_the_configured_file() {
        let place = tempfile::tempdir().expect("a folder");
        let write =
            |name: &str, text: &str| fs::write(place.path().join(name), text).expect("written");
        let named = || {
            let person = person(Some(place.path()), Some(place.path()), Some(place.path()));
            let told = |one: &AttributesFile| {
                let path = one
                    .path
                    .as_path()
                    .strip_prefix(place.path())
                    .map_or(one.path.to_string(), |path| path.display().to_string());
                format!(
                    "{path} {:?} {}",
                    one.filters
                        .iter()
                        .map(ToString::to_string)
                        .collect::<Vec<_>>(),
                    one.is_of_machine
                )
            };
            person.attributes.iter().map(told).collect::<Vec<_>>()
        };
        assert_eq!(named(), [""; 0]);
        fs::create_dir(place.path().join("git")).expect("made");
        write(
            "git/attributes",
            "*.yml filter=crypt diff=x\n* text=auto\n*.b filter=crypt\n",
        );
        write("gitattributes", "*.ipynb filter=books\n");
        let of_machine = "gitattributes [\"books\"] true";
        assert_eq!(named(), ["git/attributes [\"crypt\"] false", of_machine]);
        // The user's settings name another file: the last one counts, and an included one may.
        write("own", "* filter=own\n");
        write("other", "* filter=other\n");
        write("git/config", "[core]\nattributesFile = ~/other\n");
        assert_eq!(named(), ["other [\"other\"] false", of_machine]);
        write(
            ".gitconfig",
            &format!("[core]\nattributesFile = {}/own\n", place.path().display()),
        );
        assert_eq!(named(), ["own [\"own\"] false", of_machine]);
        write(
            ".gitconfig",
            "[includeIf \"gitdir:x\"]\npath = work\n[core]\nattributesFile = in/each\n",
        );
        write("work", "[core]\nattributesFile = ~/own\n");
        assert_eq!(named().len(), 3);
        assert_eq!(named()[0], "in/each [] false");
        // A FIFO does not block.
        fs::remove_file(place.path().join("own")).expect("removed");
        nix::unistd::mkfifo(&place.path().join("own"), nix::sys::stat::Mode::S_IRWXU)
            .expect("made");
        assert_eq!(named(), ["in/each [] false", of_machine]);
    }
}
