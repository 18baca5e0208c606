//! Turns that can be taken back.
//!
//! A turn is what lies between two snapshots: one before the first change of a turn, one after its last. Several turns are taken back one
//! after the other, so that what the person changed between two of them is found to be theirs. What they change while a turn runs cannot
//! be told from what the turn does.
//!
//! Turns of all sessions of a project are in one log, as they happened. A new turn that changes something ends what could be brought back.

use std::collections::BTreeSet;
use std::time::SystemTime;
use std::time::UNIX_EPOCH;

use super::Error;
use super::Folder;
use super::MOST_DIFFERENCE;
use super::Project;
use super::Snapshot;
use super::Store;
use super::apply;
use super::compare::compare;
use super::compare::told;
use super::difference::unified;
use super::forbidden::Origin;
use super::journal::Purpose;
use super::pin;
use super::plan::Request;
use super::snapshot;
use super::turn::Record;
use super::turn::Turn;
use super::turn::TurnLog;
use super::turn::shortened;
use crate::wire::keep::Applied;
use crate::wire::keep::EntryType;
use crate::wire::keep::MayRun;
use crate::wire::keep::PathChange;
use crate::wire::keep::TurnAnswer;
use crate::wire::keep::TurnBegan;
use crate::wire::keep::TurnDifference;
use crate::wire::keep::TurnEnded;
use crate::wire::keep::TurnOrder;
use crate::wire::keep::Turns;
use crate::wire::keep::UndoAnswer;
use crate::wire::keep::UndoOrder;
use crate::wire::keep::Undone;
use crate::wire::keep::UndoneTurn;
use crate::wire::keep::What;
use crate::wire::may_run as may_run_by;

/// Turns that are kept at least; a quarter more, and the oldest are forgotten.
pub const MOST_TURNS: usize = 100;

/// What the files of the project looked like when they were last read.
const CACHE: &str = "cache";

/// What was finished that had been interrupted.
#[derive(Debug)]
pub enum Resumed {
    Nothing,
    Turns(Undone),
    /// Changes of that name were brought in.
    Review {
        name: String,
        applied: Applied,
    },
}

/// Begins a turn. One that was never ended ends here, with all that was changed until now.
pub fn begin(project: &Project, state: &Folder, session: &str, n_turn: u64, words: &str) -> Result<TurnBegan, Error> {
    Work::open(project, state)?.begin(session, n_turn, words)
}

/// Ends the turn that was begun.
pub fn end(project: &Project, state: &Folder) -> Result<TurnEnded, Error> {
    let mut work = Work::open(project, state)?;
    let Some(turn) = work.log.open().map(|turn| turn.turn) else { return Err(Error::NoTurn) };
    let snapshot = work.look()?;
    let mut changes = work.close(&snapshot, false)?;
    // What a build leaves lies deep, and what a person looks for does not.
    changes.sort_by_key(|change| memchr::memchr_iter(b'/', change.path.as_bytes()).count());
    let may_run = changes.iter().filter(|change| !matches!(change.what, What::Deleted) && change.entry != EntryType::Folder);
    let may_run =
        may_run.filter_map(|change| Some(MayRun { path: change.path.clone(), why: may_run_by(&change.path)?.to_owned() })).collect();
    Ok(TurnEnded { turn, changes: changes.into_iter().collect(), may_run, passed_over: snapshot.passed_over })
}

/// Lists the turns that changed something.
pub fn list(state: &Folder) -> Result<Turns, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let turns = log.turns.iter().rev().filter(|turn| turn.end.is_none() || turn.has_changed()).map(Turn::told).collect();
    Ok(Turns { turns, n_bytes: store.n_bytes(), most_bytes: store.most_bytes(), is_unfinished: apply::is_unfinished(state)? })
}

/// Shows what the last turns changed that are over and not taken back, the newest first.
pub fn difference(state: &Folder, n: u32) -> Result<Vec<TurnDifference>, Error> {
    let store = Store::open(state)?;
    let log = TurnLog::load(state)?;
    let mut room = MOST_DIFFERENCE;
    let mut differences = Vec::new();
    for turn in log.back().take(n as usize) {
        let Some(end) = turn.end else { continue };
        let changes = compare(&store, &turn.before, &end.after)?;
        let difference = unified(&store, &changes, room)?;
        room = room.saturating_sub(difference.text.len());
        let changes = told(&changes).into_iter().collect();
        differences.push(TurnDifference { turn: turn.told(), changes, text: difference.text, n_left_out: difference.n_left_out });
    }
    Ok(differences)
}

