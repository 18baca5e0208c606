//! The paths of a call, and what a rule's pattern says of them.

use globset::GlobMatcher;

use super::Action;
use super::action::patch_paths;
use crate::wire::Archive;
use crate::wire::ArchiveAction;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::GitQuery;

/// A path with `..` in it may lead anywhere, so no rule that allows speaks of it.
pub(super) fn matches_path(glob: &GlobMatcher, path: &BytesPath, in_doubt: bool) -> bool {
    plain(path, in_doubt).is_some_and(|path| glob.is_match(path))
}

/// Returns whether a call takes a whole folder in which the pattern has matches, as far as the pattern's letters tell: `secret/**` also
/// speaks of the folder `secret`.
pub(super) fn holds_match(glob: &GlobMatcher, action: &Action) -> bool {
    let whole: &[&BytesPath] = match action {
        Action::Box(Call::DeleteFile(delete)) if delete.recursive => &[&delete.path],
        Action::Box(Call::CopyFile(copy)) if copy.recursive => &[&copy.source, &copy.destination],
        Action::Box(Call::MoveFile(moved)) => &[&moved.source, &moved.destination],
        Action::Box(Call::Archive(Archive {
            action: ArchiveAction::Create { source: path } | ArchiveAction::Extract { into: path },
            ..
        })) => &[path],
        // A difference shows what is in all files of a folder.
        Action::Box(Call::Git(git)) if matches!(git.query, GitQuery::Diff { .. }) => &[git.query.file().unwrap_or(&git.path)],
        _ => return false,
    };
    let pattern = glob.glob().glob();
    let literal = pattern.split(['*', '?', '[', '{']).next().unwrap_or_default();
    whole.iter().filter_map(|path| plain(path, true)).any(|path| path.is_empty() || literal.starts_with(&format!("{path}/")))
}

/// Returns a path as rules name it: beneath the project. `None`: it has a `..` and is not to be guessed at.
pub(super) fn plain(path: &BytesPath, in_doubt: bool) -> Option<String> {
    let text = path.to_text();
    let mut parts: Vec<&str> = Vec::new();
    for part in text.split('/').filter(|part| !part.is_empty() && *part != ".") {
        if part != ".." {
            parts.push(part);
        } else if in_doubt {
            parts.pop();
        } else {
            return None;
        }
    }
    if text.starts_with('/') && parts.first() == Some(&"workspace") {
        parts.remove(0);
    }
    Some(parts.join("/"))
}

/// Returns every path that a call names.
pub(super) fn paths(action: &Action) -> Vec<&BytesPath> {
    let Action::Box(call) = action else { return Vec::new() };
    match call {
        Call::ReadFile(read) => read.path.iter().collect(),
        Call::WriteFile(write) => vec![&write.path],
        Call::EditFile(edit) => vec![&edit.path],
        Call::MultiEdit(multi) => multi.edits.iter().map(|edit| &edit.path).collect(),
        Call::ApplyPatch(patch) => patch_paths(patch).collect(),
        Call::EditLines(edit) => vec![&edit.path],
        Call::DeleteFile(delete) => vec![&delete.path],
        Call::CopyFile(copy) => vec![&copy.source, &copy.destination],
        Call::MoveFile(moved) => vec![&moved.source, &moved.destination],
        Call::Mkdir(made) => vec![&made.path],
        Call::Tree(tree) => vec![&tree.path],
        Call::ListDirectory(list) => vec![&list.path],
        Call::Glob(glob) => vec![&glob.path],
        Call::Grep(grep) => vec![&grep.path],
        Call::Cd(cd) => vec![&cd.path],
        Call::Git(git) => vec![git.query.file().unwrap_or(&git.path)],
        Call::Archive(archive) => [&archive.archive].into_iter().chain(archive.action.path()).collect(),
        Call::Env(_) | Call::Processes(_) | Call::UpdateConfig(_) | Call::Bash(_) | Call::Exec(_) | Call::Hook(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Rule;
    use super::*;
    use crate::wire::DeleteFile;

    #[test]
    fn a_folder_takes_along_what_a_denial_names_in_it() {
        let delete = |path: &str, recursive| Action::Box(Call::DeleteFile(DeleteFile { path: path.into(), recursive, protected: false }));
        let rule = Rule::parse("delete_file(data/secret/**)").expect("a good rule");
        for path in ["data/secret", "data", "/workspace/data/", "x/../data", "."] {
            assert!(rule.may_match(&delete(path, true), None), "{path}");
        }
        assert!(rule.may_match(&delete("data/secret/a", false), None));
        for (path, recursive) in [("data", false), ("data/secre", true), ("data/other", true), ("dat", true)] {
            assert!(!rule.may_match(&delete(path, recursive), None), "{path}");
        }
        assert!(!rule.matches(&delete("data", true), None), "one that allows speaks of no more than it says");
    }
}
