use std::borrow::Cow;

use super::Workspace;
use super::detected_encoding::DetectedEncoding;
use super::edit_file::MAX_BYTES;
use super::encoded_text::EncodedText;
use super::kept_format::in_format_of;
use super::read_file::SNIFFED;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::WriteFile;
use podbay_wire::Written;

/// A replaced text keeps mark, encoding and line ends: see `kept_format`. An appended text gets the
/// encoding of the file and the line ends of the line before it, unless the model wrote `\r` itself
/// and so means it exactly.
pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &WriteFile,
) -> Result<Written, Fault> {
    let _changing = workspace.changing();
    let place = TargetFile::find(&workspace.root, &call.path, call.protected, Parents::Make)?;
    let created = !place.exists();
    let content = call.content.as_bytes();
    let appended = call.append && !created;
    let real = seen.real(&workspace.root, &place)?;
    let notes;
    let bytes = if appended {
        let (content, said) = in_format_of_end(&place, &call.path, &call.content)?;
        notes = said;
        // Only the end of a file that was never read is known.
        let last = seen.last(&real);
        seen.settle()?;
        let is_known = match last {
            Some(last) => place.mark()?.0 == *last,
            None => false,
        };
        let before = place.append(&content)?;
        if is_known {
            seen.note_change(&real, place.mark()?.0);
        }
        before + content.len() as u64
    } else {
        // The whole file is replaced: it must be what the model has seen, if it has.
        let last = seen.last(&real).filter(|_| !created);
        seen.settle()?;
        let read = match last {
            Some(last) => {
                let (now, stat) = place.mark()?;
                if now != *last {
                    return Err(Fault::Stale {
                        path: call.path.clone(),
                    });
                }
                Some(stat)
            }
            None => None,
        };
        let old = if created {
            None
        } else {
            place.beginning(MAX_BYTES)
        };
        let (content, kept) = old.map_or_else(
            || (content.to_vec(), Vec::new()),
            |old| in_format_of(&old, &call.content),
        );
        notes = kept;
        place
            .save(&content, read.as_ref())
            .map_err(|fault| if read.is_some() { stale(fault) } else { fault })?;
        seen.wrote(&real, &content);
        content.len() as u64
    };
    Ok(Written {
        path: workspace.root.relative(&call.path)?,
        bytes,
        created,
        appended,
        notes,
        memos: Vec::new(),
    })
}

/// Encodes an appended text like the file, with its line ends; also returns notes. For a very long
/// file its beginning tells the encoding.
fn in_format_of_end(
    place: &TargetFile,
    path: &BytesPath,
    content: &str,
) -> Result<(Vec<u8>, Vec<String>), Fault> {
    let has_own_ends = content.contains('\r');
    let with_returns = |has_returns: bool| {
        if has_returns && !has_own_ends {
            Cow::Owned(content.replace('\n', "\r\n"))
        } else {
            Cow::Borrowed(content)
        }
    };
    let Some(mut old) = (if is_same_everywhere(place, content) {
        None
    } else {
        place.beginning(MAX_BYTES)
    }) else {
        return Ok((
            with_returns(place.ends_lines_with_returns())
                .into_owned()
                .into_bytes(),
            Vec::new(),
        ));
    };
    if old.len() as u64 == MAX_BYTES && DetectedEncoding::wide(&old[..SNIFFED]).is_none() {
        // Not within a character.
        old.truncate(
            old.iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1),
        );
    }
    let encoded_text = EncodedText::of(&old);
    let has_returns = if encoded_text.is_certain() {
        last_line_ends_with_return(&encoded_text.text)
    } else {
        place.ends_lines_with_returns()
    };
    Ok((
        encoded_text.addition(path, &with_returns(has_returns))?,
        encoded_text.notes(),
    ))
}

/// Returns whether a text has the same bytes in any encoding: ASCII does, unless the beginning of
/// the file says otherwise.
fn is_same_everywhere(place: &TargetFile, content: &str) -> bool {
    let start = place.beginning(SNIFFED as u64).unwrap_or_default();
    let has_returns_alone = start.contains(&b'\r') && !start.contains(&b'\n');
    content.is_ascii()
        && !content.contains('~')
        && !has_returns_alone
        && DetectedEncoding::wide(&start).is_none()
}

fn last_line_ends_with_return(text: &str) -> bool {
    text.rfind('\n')
        .is_some_and(|at| text[..at].ends_with('\r'))
}

/// Explains that a file is not the one that the model has seen.
fn stale(fault: Fault) -> Fault {
    match fault {
        Fault::Changed { path } => Fault::Stale { path },
        other => other,
    }
}