/// Takes back the last `n` turns that changed something.
pub fn back(project: &Project, state: &Folder, n: u32, merge: bool) -> Result<Undone, Error> {
    Work::open(project, state)?.go(Way::Back, n, merge)
}

/// Brings back the `n` turns that were taken back last.
pub fn forward(project: &Project, state: &Folder, n: u32, merge: bool) -> Result<Undone, Error> {
    Work::open(project, state)?.go(Way::Forward, n, merge)
}

/// Does what the session says of its turns.
pub fn turn(project: &Project, state: &Folder, order: &TurnOrder) -> Result<TurnAnswer, Error> {
    match order {
        TurnOrder::Begin { session, n_turn, words } => begin(project, state, session, *n_turn, words).map(TurnAnswer::Began),
        TurnOrder::End => end(project, state).map(TurnAnswer::Ended),
    }
}

/// Does what a person asks for. For an order that [writes](UndoOrder::writes) the project's folder must be one that can be written to.
pub fn order(project: &Project, state: &Folder, order: &UndoOrder) -> Result<UndoAnswer, Error> {
    Ok(match order {
        UndoOrder::List => UndoAnswer::Turns(list(state)?),
        UndoOrder::Diff { n } => UndoAnswer::Differences { turns: difference(state, *n)? },
        UndoOrder::Back { n, merge } => UndoAnswer::Undone(back(project, state, *n, *merge)?),
        UndoOrder::Forward { n, merge } => UndoAnswer::Undone(forward(project, state, *n, *merge)?),
        UndoOrder::Resume => match resume(project, state)? {
            Resumed::Nothing => UndoAnswer::Nothing,
            Resumed::Turns(undone) => UndoAnswer::Undone(undone),
            Resumed::Review { name, applied } => UndoAnswer::Applied { name, applied },
        },
        UndoOrder::Abandon if apply::abandon(project, state)? => UndoAnswer::Abandoned,
        UndoOrder::Abandon => UndoAnswer::Nothing,
    })
}

/// Finishes what was interrupted, whatever it was, with the turns that were to follow.
pub fn resume(project: &Project, state: &Folder) -> Result<Resumed, Error> {
    Work::open(project, state)?.resume()
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Back,
    Forward,
}

impl Way {
    fn purpose(self, turn: u64, then: u32, merge: bool) -> Purpose {
        match self {
            Self::Back => Purpose::Back { turn, then, merge },
            Self::Forward => Purpose::Forward { turn, then, merge },
        }
    }

    fn record(self, turn: u64) -> Record {
        match self {
            Self::Back => Record::Back { turn },
            Self::Forward => Record::Forward { turn },
        }
    }
}

/// All that work on turns needs, as long as nobody else does any.
struct Work<'a> {
    project: &'a Project,
    state: &'a Folder,
    store: Store,
    log: TurnLog<'a>,
    most_turns: usize,
}

impl<'a> Work<'a> {
    fn open(project: &'a Project, state: &'a Folder) -> Result<Self, Error> {
        Self::with(project, state, Store::open(state)?)
    }

    fn with(project: &'a Project, state: &'a Folder, store: Store) -> Result<Self, Error> {
        Ok(Self { project, state, store, log: TurnLog::load(state)?, most_turns: MOST_TURNS })
    }

    fn begin(&mut self, session: &str, n_turn: u64, words: &str) -> Result<TurnBegan, Error> {
        let snapshot = self.look()?;
        if self.log.open().is_some() {
            self.close(&snapshot, true)?;
        }
        if self.log.turns.len() > self.most_turns + self.most_turns / 4 {
            self.forget(self.most_turns, &snapshot)?;
        }
        let turn = self.log.next_turn();
        let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let before = snapshot.id;
        self.log.add(Record::Begin { turn, session: session.to_owned(), n_turn, words: shortened(words), at, before })?;
        let is_unfinished = apply::is_unfinished(self.state)?;
        Ok(TurnBegan { turn, n_files: snapshot.n_files, passed_over: snapshot.passed_over, is_unfinished })
    }

