//! `update_config`: one section of the project's instructions for agents.

use super::Workspace;
use super::edit_report::diff;
use super::encoded_text::EncodedText;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use super::target_entry::refused;
use super::transaction::read;
use podbay_wire::BytesPath;
use podbay_wire::Edited;
use podbay_wire::Fault;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::UpdateConfig;
use podbay_wire::with_section;

/// The file with the instructions.
const FILE: &str = podbay_wire::INSTRUCTIONS;

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &UpdateConfig,
) -> Result<Edited, Fault> {
    let path = BytesPath::from_text(FILE);
    let _changing = workspace.changing();
    let place = TargetFile::find(&workspace.root, &path, false, Parents::MustExist)?;
    let created = !place.exists();
    if created
        && !call.beside
        && let Some(other) = OTHER_INSTRUCTIONS
            .into_iter()
            .find(|name| is_in_use(workspace, name))
    {
        return Err(refused(
            &path,
            format!(
                "would be a second file of instructions beside {other}, which this project uses: change that one, or call again with `beside` true, \
                 about which the user is asked"
            ),
        ));
    }
    let (before, stat) = if created {
        (Vec::new(), None)
    } else {
        let (text, stat) = read(&place, &path, true)?;
        (text, Some(stat))
    };
    let encoded_text = EncodedText::of(&before);
    let text = encoded_text.text.as_ref();
    let after = with_section(text, &call.section, &call.content)
        .map_err(|problem| refused(&path, problem))?;
    if after == text {
        return Err(refused(
            &path,
            format!(
                "the section `{}` says that already; nothing was changed",
                call.section
            ),
        ));
    }
    let real = seen.real(&workspace.root, &place)?;
    let _ = seen.last(&real);
    seen.settle()?;
    let bytes = encoded_text.edited(&path, after.as_bytes())?;
    place.save(&bytes, stat.as_ref())?;
    if created {
        seen.wrote(&real, &bytes);
    } else {
        seen.changed(&real, &before, &bytes);
    }
    let diff = diff(FILE, text.as_bytes(), after.as_bytes());
    Ok(Edited {
        path,
        replaced: 1,
        created,
        tolerant: Vec::new(),
        unescaped: Vec::new(),
        alike: Vec::new(),
        notes: encoded_text.notes(),
        diff,
        memos: Vec::new(),
    })
}

/// Returns whether a file of this name exists and is not empty; an unreadable one counts.
fn is_in_use(workspace: &Workspace, name: &str) -> bool {
    let path = BytesPath::from_text(name);
    let place = match TargetFile::find(&workspace.root, &path, false, Parents::MustExist) {
        Ok(place) => place,
        // A link is refused; what it leads to may be read.
        Err(fault) => return matches!(fault, Fault::Refused { .. }),
    };
    place.exists()
        && read(&place, &path, true).map_or(true, |(text, _)| !text.trim_ascii().is_empty())
}
