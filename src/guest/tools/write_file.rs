use super::Workspace;
use super::save::Parents;
use super::save::Place;
use crate::wire::Fault;
use crate::wire::WriteFile;
use crate::wire::Written;

/// The content is taken as the model gave it: line ends of an old file are not carried over to a new text. What is appended gets those of
/// the line before it, unless the model wrote `\r` itself and so means what it says.
pub(super) fn run(workspace: &Workspace, call: &WriteFile) -> Result<Written, Fault> {
    let _changing = workspace.changing();
    let place = Place::find(&workspace.root, &call.path, call.protected, Parents::Make)?;
    let created = !place.exists();
    let content = call.content.as_bytes();
    let appended = call.append && !created;
    let bytes = if appended {
        if !content.contains(&b'\r') && place.ends_lines_with_returns() {
            place.append(call.content.replace('\n', "\r\n").as_bytes())?
        } else {
            place.append(content)?
        }
    } else {
        place.save(content, None)?;
        content.len() as u64
    };
    Ok(Written { path: workspace.root.relative(&call.path)?, bytes, created, appended })
}
