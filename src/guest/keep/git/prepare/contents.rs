//! Reads a repository for a session, or says why a session can have no folder for it.

use super::MAX_SMALL;
use super::Preparation;
use super::PreparePlace;
use super::UNDER_WAY;
use super::broken;
use crate::keep::git::config;
use crate::keep::git::find::MAX_POINTER;
use crate::keep::git::index::Index;
use crate::keep::git::index::MAX_INDEX;
use crate::keep::git::index::UnsupportedIndex;
use crate::keep::git::refs;
use crate::keep::git::refs::Head;
use crate::keep::git::refs::Refs;
use crate::keep::git::repository_layout::pointed;
use crate::keep::git::repository_layout::work_tree;
use crate::keep::git::session_config;
use crate::keep::git::session_config::SessionConfig;
use crate::keep::git::untrusted_folder::FileKind;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::GitRefusal;

/// Longest config or attributes file that is read.
pub(in crate::keep::git) const MAX_CONFIG: u64 = 1 << 20;

/// The contents of a repository, all read before anything is written.
pub(super) struct RepositoryContents {
    pub(super) settings: SessionConfig,
    pub(super) work_tree: Vec<u8>,
    pub(super) head: Head,
    pub(super) refs: Refs,
    pub(super) index: Option<(Vec<u8>, Index)>,
}

