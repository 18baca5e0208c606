//! Models in a folder of the user's: what lies there is served from there, and never copied.

use std::env;
use std::path::Path;
use std::path::PathBuf;

use super::Entry;
use super::model_file::ModelFile;

/// Names the folder; compose sets it to where it mounts that.
const VARIABLE: &str = "PODBAY_MODELS";

/// Returns the first file of a model, if all of its files lie in that folder by their own names.
pub(super) fn find(entry: &Entry, pieces: &[ModelFile]) -> Option<PathBuf> {
    let folder = env::var_os(VARIABLE).map(PathBuf::from)?;
    find_in(&folder, entry, pieces)
}

fn find_in(folder: &Path, entry: &Entry, pieces: &[ModelFile]) -> Option<PathBuf> {
    let own = |piece: &ModelFile| {
        let name = piece.to.file_name()?.to_str()?;
        // Of a path at the hub the folders are part of the name.
        let path = folder.join(name.rsplit("--").next().unwrap_or(name));
        let facts = path.metadata().ok()?;
        // Where it is known what the file is like, another one of its name is not it.
        let is_right = entry.sha256.is_none() || facts.len() == entry.size;
        (facts.is_file() && is_right).then_some(path)
    };
    let all: Option<Vec<PathBuf>> = pieces.iter().map(own).collect();
    all?.into_iter().next()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use reqwest::Url;

    use super::*;
    use crate::catalogue::built_in;
    use crate::model_file::pieces;

    #[test]
    fn a_model_of_the_list_is_found_by_the_names_of_its_files() {
        let hub = Url::parse("https://hub.example/").expect("an address");
        let folder = tempfile::tempdir().expect("a folder");
        let all = built_in();
        let of_hub = all
            .iter()
            .find(|entry| entry.sha256.is_none())
            .expect("most are untried");
        let pinned = all
            .iter()
            .find(|entry| entry.sha256.is_some())
            .expect("the small one");
        for entry in [of_hub, pinned] {
            let files = pieces(entry, &hub);
            assert_eq!(find_in(folder.path(), entry, &files), None);
            for piece in &files {
                let name = piece
                    .to
                    .file_name()
                    .expect("a name")
                    .to_str()
                    .expect("text");
                let name = name.rsplit("--").next().unwrap_or(name);
                fs::write(folder.path().join(name), "GGUF").expect("written");
            }
            let found = find_in(folder.path(), entry, &files);
            assert_eq!(found.is_some(), entry.sha256.is_none(), "{}", entry.id);
        }
        let files = pieces(pinned, &hub);
        let path = folder.path().join(files[0].to.file_name().expect("a name"));
        let file = fs::File::create(&path).expect("made");
        file.set_len(pinned.size).expect("a size");
        assert_eq!(find_in(folder.path(), pinned, &files), Some(path));
    }
}
