use std::collections::BTreeSet;
use std::fs;
use std::fs::Permissions;
use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::sync::mpsc;
use std::thread;

use nix::unistd::AccessFlags;

use super::Error;
use super::Project;
use super::StateFolder;
use super::accepted_reviews;
use super::find;
use super::git;
use super::review;
use super::undo;
use crate::build::build_id;
use podbay_wire::PROTOCOL;
use podbay_wire::frame;
use podbay_wire::frame::MAX_FRAME;
use podbay_wire::keep::FindOrder;
use podbay_wire::keep::FindResult;
use podbay_wire::keep::FromKeeper;
use podbay_wire::keep::KeeperHello;
use podbay_wire::keep::Kept;
use podbay_wire::keep::Order;
use podbay_wire::keep::ReviewAnswer;
use podbay_wire::keep::ReviewOrder;
use podbay_wire::keep::ToKeeper;
use podbay_wire::keep::git_of_review;

/// Orders that wait while one is executed; the host gives one at a time.
const MOST_WAITING: usize = 4;

/// The folders that a keeper works on.
#[derive(Debug)]
pub(crate) struct Places {
    /// The project, `/workspace` in a sandbox.
    pub(crate) workspace: PathBuf,
    /// Where something is kept, `/keep/state` in a sandbox; a keeper that only looks does not even have
    /// the folder above.
    pub(crate) state: PathBuf,
    /// What a review's session works on, and what of it is that session's own; neither is there
    /// where nothing is reviewed.
    pub(crate) copy: PathBuf,
    pub(crate) upper: PathBuf,
    /// Where the folders for the copies to come are made.
    pub(crate) views: PathBuf,
    /// The git folder of that session, if it has one.
    pub(crate) git: PathBuf,
    /// Where repositories go that a session made, `/aside` in a sandbox; it is there only for those
    /// keepers that move some.
    pub(crate) aside: PathBuf,
    /// For what is needed meanwhile.
    pub(crate) scratch: PathBuf,
}

impl Places {
    /// Returns whether something can be kept; `None`: there is no place for it.
    fn keeps(&self) -> Option<bool> {
        let above = self.state.parent()?;
        fs::metadata(above)
            .is_ok()
            .then(|| nix::unistd::access(&self.state, AccessFlags::W_OK).is_ok())
    }

    fn open(&self) -> Result<(Project, StateFolder), String> {
        let project = Project::open(&self.workspace)
            .map_err(|error| format!("the project cannot be opened: {error}"))?;
        Ok((
            project,
            StateFolder::open(&self.state).map_err(|error| with_cause(&error))?,
        ))
    }

    /// Looks through what commands see: of a review that is the copy, in which a session has moved
    /// things, unless what the user did meanwhile is asked for.
    fn find(&self, order: &FindOrder) -> io::Result<FindResult> {
        if self.copy.is_dir() && !order.in_project {
            find::find_in_copy(&self.workspace, &self.copy, &self.upper, order)
        } else {
            find::find(&self.workspace, order, &BTreeSet::new())
        }
    }

