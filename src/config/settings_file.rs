//! A settings file that is edited: comments and layout stay as they are.

use std::fs;
use std::fs::DirBuilder;
use std::io;
use std::io::Write;
use std::ops::Range;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;
use toml::Value;
use toml_edit::Document;
use toml_edit::DocumentMut;
use toml_edit::Item;
use toml_edit::Key;
use toml_edit::Table;
use toml_edit::TableLike;

use super::Error;
use super::Origin;
use super::document;
use super::env_vars;
use super::key;
use super::key::Known;
use super::layer::FILE_MAX;
use super::layer::Layer;
use super::secret::is_secret;
use super::user_file;

/// The text of a settings file, which may not exist yet.
#[derive(Clone, Debug)]
pub struct SettingsFile {
    path: PathBuf,
    text: String,
}

impl SettingsFile {
    /// Reads the file at this path, or the one of another form beside it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let path = document::find(path)?;
        let read = user_file::open(&path).and_then(|(file, _)| user_file::text(file, FILE_MAX));
        let text = match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            Err(source) => return Err(Error::Read { path, source }),
            Ok(text) => text,
        };
        Ok(Self { path, text })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn set_text(&mut self, text: String) {
        self.text = text;
    }

    /// Sets a key to a value as it is typed, read as TOML or, where that does not fit the key, as a
    /// string. Returns the value.
    pub fn set<C: Default + Serialize + DeserializeOwned>(
        &mut self,
        key: &str,
        typed: &str,
    ) -> Result<Value, Error> {
        let keys = self.keys::<C>(key)?;
        let value = read_value::<C>(key, &keys, typed)?;
        let before = self.text.clone();
        self.put(&keys, &value)?;
        // Alone, an entry of a table of free names lacks what it needs; with the rest it is known
        // which of its keys there are.
        let layer = Layer::parse(&self.path, self.text.clone())?;
        if let Ok(strange) = layer.check::<C>()
            && strange.iter().any(|strange| strange == key)
        {
            self.text = before;
            return Err(unknown::<C>(key));
        }
        Ok(value)
    }

    /// Removes a key, or a section with all that is in it; returns whether it was there.
    pub fn unset<C: Default + Serialize>(&mut self, key: &str) -> Result<bool, Error> {
        let keys = self.keys::<C>(key)?;
        if let Some(lines) = self.lines_of(&keys)? {
            self.text.replace_range(lines, "");
            return Ok(true);
        }
        let mut document = self.document()?;
        let is_removed = remove(document.as_table_mut(), &keys);
        if is_removed {
            self.text = document.to_string();
        }
        Ok(is_removed)
    }

    /// Replaces the file as a whole. A link stays a link, and the file keeps its mode.
    pub fn save(&self) -> Result<(), Error> {
        write_atomically(&self.path, &self.text).map_err(|source| Error::Write {
            path: self.path.clone(),
            source,
        })
    }

    fn document(&self) -> Result<DocumentMut, Error> {
        self.text
            .parse()
            .map_err(|error| syntax(&self.path, &self.text, &error))
    }

    /// Returns the parts of a key. Only TOML is edited by key.
    fn keys<C: Default + Serialize>(&self, key: &str) -> Result<Vec<Key>, Error> {
        if document::is_other_form(&self.path) {
            return Err(Error::OtherForm {
                path: self.path.clone(),
            });
        }
        Key::parse(key).map_err(|_| unknown::<C>(key))
    }

    fn put(&mut self, keys: &[Key], value: &Value) -> Result<(), Error> {
        let mut document = self.document()?;
        let value: toml_edit::Value = value
            .to_string()
            .parse()
            .expect("a value that is written as TOML reads as TOML");
        put(document.as_table_mut(), keys, value).map_err(|key| Error::Value {
            origin: Origin::File {
                path: self.path.clone(),
                line: 1,
            },
            what: format!("it is not a section: `podbay config unset {key}` removes it"),
            key,
        })?;
        self.text = document.to_string();
        Ok(())
    }

    /// Returns the lines that hold a key and its value, and nothing else but a comment behind them.
    fn lines_of(&self, keys: &[Key]) -> Result<Option<Range<usize>>, Error> {
        let document = Document::parse(self.text.as_str())
            .map_err(|error| syntax(&self.path, &self.text, &error))?;
        let Some((last, parents)) = keys.split_last() else {
            return Ok(None);
        };
        let mut table: &dyn TableLike = document.as_table();
        for key in parents {
            match table.get(key.get()).and_then(Item::as_table_like) {
                Some(below) => table = below,
                None => return Ok(None),
            }
        }
        let spans = table
            .get_key_value(last.get())
            .filter(|(_, item)| item.is_value())
            .and_then(|(key, item)| Some((key.span()?, item.span()?)));
        let Some((key, value)) = spans else {
            return Ok(None);
        };
        let begin = self.text[..key.start].rfind('\n').map_or(0, |at| at + 1);
        let end = self.text[value.end..]
            .find('\n')
            .map_or(self.text.len(), |at| value.end + at + 1);
        // `sandbox.memory = 1` is a line of its own; in `{ a = 1, b = 2 }` others stand beside it.
        let before = self.text[begin..key.start].trim();
        let behind = self.text[value.end..end].trim();
        let is_alone = (before.is_empty() || before.ends_with('.'))
            && !before.contains(['{', ',', '='])
            && (behind.is_empty() || behind.starts_with('#'));
        Ok(is_alone.then_some(begin..end))
    }
}

