//! Paths whose names exist only in look-alike characters.
//!
//! Such a file is used where no entry has the exact name and exactly one entry of the folder looks
//! alike; the result says so. This grants nothing that the exact name would not: calls whose paths
//! are checked by name are excluded, and so are protected names.

use nix::dir::Dir;
use nix::errno::Errno;
use nix::fcntl::OFlag;

use crate::beneath::Links;
use crate::lookalike::normalize_bytes;
use crate::root::MAX_NAMES;
use crate::root::Root;
use crate::root::join;
use crate::root::names;
use podbay_wire::ArchiveAction;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::GitQuery;
use podbay_wire::MeantName;
use podbay_wire::Output;
use podbay_wire::PatchAction;
use podbay_wire::protected_name;

/// What a call does with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PathUse {
    /// It must exist.
    Finds,
    /// It may exist, and is created otherwise.
    Writes,
    /// It is a new name, whatever it looks like; its parent folders may exist.
    Makes,
}

/// Returns a call with its names replaced by existing look-alikes, and the replacements; `None`:
/// there are none.
pub(crate) fn find_names(root: &Root, call: &Call) -> Option<(Call, Vec<MeantName>)> {
    if root.beneath().refuses_links() {
        return None;
    }
    let mut found = Vec::new();
    each_path(call, &mut |path, usage| found.push(find(root, path, usage)));
    if found.iter().all(Option::is_none) {
        return None;
    }
    let (mut call, mut names, mut found) = (call.clone(), Vec::new(), found.into_iter());
    each_path_mut(&mut call, &mut |path, _| {
        if let Some(found) = found.next().flatten() {
            names.push(MeantName {
                given: std::mem::replace(path, found.clone()),
                found,
            });
        }
    });
    Some((call, names))
}

/// Adds the replaced names to a call's output.
pub(crate) fn with_note(output: Output, names: Vec<MeantName>) -> Output {
    match output {
        // A fault already names the file by its real name.
        output @ Output::Fault(_) => output,
        output if names.is_empty() => output,
        Output::Command(mut command) => {
            let with_note = names.iter().map(|MeantName { given, found }| {
                format!("{found} was used for {given}, which looks like it")
            });
            command.note = Some(
                command
                    .note
                    .into_iter()
                    .chain(with_note)
                    .collect::<Vec<_>>()
                    .join("; "),
            );
            Output::Command(command)
        }
        output => Output::Meant {
            names,
            output: Box::new(output),
        },
    }
}

