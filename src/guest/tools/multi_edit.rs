use std::sync::atomic::AtomicBool;

use nix::errno::Errno;

use super::Workspace;
use super::edit_file::edit;
use super::encoded_text::EncodedText;
use super::invalid;
use super::save::Parents;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::transaction::Transaction;
use podbay_wire::Change;
use podbay_wire::Changed;
use podbay_wire::Fault;
use podbay_wire::FileChange;
use podbay_wire::FileEdit;
use podbay_wire::MultiEdit;

/// Makes edits in several files in order, all or none.
pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &MultiEdit,
    stop: &AtomicBool,
) -> Result<Changed, Fault> {
    let stop = &Stop::new(stop, None);
    if call.edits.is_empty() {
        return Err(invalid("edits", "is empty; give at least one edit"));
    }
    for (number, FileEdit { edit, .. }) in (1..).zip(&call.edits) {
        if edit.old_string.is_empty() {
            return Err(invalid(
                "old_string",
                format!("is empty in edit {number}; use write_file for a new file"),
            ));
        }
        if edit.old_string == edit.new_string {
            return Err(invalid(
                "new_string",
                format!("is the same as old_string in edit {number}"),
            ));
        }
    }
    let _changing = workspace.changing();
    let mut all = Transaction::default();
    let mut files: Vec<(usize, FileChange)> = Vec::new();
    for (number, FileEdit { path, edit: wanted }) in (1..).zip(&call.edits) {
        if stop.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        let at = all
            .open(
                workspace,
                seen,
                path,
                call.protected,
                Parents::MustExist,
                true,
            )?
            .at;
        let Some(before) = all.text(at) else {
            return Err(workspace.root.fault(path, Errno::ENOENT));
        };
        let encoded_text = EncodedText::of(before);
        let mut text = encoded_text.text.as_bytes().to_vec();
        let edited = edit(path, &mut text, std::slice::from_ref(wanted), number, stop)
            .map_err(|fault| all.outdated(at, seen, fault))?;
        let after = encoded_text.edited(path, &text)?;
        let said = encoded_text.notes();
        all.set(at, Some(after));
        let known = files
            .iter()
            .position(|(known, _)| *known == at)
            .unwrap_or_else(|| {
                files.push((
                    at,
                    FileChange {
                        path: all.shown(at).clone(),
                        change: Change::Modified,
                        ..FileChange::default()
                    },
                ));
                files.len() - 1
            });
        let notes = &mut files[known].1.notes;
        notes.extend(
            said.into_iter()
                .filter(|said| !notes.contains(said))
                .collect::<Vec<_>>(),
        );
        if edited.replaced > 1 {
            notes.push(format!("edit {number} changed {} places", edited.replaced));
        }
        if !edited.tolerant.is_empty() {
            notes.push(format!(
                "edit {number} was found only by ignoring white space: check the result"
            ));
        }
        if !edited.alike.is_empty() {
            notes.push(format!(
                "edit {number} was found only by letters that look alike: check the result"
            ));
        }
        if !edited.unescaped.is_empty() {
            notes.push(format!(
                "edit {number} matched only without one level of backslashes: check the result"
            ));
        }
    }
    for (at, file) in &mut files {
        if !all.has_changed(*at) {
            return Err(invalid(
                "edits",
                format!("together leave {} as it is", file.path),
            ));
        }
        (file.added, file.removed) = all.lines(*at);
    }
    all.commit(seen, stop)?;
    Ok(Changed {
        files: files.into_iter().map(|(_, file)| file).collect(),
        dry_run: false,
        memos: Vec::new(),
    })
}
