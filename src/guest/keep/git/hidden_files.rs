//! Files that are masked in a sandbox: git must not see the masks as changes there, or commit them.

use super::index::Index;
use super::index::SKIP_WORKTREE;
use podbay_wire::BytesPath;

/// Marks files or folders as unchanged in the index; returns those that git tracks.
pub(crate) fn in_index(index: &mut Index, paths: &[Vec<u8>]) -> Vec<BytesPath> {
    let mut tracked = Vec::new();
    for entry in &mut index.entries {
        if entry.stage() == 0 && paths.iter().any(|path| is_at_or_below(&entry.name, path)) {
            entry.extended |= SKIP_WORKTREE;
            tracked.push(BytesPath::from_bytes(entry.name.clone()));
        }
    }
    tracked
}

/// Adds them to the exclude rules.
pub(crate) fn in_exclude(exclude: &mut Vec<u8>, paths: &[Vec<u8>]) {
    if paths.is_empty() {
        return;
    }
    if exclude.last().is_some_and(|byte| *byte != b'\n') {
        exclude.push(b'\n');
    }
    exclude.extend_from_slice(b"# Hidden in the sandbox.\n");
    for path in paths {
        exclude.push(b'/');
        for &byte in path {
            match byte {
                b'*' | b'?' | b'[' | b'\\' | b' ' => exclude.extend_from_slice(&[b'\\', byte]),
                // No rule can hold these.
                b'\n' | b'\r' => exclude.push(b'?'),
                byte => exclude.push(byte),
            }
        }
        exclude.push(b'\n');
    }
}

/// Returns the paths below a folder, relative to it.
pub(crate) fn below(paths: &[BytesPath], folder: &[u8]) -> Vec<Vec<u8>> {
    let seen = |path: &BytesPath| match (folder, path.as_bytes()) {
        (b"", path) => Some(path.to_vec()),
        (folder, path) => path
            .strip_prefix(folder)?
            .strip_prefix(b"/")
            .map(<[u8]>::to_vec),
    };
    paths
        .iter()
        .filter_map(seen)
        .filter(|path| !path.is_empty())
        .collect()
}

fn is_at_or_below(name: &[u8], path: &[u8]) -> bool {
    name.strip_prefix(path)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::sample::Sample;
    use super::super::sample::SampleSession;
    use super::*;

    #[test]
    fn masked_files_are_neither_changed_nor_new_nor_committed() {
        let sample = Sample::new();
        for path in [".env", ".aws/credentials", ".awsome", "a/.env"] {
            sample.write(path, "secret");
        }
        sample.commit("code", "1");
        sample.git(&["rm", "-q", "--cached", "a/.env"]);
        sample.git(&["commit", "-q", "-m", "two"]);
        sample.write("odd [x]*\n?\\ name ", "secret");
        sample.write("line\r\nends", "secret");
        let hidden = [
            ".env",
            ".aws",
            "a/.env",
            "odd [x]*\n?\\ name ",
            "line\r\nends",
        ]
        .map(|path| path.as_bytes().to_vec());
        // As the mask shows them.
        for path in [".env", ".aws/credentials", "a/.env"] {
            fs::write(sample.path(path), "").expect("written");
        }
        let changes = || sample.git(&["status", "--porcelain", "-z"]);
        assert!(
            changes().contains(".env") && changes().contains("odd"),
            "without hiding them they show"
        );
        let mut index = Index::parse(&fs::read(sample.path(".git/index")).expect("an index"))
            .expect("readable");
        assert_eq!(
            in_index(&mut index, &hidden),
            [BytesPath::from(".aws/credentials"), ".env".into()]
        );
        fs::write(sample.path(".git/index"), index.write()).expect("written");
        let mut exclude = b"# theirs".to_vec();
        in_exclude(&mut exclude, &hidden);
        fs::write(sample.path(".git/info/exclude"), exclude).expect("written");
        assert_eq!(changes(), "");
        sample.write("code", "2");
        sample.git(&["add", "-A"]);
        sample.git(&["commit", "-q", "-a", "-m", "three"]);
        assert_eq!(sample.git(&["show", "--name-only", "--format="]), "code\n");
        assert_eq!(sample.git(&["show", "HEAD:.env"]), "secret");
    }

    #[test]
    fn committed_versions_of_a_masked_file_stay_readable_and_it_is_named() {
        let sample = Sample::new();
        sample.write(".gitignore", ".env.local\n");
        for path in [".env", ".env.local"] {
            sample.write(path, "secret");
        }
        sample.commit("code", "1");
        let session = SampleSession::hiding(sample, &[".env", ".env.local"]);
        assert_eq!(
            session.git(&["show", "HEAD:.env"]),
            "secret",
            "no mask covers what is in an object"
        );
        assert_eq!(
            session.prepared.repositories[0].hidden,
            [BytesPath::from(".env")]
        );
    }

    #[test]
    fn masked_paths_are_made_relative_to_the_working_tree() {
        let paths = ["sub/.env", "sub", "subs/.env", ".env"].map(BytesPath::from);
        assert_eq!(below(&paths, b"sub"), [b".env"]);
        assert_eq!(below(&paths, b"").len(), 4);
    }
}
