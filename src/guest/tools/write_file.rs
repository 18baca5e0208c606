use std::borrow::Cow;

use super::Workspace;
use super::certain_encoding::Certain;
use super::edit_file::MAX_BYTES;
use super::encoded::Encoded;
use super::keep_form::in_form_of;
use super::read_file::SNIFFED;
use super::save::Parents;
use super::save::Place;
use super::seen::Seen;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::WriteFile;
use podbay_wire::Written;

/// A new text gets what a model is not shown of the old one: see `keep_form`. What is appended gets
/// the line ends of the line before it, unless the model wrote `\r` itself and so means what it
/// says, and the encoding of the file.
pub(super) fn run(workspace: &Workspace, seen: &Seen, call: &WriteFile) -> Result<Written, Fault> {
    let _changing = workspace.changing();
    let place = Place::find(&workspace.root, &call.path, call.protected, Parents::Make)?;
    let created = !place.exists();
    let content = call.content.as_bytes();
    let appended = call.append && !created;
    let real = seen.real(&workspace.root, &place)?;
    let notes;
    let bytes = if appended {
        let (content, said) = in_form_of_end(&place, &call.path, &call.content)?;
        notes = said;
        // Of a file that was never read, no more is known than its end.
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
        // What stands there goes as a whole: it must be what the model knows, where it knows it.
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
            |old| in_form_of(&old, &call.content),
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

/// Returns a text that is to be appended in the encoding of what stands there and with its line
/// ends, and what is to be said of it. Of a file that is very long its beginning tells the
/// encoding.
fn in_form_of_end(
    place: &Place,
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
    if old.len() as u64 == MAX_BYTES && Certain::wide(&old[..SNIFFED]).is_none() {
        // Not within a letter.
        old.truncate(
            old.iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1),
        );
    }
    let encoded = Encoded::of(&old);
    let has_returns = if encoded.is_certain() {
        last_line_ends_with_return(&encoded.text)
    } else {
        place.ends_lines_with_returns()
    };
    Ok((
        encoded.addition(path, &with_returns(has_returns))?,
        encoded.notes(),
    ))
}

/// Returns whether the bytes of a text do not depend on what stands in front of it: ASCII is ASCII,
/// unless the beginning of the file tells otherwise.
fn is_same_everywhere(place: &Place, content: &str) -> bool {
    let start = place.beginning(SNIFFED as u64).unwrap_or_default();
    let has_returns_alone = start.contains(&b'\r') && !start.contains(&b'\n');
    content.is_ascii()
        && !content.contains('~')
        && !has_returns_alone
        && Certain::wide(&start).is_none()
}

fn last_line_ends_with_return(text: &str) -> bool {
    text.rfind('\n')
        .is_some_and(|at| text[..at].ends_with('\r'))
}

/// Says what it means that a file is not the one that the model has seen.
fn stale(fault: Fault) -> Fault {
    match fault {
        Fault::Changed { path } => Fault::Stale { path },
        other => other,
    }
}