impl Preparation<'_> {
    pub(super) fn look(&self, place: &PreparePlace<'_>) -> Result<RepositoryContents, GitRefusal> {
        let settings = self.settings(place)?;
        let elsewhere = place.common(b"commondir");
        if place.kind(&elsewhere).is_some() {
            // Git would go to the repository that it names, which was not examined.
            let problem = "it is split between two repositories (`commondir`)".to_owned();
            return Err(GitRefusal::Broken {
                path: BytesPath::from_bytes(elsewhere),
                problem,
            });
        }
        for (path, known) in [
            (&b"objects"[..], FileKind::Folder),
            (b"refs", FileKind::Folder),
        ] {
            let path = place.common(path);
            match place.kind(&path) {
                Some(kind) if kind == known => {}
                Some(FileKind::Link) => {
                    return Err(GitRefusal::Linked {
                        path: BytesPath::from_bytes(path),
                    });
                }
                _ => {
                    return Err(GitRefusal::Broken {
                        path: BytesPath::from_bytes(path),
                        problem: "it is not a folder".to_owned(),
                    });
                }
            }
        }
        if place.kind(&place.common(b"reftable")).is_some() {
            return Err(GitRefusal::RefStorage {
                storage: "reftable".to_owned(),
            });
        }
        let work_tree = if place.source.worktree.is_some() && !place.is_module {
            self.check_worktree(place)?;
            split(place.source.path.as_bytes()).0.to_vec()
        } else {
            where_files_are(place, settings.work_tree.as_deref())?
        };
        if let Some(borrowed) = place.read(&place.common(b"objects/info/alternates"), MAX_SMALL)?
            && let Some(line) = borrowed
                .split(|byte| *byte == b'\n')
                .find(|line| !line.is_empty() && !line.starts_with(b"#"))
        {
            return Err(GitRefusal::Alternates {
                from: BytesPath::from_bytes(line),
            });
        }
        let packs = place
            .source
            .real
            .names(&place.common(b"objects/pack"))
            .unwrap_or_default();
        if packs.iter().any(|(name, _)| name.ends_with(b".promisor")) {
            return Err(GitRefusal::Partial);
        }
        for (name, what) in UNDER_WAY {
            if place.kind(&place.private(name)).is_some() {
                return Err(GitRefusal::UnderWay {
                    what: what.to_owned(),
                });
            }
        }
        let head_path = place.private(b"HEAD");
        if place.kind(&head_path).is_none() || place.kind(&place.common(b"HEAD")).is_none() {
            return Err(GitRefusal::NoHead);
        }
        let head = place
            .read(&head_path, MAX_SMALL)?
            .as_deref()
            .and_then(Head::parse);
        let head = head.ok_or_else(|| GitRefusal::Broken {
            path: BytesPath::from_bytes(head_path.clone()),
            problem: "it names neither a branch nor a commit".to_owned(),
        })?;
        let folder = place
            .source
            .real
            .descend(&place.common(b"."))
            .map_err(|errno| GitRefusal::Broken {
                path: BytesPath::from_bytes(place.path()),
                problem: errno.desc().to_owned(),
            })?;
        let refs = refs::read(&folder).map_err(|fault| broken(b"refs", &fault))?;
        let index = match place.read(&place.private(b"index"), MAX_INDEX)? {
            Some(bytes) => {
                let index = Index::parse(&bytes).map_err(|unfit| match unfit {
                    UnsupportedIndex::Split => GitRefusal::SplitIndex,
                    UnsupportedIndex::Sparse => GitRefusal::SparseIndex,
                    UnsupportedIndex::Broken(problem) => GitRefusal::Broken {
                        path: "index".into(),
                        problem: problem.to_owned(),
                    },
                })?;
                if index.is_unmerged() {
                    return Err(GitRefusal::Unmerged);
                }
                Some((bytes, index))
            }
            None => None,
        };
        self.check_filters(
            place,
            &settings,
            &work_tree,
            index.as_ref().map(|(_, index)| index),
        )?;
        Ok(RepositoryContents {
            settings,
            work_tree,
            head,
            refs,
            index,
        })
    }

    fn settings(&self, place: &PreparePlace<'_>) -> Result<SessionConfig, GitRefusal> {
        let path = place.common(b"config");
        let text = place.read(&path, MAX_CONFIG)?;
        let text = text.ok_or_else(|| GitRefusal::Broken {
            path: BytesPath::from_bytes(path.clone()),
            problem: "it is missing".into(),
        })?;
        let parse = |path: &[u8], text: &[u8]| {
            config::parse(text).map_err(|problem| GitRefusal::Broken {
                path: BytesPath::from_bytes(path),
                problem,
            })
        };
        let mut entries = parse(&path, &text)?;
        if entries
            .iter()
            .any(|entry| entry.is("extensions", "worktreeconfig") && entry.is_true())
        {
            let path = place.private(b"config.worktree");
            if let Some(text) = place.read(&path, MAX_CONFIG)? {
                entries.extend(parse(&path, &text)?);
            }
        }
        session_config::pick(&entries, self.person)
    }

    /// Checks that a linked worktree is the repository's own: a `.git` file may name any folder of
    /// the machine.
    fn check_worktree(&self, place: &PreparePlace<'_>) -> Result<(), GitRefusal> {
        let Some((_, git_file)) = &place.source.worktree else {
            return Ok(());
        };
        let common = place
            .read(&place.private(b"commondir"), MAX_SMALL)?
            .unwrap_or_default();
        let back = place
            .read(&place.private(b"gitdir"), MAX_SMALL)?
            .unwrap_or_default();
        let is_ours =
            common.trim_ascii() == b"../.." && back.trim_ascii_end() == git_file.as_bytes();
        let pointer = self
            .project
            .read(place.source.path.as_bytes(), MAX_POINTER)
            .ok()
            .flatten()
            .unwrap_or_default();
        if is_ours && pointed(&pointer).is_some() {
            Ok(())
        } else {
            Err(GitRefusal::NotOurs)
        }
    }
}

/// Returns the folder of a repository's files, relative to the project's.
fn where_files_are(place: &PreparePlace<'_>, said: Option<&[u8]>) -> Result<Vec<u8>, GitRefusal> {
    let beside = split(place.source.path.as_bytes()).0.to_vec();
    let elsewhere = |said: &[u8]| GitRefusal::Elsewhere {
        path: BytesPath::from_bytes(said),
    };
    match said {
        // A submodule of a linked worktree has its repository outside of the project.
        _ if place.is_module && place.source.worktree.is_some() => {
            Err(said.map_or(GitRefusal::Nowhere, elsewhere))
        }
        None if place.is_module => Err(GitRefusal::Nowhere),
        None => Ok(beside),
        Some(said) => match work_tree(&place.path(), said) {
            Some(path) if place.is_module || path == beside => Ok(path),
            _ => Err(elsewhere(said)),
        },
    }
}
