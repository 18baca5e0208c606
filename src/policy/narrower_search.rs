//! Suggests how to restrict a denied search to the one folder that its pattern names.

use super::Action;
use super::Rule;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Glob;
use podbay_wire::Grep;

/// Returns how to restrict a search to the folder that its pattern names, if the rule matches other
/// folders only: a search is judged by the folder it begins in.
pub(super) fn narrower_search_note(rule: &Rule, action: &Action) -> Option<String> {
    let (above, pattern, called) = match action {
        Action::Box(Call::Glob(glob)) => (&glob.path, &glob.pattern, "pattern"),
        Action::Box(Call::Grep(grep)) => (&grep.path, grep.glob.as_ref()?, "glob"),
        _ => return None,
    };
    let wild = pattern
        .find(['*', '?', '[', '{', '\\'])
        .unwrap_or(pattern.len());
    let (folder, rest) = pattern.split_at(pattern[..wild].rfind('/')?);
    let mut folder = folder;
    // A leading slash stands for the searched folder.
    while let Some(rest) = folder
        .strip_prefix("./")
        .or_else(|| folder.strip_prefix('/'))
    {
        folder = rest;
    }
    if folder.split('/').any(|part| part == "..") {
        return None;
    }
    let above = above.to_text();
    let path = if above == "." {
        folder.to_owned()
    } else {
        format!("{}/{folder}", above.trim_end_matches('/'))
    };
    // With a slash the pattern stays anchored to that folder, as intended.
    let narrow = match action {
        Action::Box(Call::Grep(grep)) => Call::Grep(Grep {
            path: BytesPath::from_text(&path),
            ..grep.clone()
        }),
        Action::Box(Call::Glob(glob)) => Call::Glob(Glob {
            path: BytesPath::from_text(&path),
            pattern: rest.to_owned(),
            ..glob.clone()
        }),
        _ => return None,
    };
    let call = serde_json::json!({ "path": path, called: rest });
    (!folder.is_empty() && !rule.may_match(&Action::Box(narrow), None, false))
        .then(|| format!(" (it begins in `{above}`, which may hold what the rule is about; name the folder in `path`: {call})"))
}
