//! Where the person's git looks for hooks: a folder of the project, where the repository's settings say so.

use super::config;
use super::folder::Folder;
use super::folder::Kind;
use super::repository::work_tree;
use crate::wire::BytesPath;

const MAX_CONFIG: u64 = 1 << 20;

/// Returns the folder in the project, if it is one, that has the hooks of the repository at its top.
///
/// What the person's settings for all repositories say is not known here, and a file that the settings include is not read.
pub fn hooks_in(project: &Folder) -> Option<BytesPath> {
    let text = project.read(b".git/config", MAX_CONFIG).ok().flatten()?;
    let entries = config::parse(&text).ok()?;
    let said = entries.iter().rfind(|entry| entry.is("core", "hookspath"))?.value.clone()?;
    // Seen from the project's folder; one that leads out is none of ours.
    let path = work_tree(b"", &said).filter(|path| !path.is_empty() && !said.starts_with(b"~"))?;
    let is_there = matches!(project.kind(&path), Some(Kind::Folder | Kind::File));
    is_there.then(|| BytesPath::from_bytes(path))
}

#[cfg(test)]
mod tests {
    use super::super::sample::Sample;
    use super::*;

    #[test]
    fn hooks_are_found_where_they_lie_in_the_project() {
        let sample = Sample::new();
        sample.write("tools/hooks/pre-commit", "x");
        let found = |said: &str| {
            sample.git(&["config", "core.hooksPath", said]);
            hooks_in(&Folder::open(&sample.path("")).expect("opens")).map(|path| path.to_text())
        };
        assert_eq!(hooks_in(&Folder::open(&sample.path("")).expect("opens")), None);
        for said in ["tools/hooks", "./tools//hooks/", "tools/x/../hooks"] {
            assert_eq!(found(said).as_deref(), Some("tools/hooks"), "{said}");
        }
        for said in ["absent", "../project", "/dev/null", "~/hooks", ".", ""] {
            assert_eq!(found(said), None, "{said}");
        }
    }
}
