//! Fetching objects, verified: what is checked out first, then the rest in batches, as far as there
//! is time.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Instant;

use super::RefTargets;
use super::RepositoryImport;
use super::incoming_packs::IncomingPacks;
use super::ref_updates::RefUpdates;
use crate::keep::git::git_command::Git;
use crate::keep::git::refs::Head;
use crate::keep::git::session_changes::SessionChanges;
use crate::keep::git::staging;
use crate::keep::git::stash;
use crate::keep::git::stash::Stash;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::ImportedRepository;
use podbay_wire::keep::NotImported;

/// Most objects that are requested at once, and most references that are moved at once.
pub(super) const AT_ONCE: usize = 1000;

/// The reason for what there was no time for.
const LATE: &str = "there was no time left for it";

/// What is in the real repository after the fetch.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    pub(super) objects: BTreeSet<String>,
    /// The commit made of the session's index.
    pub(super) index: Option<String>,
}

/// The repository that objects are fetched from.
pub(super) struct Staging {
    place: PathBuf,
    /// With a view of the user's repository without its broken references, once those were in the
    /// way.
    git: Git,
    is_view: bool,
    n_named: usize,
}

/// An object to fetch, and the names that it is for.
type Tip = (String, Vec<BytesPath>);

/// Reports that there was no time for something.
pub(super) fn note_late(what: BytesPath, done: &mut ImportedRepository) {
    done.is_late = true;
    done.not_imported.push(NotImported {
        what,
        why: LATE.to_owned(),
    });
}

/// Groups names by object: very many branches may be one commit.
fn group_by_object(all: impl Iterator<Item = (BytesPath, String)>) -> Vec<Tip> {
    let mut tips: Vec<Tip> = Vec::new();
    let mut at: BTreeMap<String, usize> = BTreeMap::new();
    for (what, object) in all {
        if let Some(at) = at.get(&object) {
            tips[*at].1.push(what);
        } else {
            at.insert(object.clone(), tips.len());
            tips.push((object, vec![what]));
        }
    }
    tips
}