    fn go(&mut self, way: Way, n: u32, merge: bool) -> Result<Undone, Error> {
        if apply::is_unfinished(self.state)? {
            return Err(Error::Unfinished);
        }
        if self.log.open().is_some() {
            let snapshot = self.look()?;
            self.close(&snapshot, true)?;
        }
        let mut turns = Vec::new();
        self.step_by_step(way, n, merge, &mut turns)?;
        Ok(self.undone(turns))
    }

    fn resume(&mut self) -> Result<Resumed, Error> {
        let log = &mut self.log;
        let resumed = apply::resume(self.project, self.state, &self.store, |purpose, _| match purpose {
            Purpose::Back { turn, .. } => log.add(Record::Back { turn: *turn }),
            Purpose::Forward { turn, .. } => log.add(Record::Forward { turn: *turn }),
            Purpose::Review { .. } => Ok(()),
        })?;
        let Some((purpose, applied)) = resumed else { return Ok(Resumed::Nothing) };
        let (way, turn, then, merge) = match purpose {
            Purpose::Back { turn, then, merge } => (Way::Back, turn, then, merge),
            Purpose::Forward { turn, then, merge } => (Way::Forward, turn, then, merge),
            Purpose::Review { name } => return Ok(Resumed::Review { name, applied }),
        };
        let is_stopped = applied.stopped.is_some();
        let mut turns: Vec<UndoneTurn> = self.log.find(turn).map(|turn| UndoneTurn { turn: turn.told(), applied }).into_iter().collect();
        if !is_stopped {
            self.step_by_step(way, then, merge, &mut turns)?;
        }
        Ok(Resumed::Turns(self.undone(turns)))
    }

    fn step_by_step(&mut self, way: Way, n: u32, merge: bool, turns: &mut Vec<UndoneTurn>) -> Result<(), Error> {
        for then in (0..n).rev() {
            let next = match way {
                Way::Back => self.log.back().next(),
                Way::Forward => self.log.forward().next(),
            };
            let Some((number, before, after)) = next.and_then(|turn| Some((turn.turn, turn.before, turn.end?.after))) else { break };
            let (from, to) = match way {
                Way::Back => (after, before),
                Way::Forward => (before, after),
            };
            let purpose = way.purpose(number, then, merge);
            let request = Request { from, to, only: Vec::new(), merge, origin: Origin::Before, purpose };
            let log = &mut self.log;
            let applied = apply::apply(self.project, self.state, &mut self.store, &request, |_| log.add(way.record(number)))?;
            let is_stopped = applied.stopped.is_some();
            turns.extend(self.log.find(number).map(|turn| UndoneTurn { turn: turn.told(), applied }));
            if is_stopped {
                break;
            }
        }
        Ok(())
    }

    fn undone(&self, turns: Vec<UndoneTurn>) -> Undone {
        Undone { turns, n_back: self.log.back().count() as u64, n_forward: self.log.forward().count() as u64 }
    }

    /// Ends the open turn with what is there now.
    fn close(&mut self, snapshot: &Snapshot, is_interrupted: bool) -> Result<Vec<PathChange>, Error> {
        let Some((turn, before)) = self.log.open().map(|turn| (turn.turn, turn.before)) else { return Err(Error::NoTurn) };
        let changes = match compare(&self.store, &before, &snapshot.id) {
            // What it began with is lost, and with it all that could be taken back.
            Err(Error::Broken { .. }) => {
                self.log.retain(|each| each.turn != turn)?;
                return Ok(Vec::new());
            }
            changes => told(&changes?),
        };
        self.log.add(Record::End { turn, after: snapshot.id, n_changed: changes.len() as u64, is_interrupted })?;
        if before == snapshot.id {
            self.log.retain(|each| each.turn != turn)?;
        } else {
            self.log.retain(|each| !each.is_back)?;
        }
        Ok(changes)
    }

    /// Takes a snapshot; if there is no room for all of it, once more without the older half of the turns.
    fn look(&mut self) -> Result<Snapshot, Error> {
        let snapshot = snapshot::take(self.project, self.state, &mut self.store, CACHE)?;
        if !snapshot.is_cut_short || self.log.turns.len() < 2 {
            return Ok(snapshot);
        }
        self.forget(self.log.turns.len() / 2, &snapshot)?;
        snapshot::take(self.project, self.state, &mut self.store, CACHE)
    }

