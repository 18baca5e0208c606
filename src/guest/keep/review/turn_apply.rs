//! Applies a turn at its end, completely or as far as allowed.
//!
//! The session continues after it. What was applied is no change of the session any more: its copy
//! is compared with the project that includes it.

use nix::fcntl::AtFlags;
use nix::fcntl::renameat;
use nix::sys::stat::UtimensatFlags;
use nix::sys::stat::fstatat;
use nix::sys::stat::utimensat;
use nix::sys::time::TimeSpec;

use super::ApplySelection;
use super::ChosenChanges;
use super::InterruptedApply;
use super::OpenReview;
use super::ReviewRecord;
use super::SessionView;
use super::count;
use super::finish_interrupted;
use super::interrupted::refuse_if_stopped;
use super::open_review::cache_of_layer;
use super::partial;
use super::pin_of;
use super::summary;
use crate::keep::Change;
use crate::keep::Error;
use crate::keep::MOST_DIFF;
use crate::keep::Node;
use crate::keep::ObjectId;
use crate::keep::Origin;
use crate::keep::Outcome;
use crate::keep::Project;
use crate::keep::Purpose;
use crate::keep::Request;
use crate::keep::StateFolder;
use crate::keep::Store;
use crate::keep::apply;
use crate::keep::compare;
use crate::keep::diff::unified;
use crate::keep::journal::Journal;
use crate::keep::overlay;
use crate::keep::overlay::Overlay;
use crate::keep::overlay::copy_up;
use crate::keep::path_entry::NameCheck;
use crate::keep::path_entry::PathEntry;
use crate::keep::pin;
use crate::keep::plan;
use crate::keep::snapshot_edit::edited;
use crate::keep::undo;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::keep::ApplyOutcome;
use podbay_wire::keep::EndOfTurn;
use podbay_wire::keep::PendingChanges;
use podbay_wire::keep::PendingGit;
use podbay_wire::keep::ReviewedTurn;
use podbay_wire::keep::TurnFate;

/// Temporary name of a folder in the session's copy.
const ASIDE: &[u8] = b".podbay-made";

/// Folder of the state for changes that are written in a session's copy.
const VIEW: &str = "view";

/// Applies what a turn changed.
pub(super) fn apply_turn(
    project: &Project,
    seen: SessionView<'_>,
    state: &StateFolder,
    name: &str,
    turn: &EndOfTurn,
) -> Result<ReviewedTurn, Error> {
    if turn.fate == TurnFate::Drop {
        restart_turn(state, name)?;
        return Ok(ReviewedTurn::default());
    }
    let resumed = match finish_interrupted(project, seen, state, name)? {
        InterruptedApply::Finished(resumed) => resumed.map(|applied| *applied),
        // Nothing is begun over it.
        InterruptedApply::Stopped(applied) => {
            refuse_if_stopped(&applied)?;
            None
        }
    };
    let is_accepted = turn.fate == TurnFate::Accept;
    let mut work = if is_accepted {
        last_seen_changes(project, seen, state, name)?
    } else {
        look(project, seen, state, name)?
    };
    if turn.fate == TurnFate::Count {
        let came = PendingChanges {
            git: work.record.git.clone(),
            ..PendingChanges::default()
        };
        return Ok(ReviewedTurn {
            came,
            n_left: count(&work.of_turn()?),
            resumed,
            ..ReviewedTurn::default()
        });
    }
    if turn.fate == TurnFate::Show {
        return shown(project, &work, turn, resumed);
    }
    let wanted = ApplySelection {
        only: &turn.only,
        merge: false,
        with_auto_run: turn.with_auto_run || is_accepted,
        auto_run: &turn.auto_run,
        hunks: &turn.hunks,
    };
    let ChosenChanges {
        changes: mut chosen,
        left,
        ..
    } = work.chosen(wanted)?;
    let base = work.record.base;
    let mut came: Vec<Change> = Vec::new();
    let mut applied = left;
    let mut is_begun = false;
    if !chosen.is_empty() {
        work.store = undo::begin_turn_apply(
            project,
            state,
            work.store,
            (name, turn.n_turn, &turn.words),
            base,
        )?;
        is_begun = true;
        let partial = partial::take_hunks(&mut work.store, &mut chosen, &turn.hunks)?;
        let (from, to) = (
            base,
            edited(&mut work.store, &work.record.after(), &partial)?,
        );
        let purpose = Purpose::Review {
            name: name.to_owned(),
        };
        let request = Request {
            from,
            to,
            only: Vec::new(),
            merge: false,
            origin: Origin::Elsewhere,
            copy: seen.copy,
            purpose,
        };
        let found = Outcome {
            applied,
            left: Vec::new(),
        };
        applied = apply::apply_wanted(
            project,
            state,
            &mut work.store,
            &request,
            chosen,
            found,
            |_, journal, _| {
                came = journal
                    .changes
                    .iter()
                    .filter(|change| super::applied_paths::is_in(project, journal, change))
                    .cloned()
                    .collect();
                Ok(())
            },
        )?;
    }
    keep_times(project, seen.copy, &came);
    if let Some(copy) = seen
        .copy
        .filter(|_| turn.keeps_view && seen.upper.is_some())
    {
        detach_folders(copy, &came);
    }
    let is_stopped = applied.stopped.is_some();
    if is_begun && !is_stopped {
        work.record.base = edited(&mut work.store, &base, &came)?;
        work.store = undo::end_turn_apply(project, state, work.store, work.record.base)?;
    }
    let n_left = count(&work.rest()?).max(u64::from(is_stopped));
    let difference = unified(&work.store, &came, MOST_DIFF)?;
    let came = PendingChanges {
        git: work.record.git.clone(),
        ..summary::pending(project, &came, &difference, &work.auto_run(&turn.auto_run)?)
    };
    // The session continues from there, also in a new overlay: that may show what was there before
    // the user changed it, as long as the kernel caches that.
    work.record.is_open = true;
    work.record.waiting = (n_left > 0).then(|| work.record.after());
    pin::pin(state, &work.store, &pin_of(name), work.record.snapshots())?;
    work.record.save(state)?;
    Ok(ReviewedTurn {
        came,
        applied,
        resumed,
        n_left,
        text: String::new(),
    })
}

