use std::sync::atomic::AtomicBool;

use nix::errno::Errno;

use super::Workspace;
use super::edit_match::AppliedEdit;
use super::edit_match::EditFailure;
use super::edit_match::MatchKind;
use super::edit_match::apply;
use super::edit_report::closest;
use super::edit_report::diff;
use super::encoded_text::EncodedText;
use super::invalid;
use super::read_file::SNIFFED;
use super::read_file::binary_kind;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::transaction::read;
use podbay_wire::BytesPath;
use podbay_wire::EditFile;
use podbay_wire::Edited;
use podbay_wire::Fault;
use podbay_wire::Replacement;

/// Largest file edited, in bytes, before and after.
pub(super) const MAX_BYTES: u64 = 16 * 1024 * 1024;

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &EditFile,
    stop: &AtomicBool,
) -> Result<Edited, Fault> {
    let stop = &Stop::new(stop, None);
    let path = &call.path;
    let Some(first) = call.edits.first() else {
        return Err(invalid("edits", "is empty; give at least one edit"));
    };
    if let Some(same) = call
        .edits
        .iter()
        .find(|edit| edit.old_string == edit.new_string)
    {
        let problem = if same.old_string.is_empty() {
            "is empty, as old_string is"
        } else {
            "is the same as old_string"
        };
        return Err(invalid("new_string", problem));
    }
    let creates = call.create_if_missing && first.old_string.is_empty();
    let _changing = workspace.changing();
    let place = TargetFile::find(
        &workspace.root,
        path,
        call.protected,
        if creates {
            Parents::Make
        } else {
            Parents::MustExist
        },
    )?;
    let shown = workspace.root.relative(path)?;
    if !place.exists() {
        if !creates {
            return Err(workspace.root.fault(path, Errno::ENOENT));
        }
        let mut text = Vec::new();
        let edited = edit(path, &mut text, &call.edits, 1, stop)?;
        let real = seen.real(&workspace.root, &place)?;
        place.save(&text, None)?;
        seen.wrote(&real, &text);
        return Ok(Edited {
            created: true,
            diff: diff(&shown.to_string(), b"", &text),
            path: shown,
            ..edited
        });
    }
    let (before, stat) = read(&place, path, true)?;
    let real = seen.real(&workspace.root, &place)?;
    let encoded_text = EncodedText::of(&before);
    let mut text = encoded_text.text.as_bytes().to_vec();
    let edited = edit(path, &mut text, &call.edits, 1, stop)
        .map_err(|fault| seen.outdated(&real, &before, fault))?;
    let after = encoded_text.edited(path, &text)?;
    if after == before {
        return Err(invalid("edits", "together leave the file as it is"));
    }
    let _ = seen.last(&real);
    seen.settle()?;
    place.save(&after, Some(&stat))?;
    seen.changed(&real, &before, &after);
    Ok(Edited {
        diff: diff(&shown.to_string(), encoded_text.text.as_bytes(), &text),
        path: shown,
        notes: encoded_text.notes(),
        ..edited
    })
}

/// Applies all edits in memory; nothing is written unless all fit. Errors number them from `first`.
pub(super) fn edit(
    path: &BytesPath,
    text: &mut Vec<u8>,
    edits: &[Replacement],
    first: u32,
    stop: &Stop<'_>,
) -> Result<Edited, Fault> {
    let mut edited = Edited {
        path: BytesPath::default(),
        replaced: 0,
        created: false,
        tolerant: vec![],
        unescaped: vec![],
        alike: vec![],
        notes: vec![],
        diff: String::new(),
        memos: vec![],
    };
    for (number, edit) in (first..).zip(edits) {
        if stop.is_cancelled() {
            return Err(Fault::Cancelled);
        }
        if edit.old_string.is_empty() {
            if !text.is_empty() {
                return Err(invalid(
                    "old_string",
                    "is empty, which is only valid for a missing or empty file",
                ));
            }
            text.extend_from_slice(edit.new_string.as_bytes());
            edited.replaced += 1;
            continue;
        }
        match apply(text, edit, MAX_BYTES) {
            Ok(AppliedEdit { replaced, how }) => {
                edited.replaced += replaced;
                match how {
                    MatchKind::Exact => {}
                    MatchKind::Alike => edited.alike.push(number),
                    MatchKind::TolerantAndAlike => {
                        edited.tolerant.push(number);
                        edited.alike.push(number);
                    }
                    MatchKind::Tolerant => edited.tolerant.push(number),
                    MatchKind::Unescaped => edited.unescaped.push(number),
                }
            }
            Err(EditFailure::NotFound) => {
                let closest = closest(text, &edit.old_string);
                return Err(Fault::NoMatch {
                    path: path.clone(),
                    edit: number,
                    closest,
                });
            }
            Err(EditFailure::Ambiguous { count, lines }) => {
                return Err(Fault::Ambiguous {
                    path: path.clone(),
                    edit: number,
                    count,
                    lines,
                });
            }
            Err(EditFailure::TooLarge { bytes }) => return Err(too_large(path, bytes)),
        }
    }
    Ok(edited)
}

pub(super) fn too_large(path: &BytesPath, bytes: u64) -> Fault {
    Fault::TooLarge {
        path: path.clone(),
        bytes,
        limit: MAX_BYTES,
    }
}

/// Refuses a file that is not text, in any encoding.
pub(super) fn check_text(path: &BytesPath, text: &[u8]) -> Result<(), Fault> {
    match binary_kind(&text[..text.len().min(SNIFFED)]) {
        Some(kind) => Err(Fault::Binary {
            path: path.clone(),
            bytes: text.len() as u64,
            kind: kind.into(),
        }),
        None => Ok(()),
    }
}