    /// Forgets all but the newest turns, and removes what is needed by nobody then.
    fn forget(&mut self, n: usize, now: &Snapshot) -> Result<(), Error> {
        // What was interrupted may still need contents that nobody else does.
        if apply::is_unfinished(self.state)? {
            return Ok(());
        }
        let n_forgotten = self.log.turns.len().saturating_sub(n);
        let mut number = 0;
        self.log.retain(|_| {
            number += 1;
            number > n_forgotten
        })?;
        let mut keep: BTreeSet<_> = pin::load(self.state)?.into_values().flatten().collect();
        keep.insert(now.id);
        keep.extend(self.log.turns.iter().flat_map(|turn| [Some(turn.before), turn.end.map(|end| end.after)]).flatten());
        self.store.prune(&keep)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::guest::keep::testing::Scene;
    use crate::guest::keep::testing::left;
    use crate::wire::keep::TurnState;

    fn take_turn(scene: &Scene, n_turn: u64, act: impl FnOnce()) -> TurnEnded {
        begin(&scene.project(), &scene.state(), "session", n_turn, &format!("turn {n_turn}")).expect("begun");
        act();
        end(&scene.project(), &scene.state()).expect("ended")
    }

    fn undo(scene: &Scene, n: u32) -> Undone {
        back(&scene.project(), &scene.state(), n, false).expect("taken back")
    }

    fn redo(scene: &Scene, n: u32) -> Undone {
        forward(&scene.project(), &scene.state(), n, false).expect("brought back")
    }

    fn numbers(undone: &Undone) -> (Vec<u64>, u64, u64) {
        (undone.turns.iter().map(|turn| turn.turn.n_turn).collect(), undone.n_back, undone.n_forward)
    }

    fn listed(scene: &Scene) -> Vec<(u64, TurnState)> {
        list(&scene.state()).expect("listed").turns.first.iter().map(|turn| (turn.n_turn, turn.state)).collect()
    }

    #[test]
    fn turns_are_taken_back_and_brought_back_whole() {
        let scene = Scene::new();
        scene.write("kept", "0");
        let mut states = vec![scene.all()];
        for n in 1..=3 {
            take_turn(&scene, n, || {
                scene.write("file", n.to_string());
                scene.write(format!("new{n}/file"), "x");
                scene.mode("kept", 0o600 + n as u32);
            });
            states.push(scene.all());
        }
        take_turn(&scene, 4, || {});
        assert_eq!(listed(&scene), [(3, TurnState::Done), (2, TurnState::Done), (1, TurnState::Done)]);
        assert_eq!(numbers(&undo(&scene, 2)), (vec![3, 2], 1, 2));
        assert_eq!(scene.all(), states[1]);
        assert_eq!(listed(&scene), [(3, TurnState::TakenBack), (2, TurnState::TakenBack), (1, TurnState::Done)]);
        assert_eq!(numbers(&redo(&scene, 1)), (vec![2], 2, 1));
        assert_eq!(scene.all(), states[2]);
        assert_eq!(numbers(&redo(&scene, 5)), (vec![3], 3, 0));
        assert_eq!(scene.all(), states[3]);
        assert_eq!(numbers(&undo(&scene, 9)), (vec![3, 2, 1], 0, 3));
        assert_eq!(scene.all(), states[0]);
        assert_eq!(numbers(&undo(&scene, 1)), (vec![], 0, 3));
        // A turn that changes nothing leaves what can be brought back, another one does not.
        take_turn(&scene, 5, || {});
        assert_eq!(numbers(&redo(&scene, 1)), (vec![1], 1, 2));
        take_turn(&scene, 6, || scene.write("other", "x"));
        assert_eq!(numbers(&redo(&scene, 1)), (vec![], 2, 0));
        assert_eq!(listed(&scene), [(6, TurnState::Done), (1, TurnState::Done)]);
    }

    #[test]
    fn what_the_person_changed_between_and_after_turns_stays() {
        let scene = Scene::new();
        scene.write("between", "1");
        scene.write("after", "1");
        take_turn(&scene, 1, || {
            scene.write("between", "2");
            scene.write("new", "2");
        });
        scene.write("between", "the person's");
        take_turn(&scene, 2, || {
            scene.write("after", "2");
            scene.write("newer", "2");
        });
        scene.write("after", "the person's");
        let undone = undo(&scene, 2);
        let conflicts: Vec<_> = undone.turns.iter().flat_map(|turn| left(&turn.applied.conflicts)).collect();
        assert_eq!(conflicts, ["after was changed by somebody else since", "between was changed by somebody else since"]);
        let there: Vec<_> = scene.all().into_iter().map(|(path, told)| format!("{} {told}", path.display())).collect();
        assert_eq!(there, ["after file 644 \"the person's\"", "between file 644 \"the person's\""]);
    }

    #[test]
    fn a_turn_that_was_never_ended_ends_with_what_is_there() {
        let scene = Scene::new();
        let begin = |n| begin(&scene.project(), &scene.state(), "session", n, "words").expect("begun");
        begin(1);
        scene.write("a", "1");
        assert_eq!(listed(&scene), [(1, TurnState::Open)]);
        begin(2);
        scene.write("b", "1");
        assert_eq!(listed(&scene), [(2, TurnState::Open), (1, TurnState::Done)]);
        let undone = undo(&scene, 2);
        assert_eq!(numbers(&undone), (vec![2, 1], 0, 2));
        assert!(undone.turns.iter().all(|turn| turn.turn.is_interrupted && turn.turn.n_changed == Some(1)));
        assert!(scene.all().is_empty());
        assert!(matches!(end(&scene.project(), &scene.state()), Err(Error::NoTurn)));
    }

    #[test]
    fn what_was_interrupted_goes_on_with_the_turns_that_were_to_follow() {
        let scene = Scene::new();
        for n in 1..=3 {
            take_turn(&scene, n, || scene.write("file", n.to_string()));
        }
        // As it is when somebody is killed while the first of two is taken back.
        let log = scene.state();
        let last = TurnLog::load(&log).expect("loads").turns[2].clone();
        let from = last.end.expect("ended").after;
        let request = Request { purpose: Purpose::Back { turn: last.turn, then: 1, merge: false }, ..Scene::request(from, last.before) };
        let told = apply::apply(&scene.project(), &log, &mut scene.store(), &request, |_| Err(Error::Busy));
        assert!(told.is_err());
        assert!(matches!(back(&scene.project(), &log, 1, false), Err(Error::Unfinished)));
        assert!(begin(&scene.project(), &log, "session", 4, "").expect("begun").is_unfinished);
        assert!(list(&log).expect("listed").is_unfinished);
        let Resumed::Turns(undone) = resume(&scene.project(), &log).expect("resumed") else { panic!("nothing was") };
        assert_eq!(numbers(&undone).0, [3, 2]);
        assert_eq!(fs::read(scene.path("file")).expect("there"), b"1");
        assert!(matches!(resume(&scene.project(), &log), Ok(Resumed::Nothing)));
    }

    #[test]
    fn differences_of_turns_are_shown_each_by_itself() {
        let scene = Scene::new();
        take_turn(&scene, 1, || scene.write("file", "1\n"));
        scene.write("file", "the person's\n");
        let ended = take_turn(&scene, 2, || scene.write("file", "2\n"));
        assert_eq!(ended.changes.first.len(), 1);
        let shown = difference(&scene.state(), 5).expect("shown");
        let lines: Vec<Vec<&str>> = shown.iter().map(|turn| turn.text.lines().skip(4).collect()).collect();
        assert_eq!(lines, [vec!["-the person's", "+2"], vec!["@@ -0,0 +1 @@", "+1"]]);
    }

    #[test]
    fn old_turns_are_forgotten_and_what_is_pinned_is_kept() {
        let scene = Scene::new();
        scene.write("file", "pinned");
        let pinned = scene.take().id;
        pin::pin(&scene.state(), &scene.store(), "review", [pinned]).expect("pinned");
        let (project, state) = (scene.project(), scene.state());
        for n in 0..10 {
            let mut work = Work { most_turns: 4, ..Work::open(&project, &state).expect("opens") };
            work.begin("session", n, "").expect("begun");
            drop(work);
            scene.write("file", n.to_string());
        }
        end(&project, &state).expect("ended");
        let turns = list(&state).expect("listed").turns;
        assert_eq!((turns.n, turns.first[0].n_turn), (6, 9));
        let now = scene.take().id;
        assert_eq!(compare(&scene.store(), &pinned, &now).expect("both are there").len(), 1);
        assert_eq!(undo(&scene, 200).turns.len(), 6);
        assert_eq!(fs::read(scene.path("file")).expect("there"), b"3");
        let mut work = Work::open(&project, &state).expect("opens");
        pin::unpin(&state, &work.store, "review").expect("let go");
        pin::unpin(&state, &work.store, "review").expect("not there");
        let now = work.look().expect("taken");
        work.forget(1, &now).expect("forgotten");
        assert!(matches!(compare(&work.store, &pinned, &now.id), Err(Error::Broken { .. })));
    }

    #[test]
    fn where_there_is_no_room_old_turns_make_some_and_what_is_not_kept_is_said() {
        let scene = Scene::new();
        let noise = |seed: u64| {
            (seed * 10_000..).flat_map(|n| *super::super::ObjectId::of(&n.to_le_bytes()).as_bytes()).take(100_000).collect::<Vec<u8>>()
        };
        let (project, state) = (scene.project(), scene.state());
        for n in 0..6 {
            let store = Store::bounded(&state, 400_000).expect("opens");
            let mut work = Work::with(&project, &state, store).expect("opens");
            let begun = work.begin("session", n, "").expect("begun");
            assert_eq!(begun.passed_over.n, 0, "turn {n}");
            scene.write("file", noise(n));
        }
        assert!(listed(&scene).len() < 6);
        scene.write("large", [noise(10), noise(11), noise(12), noise(13), noise(14)].concat());
        let store = Store::bounded(&state, 400_000).expect("opens");
        let begun = Work::with(&project, &state, store).expect("opens").begin("session", 7, "").expect("begun");
        assert_eq!(begun.passed_over.first[0].path, "large".into());
    }

    #[test]
    fn orders_from_afar_come_to_the_same() {
        let scene = Scene::new();
        let (project, state) = (scene.project(), scene.state());
        let begin = TurnOrder::Begin { session: "session".to_owned(), n_turn: 1, words: "do it".to_owned() };
        assert!(matches!(turn(&project, &state, &begin), Ok(TurnAnswer::Began(_))));
        scene.write("file", "1\n");
        assert!(matches!(turn(&project, &state, &TurnOrder::End), Ok(TurnAnswer::Ended(ended)) if ended.changes.n == 1));
        let ask = |undo: UndoOrder| {
            let text = serde_json::to_string(&undo).expect("plain data");
            assert_eq!(serde_json::from_str::<UndoOrder>(&text).expect("reads"), undo);
            let answer = order(&project, &state, &undo).expect("answered");
            let text = serde_json::to_string(&answer).expect("plain data");
            assert_eq!(serde_json::from_str::<UndoAnswer>(&text).expect("reads"), answer);
            answer
        };
        assert!(matches!(ask(UndoOrder::List), UndoAnswer::Turns(turns) if turns.turns.first[0].words == "do it"));
        assert!(matches!(ask(UndoOrder::Diff { n: 1 }), UndoAnswer::Differences { turns } if turns[0].text.ends_with("+1\n")));
        assert!(matches!(ask(UndoOrder::Back { n: 1, merge: false }), UndoAnswer::Undone(undone) if undone.n_forward == 1));
        assert!(matches!(ask(UndoOrder::Forward { n: 1, merge: false }), UndoAnswer::Undone(undone) if undone.n_back == 1));
        assert_eq!((ask(UndoOrder::Resume), ask(UndoOrder::Abandon)), (UndoAnswer::Nothing, UndoAnswer::Nothing));
    }

    #[test]
    fn what_is_lost_from_the_store_costs_the_turns_that_need_it_alone() {
        let scene = Scene::new();
        let (project, state) = (scene.project(), scene.state());
        take_turn(&scene, 1, || scene.write("file", "1"));
        begin(&project, &state, "session", 2, "").expect("begun");
        let objects = state.below("objects").expect("opens");
        for pack in objects.names().expect("listed") {
            objects.replace(&pack, b"zeros").expect("replaced");
        }
        scene.write("file", "2");
        assert_eq!(end(&project, &state).expect("ended").changes.n, 0);
        take_turn(&scene, 3, || scene.write("file", "3"));
        assert_eq!(numbers(&undo(&scene, 1)), (vec![3], 1, 1));
        assert_eq!(fs::read(scene.path("file")).expect("there"), b"2");
        assert!(matches!(back(&project, &state, 1, false), Err(Error::Broken { .. })));
        let mut work = Work::open(&project, &state).expect("opens");
        let now = work.look().expect("taken");
        work.forget(9, &now).expect("what is lost needs nothing");
    }
}