/// Returns all that is pending, with its diff.
fn shown(
    project: &Project,
    work: &OpenReview<'_>,
    turn: &EndOfTurn,
    resumed: Option<ApplyOutcome>,
) -> Result<ReviewedTurn, Error> {
    let rest = work.rest()?;
    let difference = unified(&work.store, &rest, MOST_DIFF)?;
    let auto_run = work.auto_run(&turn.auto_run)?;
    let came = PendingChanges {
        git: work.record.git.clone(),
        ..summary::pending(project, &rest, &difference, &auto_run)
    };
    Ok(ReviewedTurn {
        came,
        resumed,
        n_left: count(&rest),
        text: difference.text,
        ..ReviewedTurn::default()
    })
}

impl OpenReview<'_> {
    /// Returns what is not in the project and was not pending before this turn.
    fn of_turn(&self) -> Result<Vec<Change>, Error> {
        let mut rest = self.rest()?;
        if let Some(waiting) = self.record.waiting {
            let since = compare(&self.store, &waiting, &self.record.after())?;
            rest.retain(|change| {
                since
                    .binary_search_by(|other| other.path.cmp(&change.path))
                    .is_ok()
            });
        }
        Ok(rest)
    }
}

/// Has a session continue from the start of its last turn, in a new copy.
fn restart_turn(state: &StateFolder, name: &str) -> Result<(), Error> {
    if apply::is_unfinished(state)? {
        return Err(Error::Unfinished);
    }
    let Some(mut record) = ReviewRecord::load(state, name)? else {
        return Ok(());
    };
    // What was pending before the turn is so in the new copy, too.
    record.after = record.waiting;
    record.restores = record.waiting.is_some();
    record.git = PendingGit::default();
    pin::pin(
        state,
        &Store::open(state)?,
        &pin_of(name),
        record.snapshots(),
    )?;
    record.save(state)
}

/// Returns the session's changes at the last look.
fn last_seen_changes<'a>(
    project: &'a Project,
    seen: SessionView<'a>,
    state: &'a StateFolder,
    name: &str,
) -> Result<OpenReview<'a>, Error> {
    let Some(record) = ReviewRecord::load(state, name)? else {
        return Err(Error::NoReview {
            name: name.to_owned(),
        });
    };
    Ok(OpenReview {
        project,
        state,
        store: Store::open(state)?,
        record,
        obeyed: seen.obeyed,
    })
}

/// Examines what the session has changed: in an overlay only the upper layer.
fn look<'a>(
    project: &'a Project,
    seen: SessionView<'a>,
    state: &'a StateFolder,
    name: &str,
) -> Result<OpenReview<'a>, Error> {
    let mut store = Store::open(state)?;
    let (Some(copy), Some(upper)) = (seen.copy, seen.upper) else {
        return OpenReview::with(store, project, seen, state, name, true);
    };
    let Some(mut record) = ReviewRecord::load(state, name)? else {
        return Err(Error::NoReview {
            name: name.to_owned(),
        });
    };
    if let Some(git) = seen.git {
        record.git.clone_from(git);
    }
    let laid_over = Overlay::new(project, copy, upper, record.base);
    let after = overlay::snapshot(&laid_over, state, &mut store, &cache_of_layer(name))?;
    record.after = Some(after.id);
    record.not_of_it = Vec::new();
    record.is_cut_short = after.is_cut_short;
    pin::pin(state, &store, &pin_of(name), record.snapshots())?;
    record.save(state)?;
    Ok(OpenReview {
        project,
        state,
        store,
        record,
        obeyed: seen.obeyed,
    })
}