    fn review(&self, order: &ReviewOrder) -> Result<ReviewAnswer, String> {
        if *order == ReviewOrder::Copy {
            let open = |path: &Path| {
                Project::open(path)
                    .map_err(|error| format!("{} cannot be opened: {error}", path.display()))
            };
            let copied = review::duplicate(&open(&self.workspace)?, &open(&self.upper)?);
            return copied
                .map(ReviewAnswer::Copied)
                .map_err(|error| with_cause(&error));
        }
        let (project, state) = self.open()?;
        let worked_on = |path: &Path| match Project::open(path) {
            Ok(folder) => Ok(Some(folder)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!(
                "what the session worked on cannot be opened: {error}"
            )),
        };
        let (copy, upper) = (worked_on(&self.copy)?, worked_on(&self.upper)?);
        let starts = self.state.join("git");
        if let Some(name) = order.name() {
            let is_there = review::is_on_record(&self.state, name);
            let noted = match order {
                ReviewOrder::Apply { .. }
                    if !is_there
                        && accepted_reviews::is_noted(&state, name)
                            .map_err(|error| with_cause(&error))? =>
                {
                    git::forget(&starts, &git_of_review(name))
                        .map_err(|fault| fault.to_string())?;
                    return undo::already_applied(&state, name).map_err(|error| with_cause(&error));
                }
                ReviewOrder::Apply { .. } | ReviewOrder::GitTaken { .. } if is_there => {
                    accepted_reviews::note(&state, name)
                }
                ReviewOrder::Discard { is_held, .. }
                    if !is_there
                        && !is_held
                        && !git::is_on_record(&starts, &git_of_review(name)) =>
                {
                    Err(Error::NoReview {
                        name: name.to_owned(),
                    })
                }
                ReviewOrder::Discard { .. } => accepted_reviews::forget(&state, name),
                _ => Ok(()),
            };
            noted.map_err(|error| with_cause(&error))?;
        }
        let git = order.name().and_then(|name| {
            let folder = Some(self.git.as_path()).filter(|folder| folder.is_dir());
            git::pending_git(&starts, folder, &git_of_review(name))
        });
        let obeyed = order.name().map_or_else(Vec::new, |name| {
            git::obeyed_paths_at_start(&starts, &git_of_review(name))
        });
        let seen = review::SessionView {
            copy: copy.as_ref(),
            upper: upper.as_ref(),
            git: git.as_ref(),
            obeyed: &obeyed,
        };
        let answer = review::order(&project, seen, &state, order);
        let mut answer = answer.map_err(|error| with_cause(&error))?;
        if let (ReviewOrder::Turn { turn, .. }, ReviewAnswer::Turn(ended)) = (order, &mut answer)
            && ended.needs_view(turn)
        {
            make_view(
                &self.workspace,
                &self.views.join(turn.next_view.to_string()),
            )?;
        }
        if let ReviewAnswer::Reviews { reviews } = &mut answer {
            for one in &mut reviews.first {
                git::remove_taken(&starts, &git_of_review(&one.name), &mut one.git);
            }
        }
        let goes_on = matches!(order, ReviewOrder::Turn { .. });
        if let Some(name) = order
            .name()
            .filter(|name| !goes_on && !review::is_on_record(&self.state, name))
        {
            // It is over.
            git::forget(&starts, &git_of_review(name)).map_err(|fault| fault.to_string())?;
        }
        Ok(answer)
    }
}

/// Makes the folders in which the kernel puts what is changed in the next copy.
fn make_view(project: &Path, view: &Path) -> Result<(), String> {
    let failed = |error: io::Error| format!("the folders of the next copy cannot be made: {error}");
    let made = |folder: PathBuf| match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    };
    made(view.to_owned())
        .and_then(|()| made(view.join("up")))
        .and_then(|()| made(view.join("wk")))
        .map_err(failed)?;
    // The copy's own folder is this one.
    let mode = fs::metadata(project).map_err(failed)?.mode() & 0o777;
    fs::set_permissions(view.join("up"), Permissions::from_mode(mode)).map_err(failed)
}

/// Executes orders, one after the other, until the input ends; then `at_end` is called at once,
/// on another thread.
pub(crate) fn run(
    places: &Places,
    input: impl Read + Send + 'static,
    mut output: impl Write,
    at_end: impl FnOnce() + Send + 'static,
) -> io::Result<()> {
    let workspace = fs::metadata(&places.workspace)?;
    let hello = KeeperHello {
        protocol: PROTOCOL,
        build: build_id(),
        workspace: (workspace.dev(), workspace.ino()),
        keeps: places.keeps(),
        copy: review::seen(&places.workspace, &places.copy, &places.upper),
    };
    send(&mut output, &FromKeeper::Hello(hello))?;
    let orders = read_aside(input, at_end)?;
    match orders.recv() {
        Ok(Ok(ToKeeper::Hello { protocol, build }))
            if protocol == PROTOCOL && build == build_id() => {}
        Ok(Ok(_)) => return close(output, "the host is of another build than this keeper"),
        Ok(Err(error)) => return close(output, &error.to_string()),
        Err(_) => return Ok(()),
    }
    for order in orders {
        match order {
            Ok(ToKeeper::Order { id, order }) => send(
                &mut output,
                &FromKeeper::Done {
                    id,
                    kept: carry_out(places, &order),
                },
            )?,
            Ok(ToKeeper::Hello { .. }) => return close(output, "a second hello came"),
            Err(error) => return close(output, &error.to_string()),
        }
    }
    Ok(())
}

