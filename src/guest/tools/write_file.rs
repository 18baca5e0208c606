use super::Workspace;
use super::save::Parents;
use super::save::Place;
use crate::wire::Fault;
use crate::wire::WriteFile;
use crate::wire::Written;

/// The content is taken as the model gave it: line ends of an old file are not carried over to a new text.
pub(super) fn run(workspace: &Workspace, call: &WriteFile) -> Result<Written, Fault> {
    let _changing = workspace.changing();
    let place = Place::find(&workspace.root, &call.path, Parents::Make)?;
    let created = !place.exists();
    let content = call.content.as_bytes();
    let appended = call.append && !created;
    let bytes = if appended {
        place.append(content)?
    } else {
        place.save(content, None)?;
        content.len() as u64
    };
    Ok(Written { path: workspace.root.relative(&call.path)?, bytes, created, appended })
}