/// Finds the reading of a typed value that fits its key.
fn read_value<C: Default + Serialize + DeserializeOwned>(
    key: &str,
    keys: &[Key],
    typed: &str,
) -> Result<Value, Error> {
    let origin = Origin::Flag {
        name: "VALUE".to_owned(),
    };
    if is_secret(key) {
        return Err(Error::Secret {
            origin,
            key: key.to_owned(),
        });
    }
    let parts: Vec<&str> = keys.iter().map(Key::get).collect();
    let mut first = None;
    for value in env_vars::readings(typed, env_vars::Guess::Toml) {
        let layer = Layer::of_parts(key, &parts, value.clone(), origin.clone());
        match layer.check::<C>() {
            Ok(strange) if strange.is_empty() => return Ok(value),
            Ok(_) => return Err(unknown::<C>(key)),
            // The rest of the section may stand in the file; all of it is checked before it is
            // written.
            Err(error) if error.is_half() => return Ok(value),
            Err(error) => first = first.or(Some(error)),
        }
    }
    Err(first.expect("text can always be read as text"))
}

fn unknown<C: Default + Serialize>(key: &str) -> Error {
    let near = Known::of(&C::default()).near(key).map(str::to_owned);
    Error::UnknownKey {
        origin: Origin::Flag {
            name: "KEY".to_owned(),
        },
        key: key.to_owned(),
        near,
    }
}

/// Returns an error for a key that no setting has.
pub fn check_key<C: Default + Serialize>(key: &str) -> Result<(), Error> {
    let known = Known::of(&C::default());
    // Below a table of free names, any name may be a key.
    let is_free = key
        .char_indices()
        .filter(|(_, c)| *c == '.')
        .any(|(at, _)| known.has(&key[..at]));
    if known.has(key) || known.has_table(key) || is_free {
        Ok(())
    } else {
        Err(unknown::<C>(key))
    }
}

/// Sets a key below a table; returns the part that is there and is no table otherwise.
fn put(table: &mut dyn TableLike, keys: &[Key], value: toml_edit::Value) -> Result<(), String> {
    let Some((first, rest)) = keys.split_first() else {
        return Ok(());
    };
    if rest.is_empty() {
        if let Some(old) = table.get_mut(first.get()).and_then(Item::as_value_mut) {
            let decor = old.decor().clone();
            *old = value;
            *old.decor_mut() = decor;
        } else {
            table.insert(first.get(), Item::Value(value));
        }
        return Ok(());
    }
    let below = table.entry(first.get()).or_insert_with(|| {
        let mut table = Table::new();
        // A header of its own only where a value stands below it.
        table.set_implicit(true);
        Item::Table(table)
    });
    match below.as_table_like_mut() {
        Some(below) => put(below, rest, value).map_err(|key| key::join(first.get(), &key)),
        None => Err(first.get().to_owned()),
    }
}

