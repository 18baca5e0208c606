use std::sync::atomic::AtomicBool;

use nix::errno::Errno;

use super::Workspace;
use super::edit_file::MAX_BYTES;
use super::edit_file::too_large;
use super::edit_report::closest;
use super::edit_report::numbered;
use super::invalid;
use super::patch_match::Miss;
use super::patch_match::Patched;
use super::patch_match::Why;
use super::patch_match::apply;
use super::save::Parents;
use super::spot::refused;
use super::stop::Stop;
use super::transaction::Transaction;
use crate::wire::ApplyPatch;
use crate::wire::BytesPath;
use crate::wire::Change;
use crate::wire::Changed;
use crate::wire::Fault;
use crate::wire::FileChange;
use crate::wire::FilePatch;
use crate::wire::Hunk;
use crate::wire::PatchAction;

/// Lines shown where a hunk was expected and nothing there looks like it.
const SHOWN: usize = 8;

/// Applies a patch to all its files, or to none.
pub(super) fn run(workspace: &Workspace, call: &ApplyPatch, stop: &AtomicBool) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    if call.files.is_empty() {
        return Err(invalid("patch", "holds no change"));
    }
    let _changing = workspace.changing();
    let mut patching = Patching { workspace, protected: call.protected, all: Transaction::default() };
    let mut files = Vec::with_capacity(call.files.len());
    for file in &call.files {
        if stop.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        let mut change = patching.file(file)?;
        change.notes.extend(file.notes.iter().cloned());
        files.push(change);
    }
    if !call.dry_run {
        patching.all.commit(stop)?;
    }
    Ok(Changed { files, dry_run: call.dry_run })
}

struct Patching<'a> {
    workspace: &'a Workspace,
    protected: bool,
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
                let (at, text) = self.old_file(&file.path, !hunks.is_empty())?;
                self.refuse_link(at, &file.path)?;
                if !hunks.is_empty() && !patched(&file.path, &text, hunks)?.text.is_empty() {
                    return Err(refused(&file.path, "holds more than the patch deletes; read it again"));
                }
                self.all.set(at, None);
                Ok(FileChange {
                    path: self.all.shown(at).clone(),
                    change: Change::Deleted,
                    removed: n_lines(&text),
                    ..FileChange::default()
                })
            }
            PatchAction::Update { hunks, to } => self.update(&file.path, hunks, to.as_ref()),
        }
    }

    fn update(&mut self, path: &BytesPath, hunks: &[Hunk], to: Option<&BytesPath>) -> Result<FileChange, Fault> {
        let (at, text) = self.old_file(path, !hunks.is_empty())?;
        let Patched { text: new, added, removed, notes } = patched(path, &text, hunks)?;
        if new.len() as u64 > MAX_BYTES {
            return Err(too_large(path, new.len() as u64));
        }
        let change = FileChange { path: self.all.shown(at).clone(), added, removed, notes, ..FileChange::default() };
        let Some(to) = to else {
            if new == text {
                return Err(refused(path, "is left as it is by the patch"));
            }
            self.all.set(at, Some(new));
            return Ok(change);
        };
        self.refuse_link(at, path)?;
        let target = self.new_file(to)?;
        self.all.take_mode(target, at);
        self.all.set(at, None);
        self.all.set(target, Some(new));
        Ok(FileChange { path: self.all.shown(target).clone(), from: Some(change.path), change: Change::Moved, ..change })
    }

    fn old_file(&mut self, path: &BytesPath, must_be_text: bool) -> Result<(usize, Vec<u8>), Fault> {
        let at = self.all.open(self.workspace, path, self.protected, Parents::MustExist, must_be_text)?;
        match self.all.text(at) {
            Some(text) => Ok((at, text.clone())),
            None => Err(self.workspace.root.fault(path, Errno::ENOENT)),
        }
    }

    fn new_file(&mut self, path: &BytesPath) -> Result<usize, Fault> {
        let at = self.all.open(self.workspace, path, self.protected, Parents::Make, false)?;
        if self.all.text(at).is_some() {
            let remedy = "update it, or delete it earlier in the patch".to_owned();
            return Err(Fault::Exists { path: path.clone(), remedy });
        }
        Ok(at)
    }

    /// To take a link away is not to take away the file that it leads to.
    fn refuse_link(&self, at: usize, path: &BytesPath) -> Result<(), Fault> {
        if self.all.is_linked(at) { Err(refused(path, "is a symbolic link; use delete_file or move_file for it")) } else { Ok(()) }
    }
}

fn patched(path: &BytesPath, text: &[u8], hunks: &[Hunk]) -> Result<Patched, Fault> {
    apply(text, hunks).map_err(|Miss { hunk, why }| match why {
        Why::Ambiguous(lines) => Fault::HunkAmbiguous { path: path.clone(), hunk, lines },
        Why::Nowhere { applied } => {
            Fault::HunkMissed { path: path.clone(), hunk, applied, closest: instead(text, &hunks[hunk as usize - 1]) }
        }
    })
}

/// Returns what stands where a hunk was expected.
fn instead(text: &[u8], hunk: &Hunk) -> String {
    let old: Vec<&str> = hunk.old().collect();
    let closest = closest(text, &old.join("\n"));
    if closest.is_empty() { numbered(text, hunk.line.map_or(0, |line| line.saturating_sub(1)), SHOWN) } else { closest }
}

fn n_lines(text: &[u8]) -> u64 {
    text.split_inclusive(|byte| *byte == b'\n').count() as u64
}