/// Makes a function that visits the paths of a call in order, with their use.
macro_rules! each_path {
    ($name:ident, $iter:ident, $($mutable:ident)?) => {
        fn $name(call: &$($mutable)? Call, see: &mut dyn FnMut(&$($mutable)? BytesPath, PathUse)) {
        match call {
                Call::ReadFile(call) => call.path.$iter().for_each(|path| see(path, PathUse::Finds)),
                Call::WriteFile(call) => see(&$($mutable)? call.path, PathUse::Writes),
                Call::EditFile(call) => see(&$($mutable)? call.path, if call.create_if_missing { PathUse::Writes } else { PathUse::Finds }),
                Call::MultiEdit(call) => call.edits.$iter().for_each(|edit| see(&$($mutable)? edit.path, PathUse::Finds)),
                Call::EditLines(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::ApplyPatch(call) => {
                    for file in &$($mutable)? call.files {
                        match &$($mutable)? file.action {
                            PatchAction::Add { .. } => see(&$($mutable)? file.path, PathUse::Makes),
                            PatchAction::Delete { .. } => see(&$($mutable)? file.path, PathUse::Finds),
                            PatchAction::Update { to, .. } => {
                                see(&$($mutable)? file.path, PathUse::Finds);
                                if let Some(to) = to {
                                    see(to, PathUse::Makes);
                                }
                            }
                        }
                    }
                }
                Call::DeleteFile(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::CopyFile(call) => {
                    see(&$($mutable)? call.source, PathUse::Finds);
                    see(&$($mutable)? call.destination, PathUse::Makes);
                }
                Call::MoveFile(call) => {
                    see(&$($mutable)? call.source, PathUse::Finds);
                    see(&$($mutable)? call.destination, PathUse::Makes);
                }
                Call::Mkdir(call) => see(&$($mutable)? call.path, PathUse::Writes),
                Call::Tree(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::ListDirectory(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::Glob(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::Grep(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::Archive(call) => match &$($mutable)? call.action {
                    ArchiveAction::List => see(&$($mutable)? call.archive, PathUse::Finds),
                    ArchiveAction::Create { source } => {
                        see(source, PathUse::Finds);
                        see(&$($mutable)? call.archive, PathUse::Makes);
                    }
                    ArchiveAction::Extract { into } => {
                        see(&$($mutable)? call.archive, PathUse::Finds);
                        see(into, PathUse::Writes);
                    }
                },
                Call::Git(call) => {
                    see(&$($mutable)? call.path, PathUse::Finds);
                    match &$($mutable)? call.query {
                        GitQuery::Diff { file, .. } | GitQuery::Log { file, .. } => file.$iter().for_each(|file| see(file, PathUse::Finds)),
                        GitQuery::Commit { files, .. } => files.$iter().for_each(|file| see(file, PathUse::Finds)),
                        GitQuery::Status | GitQuery::Branch(_) | GitQuery::Checkout { .. } | GitQuery::Stash(_) => {}
                    }
                }
                Call::Cd(call) => see(&$($mutable)? call.path, PathUse::Finds),
                Call::Bash(call) => call.working_directory.$iter().for_each(|path| see(path, PathUse::Finds)),
                Call::Exec(call) => call.working_directory.$iter().for_each(|path| see(path, PathUse::Finds)),
                Call::ByName { .. } | Call::UpdateConfig(_) | Call::Env(_) | Call::Processes(_) | Call::Hook(_) => {}
            }
        }
    };
}

each_path!(each_path, iter,);
each_path!(each_path_mut, iter_mut, mut);

/// Finds the existing path that a missing one looks like.
fn find(root: &Root, path: &BytesPath, usage: PathUse) -> Option<BytesPath> {
    let relative = root.relative(path).ok()?;
    let is_missing = |path: &[u8]| {
        root.beneath()
            .open(path, OFlag::O_PATH, Links::Follow)
            .err()
            == Some(Errno::ENOENT)
    };
    if relative.is_empty() || !is_missing(relative.as_bytes()) {
        return None;
    }
    let (mut found, mut is_other) = (Vec::new(), false);
    let bare = relative
        .as_bytes()
        .strip_suffix(b"/")
        .unwrap_or(relative.as_bytes());
    let mut left = bare.split(|byte| *byte == b'/').peekable();
    while let Some(name) = left.next() {
        let here = join(&found, name);
        let is_new = usage == PathUse::Makes && left.peek().is_none();
        if is_new || !is_missing(&here) {
            found = here;
            continue;
        }
        match alike(root, &found, name) {
            Some(other) => (found, is_other) = (join(&found, &other), true),
            None if usage == PathUse::Finds => return None,
            // From here on the path is created.
            None => {
                found = left.fold(here, |path, name| join(&path, name));
                break;
            }
        }
    }
    if relative.as_bytes().ends_with(b"/") {
        found.push(b'/');
    }
    let found = BytesPath::from_bytes(found);
    let is_open = protected_name(&found).is_none_or(|protected| names(path, &protected));
    (is_other && is_open).then_some(found)
}

/// Returns the only look-alike name in a folder, where none is exact.
fn alike(root: &Root, folder: &[u8], name: &[u8]) -> Option<Vec<u8>> {
    let folder = root
        .beneath()
        .open(folder, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Links::Follow)
        .ok()?;
    let wanted = normalize_bytes(name);
    let mut found = None;
    for entry in Dir::from_fd(folder)
        .ok()?
        .into_iter()
        .take(MAX_NAMES)
        .flatten()
    {
        let other = entry.file_name().to_bytes();
        if other == name {
            // A dangling link.
            return None;
        }
        if normalize_bytes(other) != wanted
            || protected_name(&BytesPath::from_bytes(other)).is_some()
        {
            continue;
        }
        if found.replace(other.to_vec()).is_some() {
            return None;
        }
    }
    found
}
