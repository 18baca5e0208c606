//! Instructions of folders: once the model has touched a file in a folder, it is told those of the
//! folder, and of the folders above it.

use std::collections::BTreeSet;

use tokio_util::sync::CancellationToken;

use super::Agent;
use super::instruction_file::read;
use super::instruction_imports::imported;
use super::prompt::ProjectContext;
use super::window_gauge::ASSUMED_WINDOW;
use podbay_sandbox as sandbox;
use podbay_wire::BytesPath;
use podbay_wire::INSTRUCTIONS;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::n_bytes;

/// Most folders that are looked at after one answer, how deep they may lie, and most of a session.
const MOST_AT_ONCE: usize = 16;
const DEEPEST: usize = 16;
const MOST: usize = 1000;
/// Share of the model's window that one folder's instructions take at most, and those of all folders
/// together, as its parts.
const SHARE: u64 = 20;
const SHARE_OF_ALL: u64 = 10;

/// What a session knows of the instructions of folders.
#[derive(Default)]
pub(super) struct FolderInstructions {
    /// Folders that were looked at, by their paths in the project.
    folders: BTreeSet<String>,
    /// Files that the model was told.
    told: BTreeSet<String>,
    n_bytes: usize,
    /// The user knows that there was no room for more.
    is_full: bool,
}

impl FolderInstructions {
    /// Restores which files an earlier run told.
    pub(super) fn recall(&mut self, files: &[String]) {
        self.told.extend(files.iter().cloned());
    }

    /// A summary took their place: they are told again when it matters.
    pub(super) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Returns the folders of these files that were not looked at, from the top down, and remembers
    /// them. The project's own folder is none of them: its instructions are told at the start.
    fn take(&mut self, touched: &[BytesPath]) -> Vec<String> {
        let mut new = Vec::new();
        for path in touched {
            let Ok(path) = std::str::from_utf8(path.as_bytes()) else {
                continue;
            };
            let ends = path.match_indices('/').map(|(at, _)| at);
            for end in ends.take(DEEPEST) {
                let folder = &path[..end];
                let is_plain = !folder.is_empty() && !folder.starts_with('/');
                if !is_plain || new.len() == MOST_AT_ONCE || self.folders.len() == MOST {
                    break;
                }
                if self.folders.insert(folder.to_owned()) {
                    new.push(folder.to_owned());
                }
            }
        }
        new
    }
}

impl Agent {
    /// Tells the model the instructions of folders in which a call touched files.
    pub(super) async fn tell_folder_instructions(
        &mut self,
        touched: &[BytesPath],
        cancel: &CancellationToken,
    ) {
        if !self.options.read_instructions {
            return;
        }
        for folder in self.folder_instructions.take(touched) {
            match self.folder_instructions_of(&folder, touched, cancel).await {
                Ok(Some(context)) => self.add_context(&context),
                Ok(None) => {}
                // The next call meets the same, and says it.
                Err(error) => {
                    tracing::debug!(%error, folder, "its instructions cannot be read");
                    return;
                }
            }
        }
    }

    /// Reads the first file of instructions in a folder, with what it imports.
    async fn folder_instructions_of(
        &mut self,
        folder: &str,
        touched: &[BytesPath],
        cancel: &CancellationToken,
    ) -> Result<Option<ProjectContext>, sandbox::Error> {
        let window = self.gauge.told(&self.client).unwrap_or(ASSUMED_WINDOW);
        let bytes = |parts: u64| usize::try_from(window.saturating_mul(4) / parts);
        let most = bytes(SHARE).unwrap_or(usize::MAX);
        let left = bytes(SHARE_OF_ALL)
            .unwrap_or(usize::MAX)
            .saturating_sub(self.folder_instructions.n_bytes);
        let names = [INSTRUCTIONS].into_iter().chain(OTHER_INSTRUCTIONS);
        for name in names.filter(|name| !name.contains('/')) {
            let path = format!("{folder}/{name}");
            // What the model reads or writes itself it knows.
            if touched
                .iter()
                .any(|known| known.as_bytes() == path.as_bytes())
                || self.folder_instructions.told.contains(&path)
            {
                return Ok(None);
            }
            let mut warnings = Vec::new();
            let (pipeline, options) = (&self.pipeline, &self.options);
            let room = most.min(left);
            let file = read(pipeline, options, &path, room, &mut warnings, cancel).await?;
            let Some(file) = file else {
                if warnings.is_empty() {
                    continue;
                }
                return Ok(Some(ProjectContext {
                    warnings,
                    ..ProjectContext::default()
                }));
            };
            let (text, is_cut) = file.cut(room);
            if text.is_empty() {
                if self.folder_instructions.is_full {
                    return Ok(None);
                }
                self.folder_instructions.is_full = true;
                warnings.push(format!(
                    "{path} and instructions of other folders are not followed: those that are take the room that there is for them"
                ));
                return Ok(Some(ProjectContext {
                    warnings,
                    ..ProjectContext::default()
                }));
            }
            if is_cut {
                warnings.push(format!(
                    "{path} is too long: only the first {} of it are followed",
                    n_bytes(text.len() as u64)
                ));
            }
            let heading = format!("The project's own instructions for files in {folder} ({path}):");
            let own = vec![(path.clone(), text.clone())];
            let room = room - text.len();
            let more = imported(pipeline, options, own, &file.seen, room, cancel).await?;
            let text = format!("{heading}\n{text}\n{}", more.text);
            warnings.extend(more.warnings);
            let instructions: Vec<String> = [path].into_iter().chain(more.files).collect();
            self.folder_instructions.n_bytes += text.len();
            self.folder_instructions.recall(&instructions);
            return Ok(Some(ProjectContext {
                text,
                seen: file.seen.into_iter().chain(more.seen).collect(),
                instructions,
                warnings,
                found: Vec::new(),
            }));
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: &mut FolderInstructions, touched: &[&str], expected: &[&str]) {
        let touched: Vec<BytesPath> = touched.iter().map(|path| (*path).into()).collect();
        assert_eq!(known.take(&touched), expected, "{touched:?}");
    }

    #[test]
    fn folders_are_looked_at_once_from_the_top_down() {
        let mut known = FolderInstructions::default();
        check(&mut known, &["a.txt", "src/app/a.rs"], &["src", "src/app"]);
        check(&mut known, &["src/app/b.rs", "src/c/d"], &["src/c"]);
        check(&mut known, &["src/app/b.rs"], &[]);
        check(&mut known, &["/etc/passwd", "deep/"], &["deep"]);
        known.forget();
        check(&mut known, &["src/app/b.rs"], &["src", "src/app"]);
    }

    #[test]
    fn number_and_depth_of_folders_are_bounded() {
        let mut known = FolderInstructions::default();
        let deep: BytesPath = "x/".repeat(50).as_str().into();
        assert_eq!(known.take(&[deep]).len(), DEEPEST);
        let many: Vec<BytesPath> = (0..100).map(|n| format!("{n}/a").as_str().into()).collect();
        assert_eq!(known.take(&many).len(), MOST_AT_ONCE);
        for _ in 0..200 {
            let many: Vec<BytesPath> = (0..2000)
                .map(|n| format!("{n}/a").as_str().into())
                .collect();
            known.take(&many);
        }
        assert_eq!(known.folders.len(), MOST);
    }
}