impl RepositoryImport<'_> {
    /// Makes the staging repository; `None`: there is nothing to fetch.
    pub(super) fn staging(&self, left: &SessionChanges) -> Result<Option<Staging>, Fault> {
        if left.names.is_empty()
            && left.stashes.is_empty()
            && left.index.is_none()
            && self.detached(left).is_none()
        {
            return Ok(None);
        }
        let place = staging::make(
            self.scratch,
            &staging::ObjectFolders {
                real: &self.real_path,
                session: &self.session_path,
                session_folder: &self.session,
                real_folder: &self.real,
            },
        )?;
        Ok(Some(Staging {
            place,
            git: self.git.clone(),
            is_view: false,
            n_named: 0,
        }))
    }

    /// Returns the commit of the session's detached HEAD, if it can be imported.
    fn detached<'l>(&self, left: &'l SessionChanges) -> Option<&'l String> {
        let head = left
            .head
            .as_ref()
            .filter(|head| **head != self.started.head)?;
        let Head::Commit { object } = head else {
            return None;
        };
        (!self.unseen.iter().any(|one| one.object == *object)).then_some(object)
    }

    /// Fetches what concerns the checkout, and what is staged.
    pub(super) fn fetch_first(
        &self,
        staging: &mut Staging,
        first: &RefUpdates<'_>,
        left: &SessionChanges,
        fetched: &mut Fetched,
        done: &mut ImportedRepository,
    ) -> Result<(), Fault> {
        let mut all: Vec<(BytesPath, String)> = first
            .iter()
            .map(|(name, object)| ((*name).clone(), (*object).clone()))
            .collect();
        all.extend(
            self.detached(left)
                .map(|object| (BytesPath::from("HEAD"), object.clone())),
        );
        let mut staged = None;
        if let Some(index) = &left.index {
            match self.commit_index(&staging.place, index, left)? {
                Ok(object) => {
                    all.push(("index".into(), object.clone()));
                    staged = Some(object);
                }
                Err(why) => done.not_imported.push(NotImported {
                    what: "index".into(),
                    why,
                }),
            }
        }
        if !all.is_empty() {
            self.fetch(
                staging,
                &group_by_object(all.into_iter()),
                self.end,
                fetched,
                done,
            )?;
        }
        fetched.index = staged.filter(|object| fetched.objects.contains(object));
        Ok(())
    }

    /// Fetches all the rest and moves its references, batch by batch; returns the stashes that are
    /// there then. What there is no time for is reported.
    pub(super) fn import_rest(
        &self,
        staging: &mut Staging,
        (left, rest): (&SessionChanges, &RefUpdates<'_>),
        mut fetched: Fetched,
        real: &mut RefTargets,
        done: &mut ImportedRepository,
        share: Instant,
    ) -> Vec<Stash> {
        let mut put = Vec::new();
        let stashes: Vec<Tip> = left
            .stashes
            .iter()
            .map(|stash| {
                (
                    stash.object.clone(),
                    vec![BytesPath::from_bytes(stash::NAME)],
                )
            })
            .collect();
        let names = group_by_object(
            rest.iter()
                .map(|(name, object)| ((*name).clone(), (*object).clone())),
        );
        let batches = [stashes.as_slice()]
            .into_iter()
            .chain(names.chunks(AT_ONCE))
            .filter(|batch| !batch.is_empty());
        for (at, batch) in batches.enumerate() {
            let now = Instant::now();
            if now >= share {
                batch
                    .iter()
                    .flat_map(|(_, whats)| whats)
                    .for_each(|what| note_late(what.clone(), done));
                continue;
            }
            // One that takes very long leaves time for those after it.
            let until = now + (share - now) / 2;
            let moved = self
                .fetch(staging, batch, until, &mut fetched, done)
                .and_then(|()| {
                    if at == 0 && !stashes.is_empty() {
                        put = self.put_stashes(left, &fetched, real, done)?;
                        return Ok(());
                    }
                    let names = batch
                        .iter()
                        .flat_map(|(_, whats)| whats)
                        .filter_map(|name| rest.get_key_value(name))
                        .map(|(name, new)| (*name, *new));
                    let names = self.importable_refs(&names.collect(), &fetched, real, done)?;
                    self.move_names(&names, real, done)
                });
            if let Err(fault) = moved {
                done.is_late |= self.git.is_late();
                let told: BTreeSet<BytesPath> = done
                    .not_imported
                    .iter()
                    .map(|one| one.what.clone())
                    .collect();
                let is_there = |what: &BytesPath| {
                    rest.get(what)
                        .is_some_and(|new| real.get(what) == Some(*new))
                };
                let whats = batch
                    .iter()
                    .flat_map(|(_, whats)| whats)
                    .filter(|what| !is_there(what) && !told.contains(*what));
                done.not_imported.extend(whats.map(|what| NotImported {
                    what: what.clone(),
                    why: fault.to_string(),
                }));
            }
        }
        put
    }

    /// Fetches some objects before a deadline; a bad one does not keep the others out.
    fn fetch(
        &self,
        staging: &mut Staging,
        tips: &[Tip],
        until: Instant,
        fetched: &mut Fetched,
        done: &mut ImportedRepository,
    ) -> Result<(), Fault> {
        let mut waiting = vec![tips];
        while let Some(some) = waiting.pop() {
            let whats = some.iter().flat_map(|(_, whats)| whats);
            let why = match self.fetch_some(staging, some, until) {
                Ok(Ok(())) => {
                    fetched
                        .objects
                        .extend(some.iter().map(|(object, _)| object.clone()));
                    continue;
                }
                Ok(Err(why)) => why,
                // Nothing is moved yet where the checkout could not be fetched: all of it can be
                // started again.
                Err(fault) if until >= self.end => return Err(fault),
                Err(_) if Instant::now() >= until => {
                    whats.for_each(|what| note_late(what.clone(), done));
                    continue;
                }
                Err(fault) => fault.to_string(),
            };
            // Git fetches nothing if it cannot resolve each existing reference.
            if !staging.is_view {
                staging.is_view = true;
                if let Some(view) = self.without_broken_names(done)? {
                    staging.git = view;
                    waiting.push(some);
                    continue;
                }
            }
            if some.len() > 1 {
                let (one, other) = some.split_at(some.len() / 2);
                waiting.extend([other, one]);
                continue;
            }
            done.not_imported.extend(whats.map(|what| NotImported {
                what: what.clone(),
                why: why.clone(),
            }));
        }
        Ok(())
    }

    fn fetch_some(
        &self,
        staging: &mut Staging,
        tips: &[Tip],
        until: Instant,
    ) -> Result<Result<(), String>, Fault> {
        let first = staging.n_named;
        let wanted = || {
            tips.iter()
                .zip(first..)
                .map(|((object, _), at)| (format!("refs/import/{at}"), object))
        };
        staging::name(
            self.scratch,
            wanted().map(|(name, object)| (BytesPath::from_bytes(name), object.clone())),
        )?;
        staging.n_named += tips.len();
        let incoming = match IncomingPacks::make(&self.real, &self.real_path, self.id) {
            Err(fault @ Fault::NoSpace { .. }) => return Ok(Err(fault.to_string())),
            made => made?,
        };
        let words = [
            "fetch",
            "-q",
            "--no-tags",
            "--no-write-fetch-head",
            "--no-auto-maintenance",
            "--no-recurse-submodules",
            "--no-prune",
        ];
        let mut words: Vec<&OsStr> = words.iter().map(OsStr::new).collect();
        words.extend([OsStr::new("--stdin"), staging.place.as_os_str()]);
        let names: String = wanted().map(|(name, _)| name + "\n").collect();
        let git = staging.git.until(until);
        let answer = git
            .with_objects(&incoming.path)
            .run(&words, names.as_bytes())?;
        if !answer.is_good {
            return Ok(Err(answer.problem()));
        }
        // No reference names what is not among the others.
        incoming.put()?;
        let id = self.id;
        let held: String = tips
            .iter()
            .zip(first..)
            .map(|((object, _), at)| format!("update refs/podbay/{id}/{at}\0{object}\0\0"))
            .collect();
        let answer = git
            .without_flush()
            .run(&["update-ref", "--stdin", "-z"], held.as_bytes())?;
        Ok(if answer.is_good {
            Ok(())
        } else {
            Err(answer.problem())
        })
    }
}
