use std::sync::atomic::AtomicBool;

use nix::errno::Errno;

use super::Workspace;
use super::edit_file::MAX_BYTES;
use super::edit_file::too_large;
use super::edit_report::closest;
use super::edit_report::numbered;
use super::encoded_text::EncodedText;
use super::invalid;
use super::patch_match::HunkFailure;
use super::patch_match::HunkProblem;
use super::patch_match::PatchedText;
use super::patch_match::apply;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::target_entry::refused;
use super::transaction::OpenedFile;
use super::transaction::Transaction;
use podbay_wire::ApplyPatch;
use podbay_wire::BytesPath;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::FilePatch;
use podbay_wire::Hunk;
use podbay_wire::PatchAction;

/// Lines shown where a hunk was expected and nothing there looks like it.
const SHOWN: usize = 8;

/// Characters shown of an anchor line that was not found.
const SHOWN_ANCHOR: usize = 200;

/// Applies a patch to all its files, or to none.
pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &ApplyPatch,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    if call.files.is_empty() {
        return Err(invalid("patch", "holds no change"));
    }
    refuse_below_a_file(workspace, &call.files)?;
    let _changing = workspace.changing();
    let mut patching = Patching {
        workspace,
        seen,
        protected: call.protected,
        stop,
        all: Transaction::default(),
    };
    let mut files = Vec::with_capacity(call.files.len());
    for file in &call.files {
        if stop.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        let mut change = patching.file(file)?;
        change.notes.extend(file.notes.iter().cloned());
        files.push(change);
    }
    seen.settle()?;
    if !call.dry_run {
        patching.all.commit(seen, stop)?;
    }
    Ok(Changed {
        files,
        dry_run: call.dry_run,
        memos: Vec::new(),
    })
}

struct Patching<'a> {
    workspace: &'a Workspace,
    seen: &'a SeenFiles,
    protected: bool,
    stop: &'a Stop<'a>,
    all: Transaction,
}

impl Patching<'_> {
    fn file(&mut self, file: &FilePatch) -> Result<FileChange, Fault> {
        match &file.action {
            PatchAction::Add { content } => {
                let at = self.new_file(&file.path)?;
                if content.len() as u64 > MAX_BYTES {
                    return Err(too_large(&file.path, content.len() as u64));
                }
                self.all.set(at, Some(content.clone().into_bytes()));
                Ok(FileChange {
                    path: self.all.shown(at).clone(),
                    change: Change::Created,
                    added: n_lines(content.as_bytes()),
                    ..FileChange::default()
                })
            }
            PatchAction::Delete { hunks } => {
                let (OpenedFile { at, by_link }, text) = self.old_file(&file.path, !hunks.is_empty()).map_err(|fault| match fault {
                    Fault::IsDirectory { path } => {
                        refused(&path, "is a directory, and a patch deletes files; use delete_file with `recursive`")
                    }
                    fault => fault,
                })?;
                refuse_link(by_link, &file.path)?;
                // A deletion without hunks must not remove a text that the model has not seen.
                if hunks.is_empty() && self.all.is_stale(at, self.seen) {
                    return Err(Fault::Stale {
                        path: file.path.clone(),
                    });
                }
                let encoded_text = EncodedText::of(&text);
                if !hunks.is_empty()
                    && !self
                        .patched(at, &file.path, encoded_text.text.as_bytes(), hunks)?
                        .text
                        .is_empty()
                {
                    return Err(refused(
                        &file.path,
                        "holds more than the patch deletes; read it again",
                    ));
                }
                self.all.set(at, None);
                Ok(FileChange {
                    path: self.all.shown(at).clone(),
                    change: Change::Deleted,
                    removed: n_lines(encoded_text.text.as_bytes()),
                    ..FileChange::default()
                })
            }
            PatchAction::Update { hunks, to } => self.update(&file.path, hunks, to.as_ref()),
        }
    }

    fn update(
        &mut self,
        path: &BytesPath,
        hunks: &[Hunk],
        to: Option<&BytesPath>,
    ) -> Result<FileChange, Fault> {
        let (OpenedFile { at, by_link }, text) = self.old_file(path, !hunks.is_empty())?;
        let encoded_text = EncodedText::of(&text);
        let PatchedText {
            text: new,
            added,
            removed,
            by_number,
            mut notes,
        } = self.patched(at, path, encoded_text.text.as_bytes(), hunks)?;
        let new = encoded_text.edited(path, &new)?;
        notes.extend(encoded_text.notes());
        if by_number && self.all.is_stale(at, self.seen) {
            return Err(Fault::Stale { path: path.clone() });
        }
        if new.len() as u64 > MAX_BYTES {
            return Err(too_large(path, new.len() as u64));
        }
        let change = FileChange {
            path: self.all.shown(at).clone(),
            added,
            removed,
            notes,
            ..FileChange::default()
        };
        // A file that is moved to its own name stays where it is.
        let to = match to {
            Some(to) if !self.is_itself(to, at)? => Some(to),
            _ => None,
        };
        let Some(to) = to else {
            if new == text {
                return Err(refused(path, "is not changed by the patch"));
            }
            self.all.set(at, Some(new));
            return Ok(change);
        };
        refuse_link(by_link, path)?;
        let target = self.new_file(to)?;
        self.all.take_mode(target, at);
        self.all.set(at, None);
        self.all.set(target, Some(new));
        let (path, mut notes) = (self.all.shown(target).clone(), change.notes);
        if self.all.has_other_names(at) {
            notes.push(format!(
                "the old file has other names (hard links), which stay with the old text, since {path} is a file of its own; move_file keeps them \
                 together"
            ));
        }
        Ok(FileChange {
            path,
            from: Some(change.path),
            change: Change::Moved,
            notes,
            ..change
        })
    }

    /// Returns whether a path is that of the changed file, by any of its names.
    fn is_itself(&self, path: &BytesPath, at: usize) -> Result<bool, Fault> {
        match TargetFile::find(
            &self.workspace.root,
            path,
            self.protected,
            Parents::MustExist,
        ) {
            Ok(place) => Ok(self.all.is_at(at, &place.real(&self.workspace.root)?)),
            Err(_) => Ok(false),
        }
    }

    fn patched(
        &self,
        at: usize,
        path: &BytesPath,
        text: &[u8],
        hunks: &[Hunk],
    ) -> Result<PatchedText, Fault> {
        patched(path, text, hunks, self.stop)
            .map_err(|fault| self.all.outdated(at, self.seen, fault))
    }

    fn old_file(
        &mut self,
        path: &BytesPath,
        must_be_text: bool,
    ) -> Result<(OpenedFile, Vec<u8>), Fault> {
        let taken = self.all.open(
            self.workspace,
            self.seen,
            path,
            self.protected,
            Parents::MustExist,
            must_be_text,
        )?;
        match self.all.text(taken.at) {
            Some(text) => Ok((taken, text.clone())),
            None if self.all.was_there(taken.at) => Err(refused(
                path,
                "is deleted or moved earlier in the patch; change it before that",
            )),
            None => Err(self.workspace.root.fault(path, Errno::ENOENT)),
        }
    }

    fn new_file(&mut self, path: &BytesPath) -> Result<usize, Fault> {
        let at = self
            .all
            .open(
                self.workspace,
                self.seen,
                path,
                self.protected,
                Parents::Make,
                false,
            )?
            .at;
        if self.all.text(at).is_some() {
            let remedy = "update it, or delete it earlier in the patch".to_owned();
            return Err(Fault::Exists {
                path: path.clone(),
                remedy,
            });
        }
        Ok(at)
    }
}

