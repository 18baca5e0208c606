//! The engine's archive of images, which may come from anybody.
//!
//! An engine tags whatever such an archive names, and there are several places in it where names
//! can stand. So none of its lists is passed on: layers and configurations go to the engine as they
//! are, under names that are hashes, and the list is written anew.

use std::collections::HashMap;
use std::io;
use std::io::Read;
use std::io::Write;

use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;
use sha2::Sha256;
use tar::EntryType;

use super::file::hex;
use super::manifest::Image;
use super::manifest::is_hash;

/// Most bytes of a list or a configuration.
const MOST_JSON: u64 = 8 << 20;

/// Most entries of an archive.
const MOST_ENTRIES: usize = 20_000;

/// One image in the archive's own list; what else stands there is not passed on.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    config: String,
    #[serde(default)]
    repo_tags: Option<Vec<String>>,
    layers: Vec<String>,
}

/// What an entry is, by its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role<'a> {
    /// `manifest.json`.
    List,
    /// A file whose name is the hash of its bytes.
    Hashed(&'a str),
    /// A layer in the folder of an older engine.
    Layer,
    /// Lists that some engines read and we do not pass on, and folders.
    Dropped,
}

/// An archive that was looked at.
#[derive(Clone, Debug)]
pub(super) struct Archive {
    listed: Vec<Listed>,
}

/// Why an archive is not taken: it broke while it was read, or it is not what an engine writes.
#[derive(Debug)]
pub(super) enum Problem {
    Read(io::Error),
    Odd(String),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Read(error)
    }
}

fn odd<T>(problem: impl Into<String>) -> Result<T, Problem> {
    Err(Problem::Odd(problem.into()))
}

impl Archive {
    /// Reads an archive to its end and checks that all of it is what an engine writes.
    pub(super) fn inspect(mut read: impl Read) -> Result<Self, Problem> {
        let mut list = None;
        // Path of each file, and for a link where it leads.
        let mut seen: HashMap<String, Option<String>> = HashMap::new();
        let mut archive = tar::Archive::new(&mut read);
        for (at, entry) in archive.entries()?.enumerate() {
            let mut entry = entry?;
            if at >= MOST_ENTRIES {
                return odd(format!(
                    "the archive of images has more than {MOST_ENTRIES} entries"
                ));
            }
            let path = path_of(&entry)?;
            let Some(role) = role(&path, entry.header().entry_type()) else {
                return odd(format!(
                    "the archive of images has the entry `{}`",
                    path.escape_debug()
                ));
            };
            let link = match entry.header().entry_type() {
                EntryType::Symlink => Some(target(&entry)?),
                _ => None,
            };
            if seen.insert(path.clone(), link).is_some() {
                return odd(format!(
                    "the archive of images has the entry `{path}` twice"
                ));
            }
            match role {
                Role::List => list = Some(read_json(&mut entry)?),
                Role::Hashed(name) => {
                    let mut hasher = Sha256::new();
                    io::copy(&mut entry, &mut Hashing(&mut hasher))?;
                    if hex(&hasher.finalize()) != name {
                        return odd(format!(
                            "the bytes of `{path}` in the archive of images do not have that hash"
                        ));
                    }
                }
                Role::Layer | Role::Dropped => {}
            }
        }
        io::copy(&mut read, &mut io::sink())?;
        let Some(list) = list else {
            return odd("the archive of images has no list of them");
        };
        let mut listed: Vec<Listed> = serde_json::from_slice(&list)
            .or_else(|_| odd("the list of images in the archive is not as an engine writes it"))?;
        for image in &mut listed {
            if !matches!(
                role(&image.config, EntryType::Regular),
                Some(Role::Hashed(_))
            ) || !seen.contains_key(&image.config)
            {
                return odd("an image's configuration is not in the archive");
            }
            for layer in &mut image.layers {
                if let Some(Some(target)) = seen.get(layer.as_str()) {
                    layer.clone_from(target);
                }
                let is_layer = matches!(
                    role(layer, EntryType::Regular),
                    Some(Role::Layer | Role::Hashed(_))
                );
                if !is_layer || !matches!(seen.get(layer.as_str()), Some(None)) {
                    return odd("an image's layer is not in the archive");
                }
            }
        }
        Ok(Self { listed })
    }

    /// Returns every name that the archive gives, with the image's configuration.
    pub(super) fn images(&self) -> Result<Vec<Image>, Problem> {
        let mut images = Vec::new();
        for listed in &self.listed {
            let Some(Role::Hashed(config)) = role(&listed.config, EntryType::Regular) else {
                continue;
            };
            let names = listed.repo_tags.as_deref().unwrap_or_default();
            if names.is_empty() {
                return odd("the archive has an image without a name");
            }
            images.extend(names.iter().map(|name| Image {
                name: name.clone(),
                config: config.to_owned(),
            }));
        }
        images.sort();
        Ok(images)
    }

