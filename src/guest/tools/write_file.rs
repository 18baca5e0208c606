use std::borrow::Cow;

use super::Workspace;
use super::edit_file::check_encoding;
use super::save::Parents;
use super::save::Place;
use super::seen::Seen;
use podbay_wire::Fault;
use podbay_wire::WriteFile;
use podbay_wire::Written;

/// The content is taken as the model gave it: line ends of an old file are not carried over to a new text. What is appended gets those of
/// the line before it, unless the model wrote `\r` itself and so means what it says.
pub(super) fn run(workspace: &Workspace, seen: &Seen, call: &WriteFile) -> Result<Written, Fault> {
    let _changing = workspace.changing();
    let place = Place::find(&workspace.root, &call.path, call.protected, Parents::Make)?;
    let created = !place.exists();
    let content = call.content.as_bytes();
    let appended = call.append && !created;
    let real = seen.real(&workspace.root, &place)?;
    let bytes = if appended {
        check_encoding(&call.path, &place.mark_of_encoding())?;
        let content = if !content.contains(&b'\r') && place.ends_lines_with_returns() {
            Cow::Owned(call.content.replace('\n', "\r\n").into_bytes())
        } else {
            Cow::Borrowed(content)
        };
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
                    return Err(Fault::Stale { path: call.path.clone() });
                }
                Some(stat)
            }
            None => None,
        };
        place.save(content, read.as_ref()).map_err(|fault| if read.is_some() { stale(fault) } else { fault })?;
        seen.wrote(&real, content);
        content.len() as u64
    };
    Ok(Written { path: workspace.root.relative(&call.path)?, bytes, created, appended, memos: Vec::new() })
}

/// Says what it means that a file is not the one that the model has seen.
fn stale(fault: Fault) -> Fault {
    match fault {
        Fault::Changed { path } => Fault::Stale { path },
        other => other,
    }
}