/// Refuses a patch that creates both a file and a path below it.
fn refuse_below_a_file(workspace: &Workspace, files: &[FilePatch]) -> Result<(), Fault> {
    let made = files.iter().filter_map(|file| match &file.action {
        PatchAction::Add { .. } => Some(&file.path),
        PatchAction::Update { to, .. } => to.as_ref(),
        PatchAction::Delete { .. } => None,
    });
    // With a slash appended to each, all paths below a file sort right after it.
    let keyed = made.map(|path| {
        Ok((
            [workspace.root.relative(path)?.as_bytes(), b"/"].concat(),
            path,
        ))
    });
    let mut made = keyed.collect::<Result<Vec<_>, Fault>>()?;
    made.sort();
    match made
        .windows(2)
        .find(|pair| pair[1].0.len() > pair[0].0.len() && pair[1].0.starts_with(&pair[0].0))
    {
        Some([(_, file), (_, below)]) => {
            let problem = format!(
                "would be inside {file}, which the same patch creates as a file; rename one of them. Nothing was changed"
            );
            Err(refused(below, problem))
        }
        _ => Ok(()),
    }
}

/// Deleting a link would not delete the file that it leads to.
fn refuse_link(by_link: bool, path: &BytesPath) -> Result<(), Fault> {
    if by_link {
        Err(refused(
            path,
            "is a symbolic link; use delete_file or move_file for it",
        ))
    } else {
        Ok(())
    }
}

fn patched(
    path: &BytesPath,
    text: &[u8],
    hunks: &[Hunk],
    stop: &Stop<'_>,
) -> Result<PatchedText, Fault> {
    apply(text, hunks, stop).map_err(|HunkFailure { hunk, why }| match why {
        HunkProblem::Ambiguous(lines) => Fault::HunkAmbiguous {
            path: path.clone(),
            hunk,
            lines,
        },
        HunkProblem::NoAnchor(anchor) => Fault::HunkUnanchored {
            path: path.clone(),
            hunk,
            anchor: anchor.chars().take(SHOWN_ANCHOR).collect(),
        },
        HunkProblem::Cancelled => Fault::Cancelled,
        HunkProblem::Nowhere { applied } => Fault::HunkMissed {
            path: path.clone(),
            hunk,
            applied,
            closest: instead(text, &hunks[hunk as usize - 1]),
        },
    })
}

/// Returns the lines found where a hunk was expected.
fn instead(text: &[u8], hunk: &Hunk) -> String {
    let old: Vec<&str> = hunk.old().collect();
    let closest = closest(text, &old.join("\n"));
    if closest.is_empty() {
        numbered(
            text,
            hunk.line.map_or(0, |line| line.saturating_sub(1)),
            SHOWN,
        )
    } else {
        closest
    }
}

fn n_lines(text: &[u8]) -> u64 {
    text.split_inclusive(|byte| *byte == b'\n').count() as u64
}