    /// Writes the archive for the engine: every layer and configuration as it is, and a list of our
    /// own.
    pub(super) fn rewrite(&self, read: &mut impl Read, write: impl Write) -> io::Result<()> {
        let mut out = tar::Builder::new(write);
        let mut archive = tar::Archive::new(&mut *read);
        for entry in archive.entries()? {
            let mut entry = entry?;
            let path = path_of(&entry)
                .map_err(|_| io::Error::other("the archive has changed meanwhile"))?;
            let kind = entry.header().entry_type();
            if kind == EntryType::Regular
                && matches!(role(&path, kind), Some(Role::Hashed(_) | Role::Layer))
            {
                out.append_data(&mut header(entry.size()), &path, &mut entry)?;
            }
        }
        io::copy(read, &mut io::sink())?;
        let list = serde_json::to_vec(&self.listed)?;
        out.append_data(
            &mut header(list.len() as u64),
            "manifest.json",
            list.as_slice(),
        )?;
        out.into_inner()?.flush()
    }
}

/// Returns the header of a file that says nothing about whose it was.
pub(super) fn header(size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_size(size);
    header
}

fn path_of(entry: &tar::Entry<'_, impl Read>) -> Result<String, Problem> {
    let bytes = entry.path_bytes();
    match std::str::from_utf8(&bytes) {
        Ok(path) => Ok(path.to_owned()),
        Err(_) => odd("a name in the archive of images is not UTF-8"),
    }
}

/// Says what an entry is; `None` where no engine writes such a thing.
fn role(path: &str, kind: EntryType) -> Option<Role<'_>> {
    let folder = path.strip_suffix('/');
    match kind {
        EntryType::Directory => {
            let folder = folder.unwrap_or(path);
            (is_hash(folder) || ["blobs", "blobs/sha256"].contains(&folder))
                .then_some(Role::Dropped)
        }
        EntryType::Regular | EntryType::Symlink => {
            let is_file = kind == EntryType::Regular;
            match path {
                "manifest.json" => is_file.then_some(Role::List),
                "repositories" | "index.json" | "oci-layout" => is_file.then_some(Role::Dropped),
                _ => {
                    if let Some(hash) = path
                        .strip_suffix(".json")
                        .or_else(|| path.strip_prefix("blobs/sha256/"))
                    {
                        return (is_file && is_hash(hash)).then_some(Role::Hashed(hash));
                    }
                    match path.split_once('/') {
                        Some((hash, "layer.tar")) if is_hash(hash) => Some(Role::Layer),
                        Some((hash, "VERSION" | "json")) if is_hash(hash) && is_file => {
                            Some(Role::Dropped)
                        }
                        _ => None,
                    }
                }
            }
        }
        _ => None,
    }
}

/// Returns the layer that a link leads to: older engines write one where two images share a layer.
fn target(entry: &tar::Entry<'_, impl Read>) -> Result<String, Problem> {
    let link = entry.link_name_bytes().unwrap_or_default();
    let target = std::str::from_utf8(&link)
        .ok()
        .and_then(|link| link.strip_prefix("../"));
    match target.filter(|target| role(target, EntryType::Symlink) == Some(Role::Layer)) {
        Some(target) => Ok(target.to_owned()),
        None => odd(format!(
            "the archive of images has a link to `{}`",
            String::from_utf8_lossy(&link).escape_debug()
        )),
    }
}

