use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::super::Import;
use super::super::UnreadRepositories;
use super::*;
use crate::keep::git::import_marker::ImportMarker;
use crate::keep::git::refs;
use crate::keep::git::sample::ID;
use crate::keep::git::sample::Sample;
use crate::keep::git::sample::SampleSession;
use crate::keep::git::sample::told;
use crate::keep::git::untrusted_folder::UntrustedFolder;

/// Imports a session while the user does something else; returns what was reported and what git
/// says then.
fn import_while(session: &Work, person: &dyn Fn(&Sample)) -> (Sample, ImportedRepository) {
    let sample = Sample::new();
    sample.commit("a", "1\n");
    sample.git(&["branch", "theirs"]);
    let in_session = SampleSession::of(sample);
    session(&in_session);
    let sample = in_session.end();
    let scratch = sample.beside("scratch");
    fs::create_dir(&scratch).expect("made");
    let state = UntrustedFolder::open(&sample.beside("state")).expect("opens");
    let places = BTreeMap::from([(
        ".git".into(),
        Ok((sample.path(".git"), sample.beside("session"))),
    )]);
    let import = Import {
        id: ID,
        state: &state,
        scratch: &scratch,
        places: &places,
        budget: Duration::from_secs(60),
        file_size: u64::MAX,
        unexamined: &UnreadRepositories::default(),
    };
    let start = SessionStart::read(&state, ID)
        .expect("read")
        .expect("on record");
    let index = start.index(&state, ID, 0).expect("read");
    let place = places
        .values()
        .next()
        .and_then(|place| place.as_ref().ok())
        .expect("a place");
    let end = Instant::now() + import.budget;
    let one = RepositoryImport::open(&import, place, (0, index), end, &start.repositories[0])
        .expect("opens");
    let left = SessionChanges::read(
        &one.session,
        &one.private,
        one.id,
        one.started,
        one.start_index.as_deref(),
    )
    .expect("read");
    let mut done = ImportedRepository::default();
    let (first, _) = one.in_order(&left).expect("read");
    let (mut staging, mut fetched) = (one.staging(&left).expect("made"), Fetched::default());
    if let Some(staging) = &mut staging {
        one.fetch_first(staging, &first, &left, &mut fetched, &mut done)
            .expect("fetched");
    }
    let mut real = refs::read(&one.real).expect("read").bound;
    let plan = one
        .plan((&left, &first), &fetched, &real, &mut done)
        .expect("found");
    one.move_names(&plan.names, &mut real, &mut done)
        .expect("moved");
    person(&sample);
    one.move_here(&plan, &left, &fetched, &mut real, &mut done)
        .expect("moved");
    let under = ImportMarker {
        real: &one.real,
        private: &one.private,
        state: &state,
        id: ID,
        at: 0,
    };
    one.remove_own_refs(&under).expect("removed");
    sample.git(&["fsck", "--strict", "--no-dangling"]);
    assert!(!sample.path(".git/index.podbay-session-1").exists());
    (sample, done)
}

fn switch(session: &SampleSession) {
    session.git(&["checkout", "-q", "-b", "new"]);
}

fn commit(session: &SampleSession) {
    session.sample.commit("b", "1\n");
}

fn status(sample: &Sample) -> String {
    sample.git(&["status", "--porcelain", "--branch", "--untracked-files=no"])
}

type Work = dyn Fn(&SampleSession);

#[test]
fn a_checkout_by_the_user_during_an_import_stays() {
    let both = |session: &SampleSession| {
        switch(session);
        commit(session);
    };
    let detached = |session: &SampleSession| {
        session.git(&["checkout", "-q", "--detach"]);
    };
    let works: [(&Work, &str); 4] = [
        (&switch, "HEAD: "),
        (&both, "HEAD: "),
        (&detached, "HEAD: "),
        (&commit, "refs/heads/main: is checked out here, "),
    ];
    for (at, (work, about)) in works.into_iter().enumerate() {
        let (sample, done) = import_while(work, &|sample| {
            sample.git(&["checkout", "-q", "theirs"]);
        });
        let told = told(&done);
        assert!(
            told.starts_with(about) && told.contains("the checkout here changed just now"),
            "{at}: {told}"
        );
        assert_eq!(
            (status(&sample).as_str(), done.head, done.index),
            ("## theirs\n", None, IndexImport::Kept),
            "{at}"
        );
    }
    for (work, branch) in [(&switch as &Work, "new"), (&both, "new"), (&commit, "main")] {
        let (sample, done) = import_while(work, &|_| ());
        assert_eq!(
            (told(&done), status(&sample)),
            (String::new(), format!("## {branch}\n")),
            "left alone, it comes"
        );
        assert!(!sample.path(".git/index.lock").exists());
    }
}

#[test]
fn the_checkout_is_not_switched_while_git_locks_the_index() {
    let (sample, done) = import_while(&switch, &|sample| sample.write(".git/index.lock", ""));
    assert_eq!(
        told(&done),
        "HEAD: yours is locked by another git, which must end first\n"
    );
    assert_eq!(status(&sample), "## main\n");
    assert!(
        sample.path(".git/index.lock").exists(),
        "it is another git's"
    );
}