fn remove(table: &mut dyn TableLike, keys: &[Key]) -> bool {
    match keys {
        [] => false,
        [last] => table.remove(last.get()).is_some(),
        [first, rest @ ..] => table
            .get_mut(first.get())
            .and_then(Item::as_table_like_mut)
            .is_some_and(|below| remove(below, rest)),
    }
}

fn syntax(path: &Path, text: &str, error: &toml_edit::TomlError) -> Error {
    let at = error.span().map_or(0, |span| span.start).min(text.len());
    Error::Syntax {
        path: path.to_owned(),
        line: text[..at].matches('\n').count() + 1,
        what: error.message().replace('\n', ", "),
    }
}

fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // Whoever keeps settings elsewhere has a link here.
    let target = match fs::canonicalize(path) {
        Ok(target) => target,
        Err(error) if error.kind() == io::ErrorKind::NotFound => path.to_owned(),
        Err(error) => return Err(error),
    };
    let folder = target.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut new = tempfile::NamedTempFile::new_in(folder)?;
    if let Ok(facts) = fs::metadata(&target) {
        new.as_file().set_permissions(facts.permissions())?;
    }
    new.write_all(text.as_bytes())?;
    new.as_file().sync_all()?;
    new.persist(&target)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::Config;

    const TEXT: &str = "\
# Mine.
offline = false # for now

[sandbox]
# Enough for the tests.
memory = \"2GiB\"   # was 1
#pids = 512
cpus = 1.5