fn carry_out(places: &Places, order: &Order) -> Kept {
    let (doing, done) = match order {
        Order::Find(order) => (
            "look through the project",
            places
                .find(order)
                .map(Kept::Found)
                .map_err(|error| error.to_string()),
        ),
        Order::Turn { order } => ("keep how the project's files are", {
            let turn = |(project, state): (Project, StateFolder)| {
                undo::turn(&project, &state, order).map_err(|error| with_cause(&error))
            };
            places.open().and_then(turn).map(|answer| Kept::Turn {
                answer: Box::new(answer),
            })
        }),
        Order::Undo { order } => ("look at what was kept, or bring it back", {
            let undo = |(project, state): (Project, StateFolder)| {
                undo::order(&project, &state, order).map_err(|error| with_cause(&error))
            };
            places.open().and_then(undo).map(|answer| Kept::Undo {
                answer: Box::new(answer),
            })
        }),
        Order::Review { order } => (
            "look after what is to be reviewed",
            places.review(order).map(|answer| Kept::Review {
                answer: Box::new(answer),
            }),
        ),
        Order::Git { order } => ("look after the project's repositories", {
            let folders = git::KeeperFolders {
                project: &places.workspace,
                state: &places.state,
                aside: &places.aside,
                scratch: &places.scratch,
            };
            let done = git::execute(&folders, order).map_err(|fault| fault.to_string());
            done.map(|answer| Kept::Git {
                answer: Box::new(answer),
            })
        }),
    };
    let mut kept = done.unwrap_or_else(|problem| Kept::Failed {
        doing: doing.to_owned(),
        problem,
    });
    // Whatever there is, the answer goes in one frame.
    kept.fit();
    kept
}

fn with_cause(error: &Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

/// Reads what comes on a thread of its own: when the host is gone the keeper must end at once,
/// whatever it is at. All that it does can be interrupted at any point.
fn read_aside(
    mut input: impl Read + Send + 'static,
    at_end: impl FnOnce() + Send + 'static,
) -> io::Result<mpsc::Receiver<io::Result<ToKeeper>>> {
    let (sender, receiver) = mpsc::sync_channel(MOST_WAITING);
    let read = move || {
        loop {
            let next = receive(&mut input).transpose();
            let is_last = !matches!(next, Some(Ok(_)));
            if next.is_none_or(|next| sender.send(next).is_err()) || is_last {
                return at_end();
            }
        }
    };
    thread::Builder::new()
        .name("podbay-orders".to_owned())
        .spawn(read)?;
    Ok(receiver)
}

/// Reads one frame; `None`: the input has ended.
fn receive(input: &mut impl Read) -> io::Result<Option<ToKeeper>> {
    let mut length = [0; 4];
    match input.read_exact(&mut length) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let length = u32::from_be_bytes(length) as usize;
    if length > MAX_FRAME {
        return Err(io::Error::other(frame::Error::TooLong { bytes: length }));
    }
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes)?;
    frame::decode(&bytes).map(Some).map_err(io::Error::other)
}

fn send(output: &mut impl Write, message: &FromKeeper) -> io::Result<()> {
    let bytes = match (frame::encode(message), message) {
        (Err(error), FromKeeper::Done { id, .. }) => {
            // Whoever waits for the answer must get one.
            let kept = Kept::Failed {
                doing: "send the answer".to_owned(),
                problem: error.to_string(),
            };
            frame::encode(&FromKeeper::Done { id: *id, kept })
        }
        (encoded, _) => encoded,
    };
    let bytes = bytes.map_err(io::Error::other)?;
    output.write_all(&(bytes.len() as u32).to_be_bytes())?;
    output.write_all(&bytes)?;
    output.flush()
}