fn read_json(entry: &mut impl Read) -> Result<Vec<u8>, Problem> {
    let mut bytes = Vec::new();
    entry.take(MOST_JSON + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_JSON {
        odd("the list of images is too long")
    } else {
        Ok(bytes)
    }
}

/// Feeds a hash with what is written.
pub(super) struct Hashing<'a>(pub(super) &'a mut Sha256);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYER: &[u8] = b"the bytes of a layer";

    /// An archive as Docker 20.10 writes one, with a change.
    fn archive(change: impl FnOnce(&mut Vec<(String, Vec<u8>)>)) -> Vec<u8> {
        let config = br#"{"rootfs":{}}"#.to_vec();
        let name = hex(&Sha256::digest(&config));
        let list = format!(
            r#"[{{"Config":"{name}.json","RepoTags":["a:1"],"Layers":["{0}/layer.tar"]}}]"#,
            "1".repeat(64)
        );
        let mut files = vec![
            (format!("{}/layer.tar", "1".repeat(64)), LAYER.to_vec()),
            (format!("{name}.json"), config),
            ("manifest.json".to_owned(), list.into_bytes()),
            (
                "repositories".to_owned(),
                br#"{"evil":{"latest":"1"}}"#.to_vec(),
            ),
        ];
        change(&mut files);
        let mut out = tar::Builder::new(Vec::new());
        for (path, content) in files {
            let mut header = header(content.len() as u64);
            // As bytes: the builder itself refuses what an attacker would write.
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            header.set_cksum();
            out.append(&header, content.as_slice()).expect("written");
        }
        out.into_inner().expect("written")
    }

    #[track_caller]
    fn refused(bytes: &[u8], because: &str) {
        match Archive::inspect(bytes).and_then(|archive| archive.images()) {
            Err(Problem::Odd(problem)) => assert!(problem.contains(because), "{problem}"),
            other => panic!("{because}: {other:?}"),
        }
    }

    #[test]
    fn what_the_engine_gets_is_written_anew_and_names_nothing_else() {
        let bytes = archive(|_| {});
        let found = Archive::inspect(bytes.as_slice()).expect("whole");
        assert_eq!(found.images().expect("named").len(), 1);
        let mut out = Vec::new();
        found
            .rewrite(&mut bytes.as_slice(), &mut out)
            .expect("written");
        let mut names = Vec::new();
        for entry in tar::Archive::new(out.as_slice()).entries().expect("a tar") {
            let mut entry = entry.expect("an entry");
            let mut content = Vec::new();
            entry.read_to_end(&mut content).expect("read");
            assert!(!String::from_utf8_lossy(&content).contains("evil"));
            names.push(entry.path().expect("a path").to_string_lossy().into_owned());
        }
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(
            !names.contains(&"repositories".to_owned())
                && names.contains(&"manifest.json".to_owned()),
            "{names:?}"
        );
    }

    #[test]
    fn keys_that_an_engine_reads_in_another_case_are_not_passed_on() {
        let bytes = archive(|files| {
            let list = String::from_utf8(files[2].1.clone()).expect("text");
            files[2].1 = list
                .replace(r#""Layers""#, r#""repotags":["evil:latest"],"Layers""#)
                .into_bytes();
        });
        let found = Archive::inspect(bytes.as_slice()).expect("whole");
        let mut out = Vec::new();
        found
            .rewrite(&mut bytes.as_slice(), &mut out)
            .expect("written");
        assert!(!String::from_utf8_lossy(&out).contains("evil"));
    }

    #[test]
    fn what_no_engine_writes_is_refused() {
        for path in [
            "../up",
            "/etc/passwd",
            "a/../b",
            "hooks/pre",
            "./manifest.json",
            "blobs/sha256/../x",
        ] {
            refused(
                &archive(|files| files.push((path.to_owned(), vec![1]))),
                "has the entry",
            );
        }
        refused(&archive(|files| files.push(files[0].clone())), "twice");
        refused(
            &archive(|files| files[1].1.push(b' ')),
            "do not have that hash",
        );
        refused(&archive(|files| drop(files.remove(2))), "no list");
        refused(
            &archive(|files| drop(files.remove(1))),
            "configuration is not in the archive",
        );
        refused(
            &archive(|files| drop(files.remove(0))),
            "layer is not in the archive",
        );
        refused(
            &archive(|files| files[2].1 = b"{".to_vec()),
            "not as an engine writes it",
        );
        refused(
            &archive(|files| {
                files[2].1 = String::from_utf8_lossy(&files[2].1)
                    .replace("[\"a:1\"]", "null")
                    .into_bytes();
            }),
            "without a name",
        );
    }

    #[test]
    fn a_link_may_only_lead_to_another_layer() {
        let with_link = |to: &str| {
            let mut out = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(EntryType::Symlink);
            header.set_size(0);
            out.append_link(&mut header, format!("{}/layer.tar", "2".repeat(64)), to)
                .expect("written");
            out.into_inner().expect("written")
        };
        refused(&with_link("/etc/passwd"), "a link to `/etc/passwd`");
        refused(&with_link("../../x"), "a link to");
        refused(
            &with_link(&format!("../{}/layer.tar", "1".repeat(64))),
            "no list",
        );
        let mut device = tar::Builder::new(Vec::new());
        let mut node = tar::Header::new_gnu();
        node.set_entry_type(EntryType::Char);
        node.set_size(0);
        device
            .append_data(&mut node, "manifest.json", io::empty())
            .expect("written");
        refused(&device.into_inner().expect("written"), "has the entry");
    }
}