[providers]
home = { base_url = \"http://h/v1\", model = \"m\" }
";

    fn file(text: &str) -> SettingsFile {
        SettingsFile {
            path: "/c/config.toml".into(),
            text: text.to_owned(),
        }
    }

    #[track_caller]
    fn check_set(before: &str, key: &str, typed: &str, after: &str) {
        let mut file = file(before);
        file.set::<Config>(key, typed).expect("it is set");
        assert_eq!(file.text(), after);
    }

    #[track_caller]
    fn check_unset(before: &str, key: &str, after: &str) {
        let mut file = file(before);
        assert!(file.unset::<Config>(key).expect("it is TOML"), "{key}");
        assert_eq!(file.text(), after);
        assert!(!file.unset::<Config>(key).expect("it is TOML"), "{key}");
    }

    #[test]
    fn a_value_is_replaced_where_it_stands_and_all_else_stays() {
        check_set(
            TEXT,
            "sandbox.memory",
            "4GiB",
            &TEXT.replace("\"2GiB\"", "\"4GiB\""),
        );
        check_set(
            TEXT,
            "offline",
            "true",
            &TEXT.replace("offline = false #", "offline = true #"),
        );
        check_set(
            TEXT,
            "providers.home.model",
            "5",
            &TEXT.replace("\"m\"", "\"5\""),
        );
        check_set(
            "sandbox.cpus = 1\n",
            "sandbox.cpus",
            "2",
            "sandbox.cpus = 2\n",
        );
    }

    #[test]
    fn a_new_key_stands_in_its_section() {
        check_set("", "offline", "true", "offline = true\n");
        check_set("", "sandbox.pids", "9", "[sandbox]\npids = 9\n");
        check_set(
            "# Mine.\n[ui]\ncolor = \"never\"\n",
            "sandbox.pids",
            "9",
            "# Mine.\n[ui]\ncolor = \"never\"\n\n[sandbox]\npids = 9\n",
        );
        check_set(
            "[providers.a]\nbase_url = \"http://a/v1\"\n",
            "providers.b.base_url",
            "http://b/v1",
            "[providers.a]\nbase_url = \"http://a/v1\"\n\n[providers.b]\nbase_url = \"http://b/v1\"\n",
        );
        check_set(
            "",
            "policy.deny",
            "write_file(a), bash(rm *)",
            "[policy]\ndeny = [\"write_file(a)\", \"bash(rm *)\"]\n",
        );
    }

    #[test]
    fn only_the_lines_of_a_key_are_removed() {
        check_unset(
            TEXT,
            "sandbox.memory",
            &TEXT.replace("memory = \"2GiB\"   # was 1\n", ""),
        );
        check_unset(TEXT, "sandbox.cpus", &TEXT.replace("cpus = 1.5\n", ""));
        check_unset(
            TEXT,
            "providers.home.model",
            &TEXT.replace(", model = \"m\" }", "}"),
        );
        check_unset("sandbox.cpus = 1\n", "sandbox.cpus", "");
        check_unset(
            "[policy]\ndeny = [\n  \"a\",\n]\n",
            "policy.deny",
            "[policy]\n",
        );
        check_unset("[ui]\ncolor = \"never\"\n", "ui", "");
    }

    #[track_caller]
    fn check_refused(key: &str, typed: &str, words: &str) {
        let mut file = file(TEXT);
        let error = file.set::<Config>(key, typed).expect_err("it is refused");
        let told = format!("{error}\n{}", error.hint());
        assert!(told.contains(words), "{told}");
        assert_eq!(file.text(), TEXT, "nothing was changed");
    }

    #[test]
    fn what_is_no_setting_or_does_not_fit_is_refused() {
        check_refused("sandbox.memroy", "2GiB", "did you mean `sandbox.memory`?");
        check_refused("sandbox..memory", "2GiB", "there is no setting");
        check_refused("sandbox.pids", "many", "write a whole number");
        check_refused("sandbox", "5", "a section");
        check_refused("llm.api_key", "sk-1", "looks like a secret");
        check_refused("providers.home.modle", "x", "there is no setting");
    }

    #[test]
    fn a_key_is_known_or_below_a_table_of_free_names() {
        for key in ["sandbox.memory", "sandbox", "offline", "providers.x.model"] {
            check_key::<Config>(key).expect("it is known");
        }
        for key in ["sandbox.memroy", "sandbx", "provider.x.model", ""] {
            check_key::<Config>(key).expect_err("it is unknown");
        }
    }

    #[test]
    fn a_saved_file_keeps_its_mode_and_its_link() {
        let temp = tempfile::tempdir().expect("a folder");
        let path = temp.path().join("new/podbay/config.toml");
        let mut file = SettingsFile::open(&path).expect("opens");
        file.set::<Config>("offline", "true").expect("set");
        file.save().expect("saved");
        let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
        assert_eq!(
            (mode(&path), mode(path.parent().expect("a folder"))),
            (0o600, 0o700)
        );
        let (real, link) = (temp.path().join("real.toml"), temp.path().join("link.toml"));
        fs::write(&real, "# mine\n").expect("written");
        fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("ours");
        std::os::unix::fs::symlink(&real, &link).expect("linked");
        let mut file = SettingsFile::open(&link).expect("opens");
        file.set::<Config>("offline", "true").expect("set");
        file.save().expect("saved");
        assert!(link.is_symlink());
        assert_eq!(
            fs::read_to_string(&real).expect("there"),
            "offline = true\n# mine\n"
        );
        assert_eq!(mode(&real), 0o640);
        let yaml = temp.path().join("yaml.toml");
        fs::write(yaml.with_extension("yaml"), "offline: true\n").expect("written");
        let mut file = SettingsFile::open(&yaml).expect("opens");
        let error = file
            .set::<Config>("offline", "false")
            .expect_err("it is YAML");
        assert!(
            error.hint().contains("podbay config edit"),
            "{}",
            error.hint()
        );
    }
}
