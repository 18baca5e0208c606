//! Whether a `git checkout` changes branches or writes over files.

use super::words;
use super::words::has;
use super::words::may_have;
use podbay_code::shell::Word;

/// A checkout that writes over files, as against one that changes branches. In doubt it writes.
pub(super) fn throws_away(rest: &[Word]) -> bool {
    if may_have(rest, "fp", &["--force", "--ours", "--theirs", "--patch", "--pathspec-from-file"])
        || rest.iter().any(|word| word.text == "--")
    {
        return true;
    }
    let takes_back = rest.iter().any(|word| word.text.starts_with("--no-"));
    if !takes_back && has(rest, "bB", &["--orphan", "--detach", "--track"]) {
        return false;
    }
    let operands: Vec<&Word> = words::operands(rest).collect();
    match operands.as_slice() {
        [] => false,
        [one] => one.known().is_none_or(looks_like_a_file),
        _ => true,
    }
}

/// Returns whether a word that a branch or a file may have is no certain branch: where it is a file or folder, `checkout` writes over it.
fn looks_like_a_file(text: &str) -> bool {
    const BRANCHES: [&str; 10] = ["main", "master", "trunk", "develop", "development", "dev", "next", "stable", "HEAD", "-"];
    const FAMILIES: [&str; 12] = [
        "feature/",
        "feat/",
        "fix/",
        "bugfix/",
        "hotfix/",
        "release/",
        "chore/",
        "origin/",
        "upstream/",
        "refs/",
        "dependabot/",
        "renovate/",
    ];
    let is_commit = (7..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_ticket = text.split_once('-').is_some_and(|(project, number)| {
        !project.is_empty()
            && project.bytes().all(|b| b.is_ascii_uppercase())
            && !number.is_empty()
            && number.bytes().all(|b| b.is_ascii_digit())
    });
    let is_version = text.strip_prefix('v').is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let is_relative = text.contains(['~', '^']) && !text.starts_with('~') || text.starts_with("@{");
    let is_branch = BRANCHES.contains(&text) || FAMILIES.iter().any(|family| text.starts_with(family));
    text.contains(['*', '?', '[', ':']) || !(is_branch || is_commit || is_ticket || is_version || is_relative)
}