fn close(mut output: impl Write, reason: &str) -> io::Result<()> {
    send(
        &mut output,
        &FromKeeper::Closing {
            reason: reason.to_owned(),
        },
    )
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;
    use podbay_wire::BytesPath;
    use podbay_wire::keep::UndoOrder;

    fn framed(messages: &[ToKeeper]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for message in messages {
            let json = frame::encode(message).expect("short");
            bytes.extend((json.len() as u32).to_be_bytes());
            bytes.extend(json);
        }
        bytes
    }

    #[test]
    fn what_the_person_did_is_looked_for_in_the_project_and_all_else_in_the_copy() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        for (name, secret) in [
            ("project", ".env.persons"),
            ("copy", ".env.sessions"),
            ("upper", ".env.sessions"),
        ] {
            fs::create_dir(at(name)).expect("made");
            fs::write(at(name).join(secret), "A=1").expect("written");
        }
        let places = Places {
            workspace: at("project"),
            state: at("no/state"),
            copy: at("copy"),
            upper: at("upper"),
            views: at("no"),
            git: at("no"),
            aside: at("no/aside"),
            scratch: at("no/scratch"),
        };
        let found = |in_project| -> Vec<String> {
            let found = places
                .find(&FindOrder {
                    budget_ms: 10_000,
                    in_project,
                    ..FindOrder::default()
                })
                .expect("looked");
            found
                .secrets
                .iter()
                .map(|secret| secret.path.to_text())
                .collect()
        };
        assert_eq!(
            (found(true), found(false)),
            (
                vec![".env.persons".to_owned()],
                vec![".env.sessions".to_owned()]
            )
        );
    }

    fn answers(input: Vec<u8>) -> Vec<FromKeeper> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::write(folder.path().join(".env"), "A=1").expect("written");
        let mut output = Vec::new();
        let at = |name: &str| folder.path().join(name);
        let places = Places {
            workspace: at(""),
            state: at("no/state"),
            copy: at("no"),
            upper: at("no"),
            views: at("no"),
            git: at("no"),
            aside: at("no/aside"),
            scratch: at("no/scratch"),
        };
        run(&places, Cursor::new(input), &mut output, || {}).expect("served");
        let mut rest = output.as_slice();
        let mut answers = Vec::new();
        while let Some((length, tail)) = rest.split_first_chunk() {
            let (json, tail) = tail.split_at(u32::from_be_bytes(*length) as usize);
            answers.push(frame::decode(json).expect("a message"));
            rest = tail;
        }
        answers
    }

    fn hello() -> ToKeeper {
        ToKeeper::Hello {
            protocol: PROTOCOL,
            build: build_id(),
        }
    }

    fn order(id: u32) -> ToKeeper {
        ToKeeper::Order {
            id,
            order: Order::Find(FindOrder {
                budget_ms: 10_000,
                ..FindOrder::default()
            }),
        }
    }

    #[test]
    fn orders_are_answered_in_their_order_until_the_input_ends() {
        let answers = answers(framed(&[hello(), order(7), order(8)]));
        assert!(matches!(answers[0], FromKeeper::Hello(_)), "{answers:?}");
        for (answer, expected) in answers[1..].iter().zip([7, 8]) {
            let FromKeeper::Done {
                id,
                kept: Kept::Found(found),
            } = answer
            else {
                panic!("{answer:?}")
            };
            assert!(*id == expected && found.secrets.len() == 1, "{answer:?}");
        }
        assert_eq!(answers.len(), 3);
    }

    #[test]
    fn what_is_in_is_told_from_what_was_taken_back_and_what_nobody_knows() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let at = |name: &str| folder.path().join(name);
        let (workspace, state, copy) = (at("workspace"), at("state"), at("copy"));
        for path in [&workspace, &state, &copy] {
            fs::create_dir(path).expect("made");
        }
        let places = Places {
            workspace,
            state,
            copy,
            upper: at("no"),
            views: at("no"),
            git: at("no"),
            aside: at("no"),
            scratch: at("no"),
        };
        let name = || "s".to_owned();
        let apply = || ReviewOrder::Apply {
            name: name(),
            only: Vec::new(),
            merge: false,
            with_auto_run: false,
            auto_run: Vec::new(),
            hunks: Vec::new(),
        };
        let make = || {
            places
                .review(&ReviewOrder::Begin {
                    name: name(),
                    words: String::new(),
                    is_copied: false,
                    place: BytesPath::default(),
                    by_turn: false,
                })
                .expect("begun");
            fs::write(places.copy.join("made.txt"), "1").expect("written");
            places
                .review(&ReviewOrder::End {
                    name: name(),
                    auto_run: Vec::new(),
                })
                .expect("ended");
        };
        make();
        assert!(matches!(
            places.review(&apply()),
            Ok(ReviewAnswer::Applied(_))
        ));
        assert_eq!(
            fs::read(places.workspace.join("made.txt")).expect("read"),
            b"1"
        );
        // As after a command that was killed before the volumes were gone.
        assert_eq!(
            places.review(&apply()),
            Ok(ReviewAnswer::InAlready {
                is_taken_back: false,
                has_redo: false
            })
        );
        assert_eq!(
            places.review(&apply()),
            Ok(ReviewAnswer::InAlready {
                is_taken_back: false,
                has_redo: false
            })
        );
        // Undone it is in no longer.
        let (project, kept) = places.open().expect("opens");
        undo::order(
            &project,
            &kept,
            &UndoOrder::Back {
                n: 1,
                merge: false,
                is_beside: false,
            },
        )
        .expect("undone");
        assert_eq!(
            places.review(&apply()),
            Ok(ReviewAnswer::InAlready {
                is_taken_back: true,
                has_redo: true
            })
        );
        // What was dropped is not in, and neither is what nobody remembers.
        assert!(!places.workspace.join("made.txt").exists());
        make();
        let discard = |is_held: bool| {
            places.review(&ReviewOrder::Discard {
                name: name(),
                is_held,
            })
        };
        assert_eq!(discard(true), Ok(ReviewAnswer::Discarded));
        let told = places.review(&apply()).expect_err("it is gone");
        assert!(told.contains("no such review"), "{told}");
        // Its volumes may be all that is left of one, and what is on record as well; of what is
        // neither nothing can be dropped.
        assert_eq!(discard(true), Ok(ReviewAnswer::Discarded));
        make();
        assert_eq!(discard(false), Ok(ReviewAnswer::Discarded));
        let starts = places.state.join("git");
        fs::create_dir_all(&starts).expect("made");
        let start = r#"{"version":1,"found":{"repositories":[],"whole":true},"repositories":[]}"#;
        fs::write(starts.join("s-review.json"), start).expect("written");
        assert_eq!(discard(false), Ok(ReviewAnswer::Discarded));
        let told = discard(false).expect_err("it is gone");
        assert!(told.contains("no such review: `s`"), "{told}");
        make();
        assert!(matches!(
            places.review(&apply()),
            Ok(ReviewAnswer::Applied(_))
        ));
        discard(false).expect_err("it is in, and nothing was dropped");
        assert!(matches!(
            places.review(&apply()),
            Ok(ReviewAnswer::InAlready { .. })
        ));
    }

    #[test]
    fn what_no_host_of_this_build_says_closes_the_line() {
        let other = ToKeeper::Hello {
            protocol: PROTOCOL,
            build: "other".to_owned(),
        };
        for (input, words) in [
            (framed(&[other]), "another build"),
            (framed(&[order(1)]), "another build"),
            (framed(&[hello(), hello()]), "second hello"),
            (u32::MAX.to_be_bytes().to_vec(), "over the limit"),
            (
                [framed(&[hello()]), vec![0, 0, 0, 2, b'{', b'}']].concat(),
                "not what the protocol says",
            ),
            (
                [framed(&[hello()]), vec![0, 0, 0, 9, b'{']].concat(),
                "fill whole buffer",
            ),
        ] {
            let answers = answers(input);
            assert!(
                matches!(answers.last(), Some(FromKeeper::Closing { reason }) if reason.contains(words)),
                "{answers:?}"
            );
        }
        assert_eq!(answers(Vec::new()).len(), 1);
    }
}