/// Shows a session that resumes in its copy what the user changed meanwhile. Returns the paths of
/// which it keeps seeing its own version, since that is pending.
pub(super) fn show_user_changes(
    copy: &Project,
    state: &StateFolder,
    store: &mut Store,
    record: &mut ReviewRecord,
    now: ObjectId,
) -> Result<Vec<BytesPath>, Error> {
    let is_seen = |change: &Change| {
        let look = PathEntry::at(copy, change.path.as_bytes(), NameCheck::Plain);
        look.is_ok_and(|look| plan::is_done(change, look.found.node().as_ref()))
    };
    let since = compare(store, &record.base, &now)?;
    let lost = match record.waiting.filter(|_| record.restores) {
        Some(waiting) => compare(store, &record.base, &waiting)?,
        None => Vec::new(),
    };
    // Most of it shows through, except where the session has its own version, and in folders that
    // it made.
    let hidden: Vec<Change> = since
        .iter()
        .filter(|change| !is_seen(change))
        .cloned()
        .collect();
    write_in_copy(copy, state, store, record, now, hidden)?;
    // What both changed is the session's in its copy, and the user's in the project.
    let is_lost = |change: &Change| {
        lost.binary_search_by(|other| other.path.cmp(&change.path))
            .is_ok()
    };
    let (shown, hidden): (Vec<Change>, Vec<Change>) = since
        .into_iter()
        .partition(|change| is_seen(change) && !is_lost(change));
    if let Some(waiting) = record.waiting.filter(|_| record.restores) {
        let here = |path: &BytesPath| {
            PathEntry::at(copy, path.as_bytes(), NameCheck::Plain)
                .ok()
                .and_then(|look| look.found.node())
        };
        let again = lost
            .into_iter()
            .map(|change| Change {
                before: here(&change.path),
                ..change
            })
            .collect();
        write_in_copy(copy, state, store, record, waiting, again)?;
        record.restores = false;
    }
    record.base = edited(store, &record.base, &shown)?;
    Ok(hidden.into_iter().map(|change| change.path).collect())
}

/// Makes changes in a session's copy.
fn write_in_copy(
    copy: &Project,
    state: &StateFolder,
    store: &mut Store,
    record: &ReviewRecord,
    to: ObjectId,
    changes: Vec<Change>,
) -> Result<(), Error> {
    if changes.is_empty() {
        return Ok(());
    }
    // What a killed keeper left there is of no use: all of it is examined anew.
    let place = state.below(VIEW)?;
    Journal::clear(&place)?;
    // A copy-up in the middle of a step would look like a change by another program.
    changes
        .iter()
        .try_for_each(|change| copy_up(copy, change.path.as_bytes()))?;
    let purpose = Purpose::Review {
        name: record.name.clone(),
    };
    let request = Request {
        from: record.base,
        to,
        only: Vec::new(),
        merge: false,
        origin: Origin::Elsewhere,
        copy: None,
        purpose,
    };
    apply::apply_wanted(
        copy,
        &place,
        store,
        &request,
        changes,
        Outcome::default(),
        |_, _, _| Ok(()),
    )
    .map(drop)
}

/// Gives applied files the modification times of the copy, since builds compare which of two files
/// is newer.
fn keep_times(project: &Project, copy: Option<&Project>, came: &[Change]) {
    for change in came
        .iter()
        .filter(|change| matches!(change.after, Some(Node::File { .. })))
    {
        let (parent, name) = split(change.path.as_bytes());
        let folders =
            copy.and_then(|copy| Some((copy.folder(parent).ok()?, project.folder(parent).ok()?)));
        let Some((from, to)) = folders else { continue };
        if let Ok(stat) = fstatat(&from, name, AtFlags::AT_SYMLINK_NOFOLLOW) {
            let time = TimeSpec::new(stat.st_mtime, stat.st_mtime_nsec);
            // Only a build that does too much or too little depends on it.
            let _ = utimensat(
                &to,
                name,
                &TimeSpec::UTIME_OMIT,
                &time,
                UtimensatFlags::NoFollowSymlink,
            );
        }
    }
}

/// Detaches folders that the session made, and that are in the project now as well, from the lower
/// layer. As long as the kernel treats such a folder as new, it writes no whiteouts for entries
/// removed in it, and they would reappear when its cache is dropped. A folder that is renamed onto
/// a name of the lower layer is marked as opaque.
fn detach_folders(copy: &Project, came: &[Change]) {
    let mut made: Option<&[u8]> = None;
    // A folder comes before its contents.
    for change in came.iter().filter(|change| {
        change.before.is_none() && matches!(change.after, Some(Node::Folder { .. }))
    }) {
        let path = change.path.as_bytes();
        if made.is_some_and(|made| {
            path.strip_prefix(made)
                .is_some_and(|rest| rest.starts_with(b"/"))
        }) {
            continue;
        }
        made = Some(path);
        let (parent, name) = split(path);
        let Ok(folder) = copy.folder(parent) else {
            continue;
        };
        if renameat(&folder, name, &folder, ASIDE).is_ok() {
            // Its old name is free, unless a background command makes an entry there at this very
            // moment; then that entry has the name.
            let _ = renameat(&folder, ASIDE, &folder, name);
        }
    }
}
