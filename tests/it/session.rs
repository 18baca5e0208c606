use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;

use insta::assert_snapshot;
use podbay::event::ByteSize;
use podbay::event::CallStatus;
use podbay::event::Capability;
use podbay::event::Event;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::event::ToolCall;
use podbay::event::Usage;
use podbay::session;
use podbay::session::Artifacts;
use podbay::session::Error;
use podbay::session::Log;
use podbay::session::LogRepair;
use podbay::session::Options;
use podbay::session::State;
use podbay::wire::WriteChange;
use tempfile::TempDir;

struct Home {
    state: State,
    _temp: TempDir,
}

impl Home {
    fn new() -> Self {
        let temp = tempfile::tempdir().expect("a folder");
        let state = State::open(&temp.path().join("state")).expect("opens");
        Self { state, _temp: temp }
    }

    fn log(&self, at: &str, id: &str, task: Option<&str>) -> Log {
        Log::create(
            &self.state,
            &header(at, id, task),
            &Options::default(),
            None,
        )
        .expect("a new log")
    }

    /// A log whose end is as a fixture has it.
    fn fixture(&self, name: &str) -> PathBuf {
        let to = self.state.sessions().join("2026-11-21_abcdefghjkmn.jsonl");
        fs::copy(fixture(name), &to).expect("the fixture is there");
        fs::set_permissions(&to, fs::Permissions::from_mode(0o600)).expect("ours");
        to
    }
}

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/it/fixtures/sessions")
        .join(name)
}

fn at(time: &str, kind: Kind) -> Event {
    Event {
        at: time.parse().expect("a time"),
        kind,
    }
}

fn header(time: &str, id: &str, task: Option<&str>) -> Event {
    at(
        time,
        Kind::SessionStarted {
            version: 2,
            session: id.parse().expect("an id"),
            podbay: "0.1.0".into(),
            project: "/home/demo".into(),
            mode: "auto".into(),
            task: task.map(str::to_owned),
        },
    )
}

fn said(text: &str) -> Event {
    at(
        "2026-11-21T10:00:01Z",
        Kind::UserMessage {
            text: text.into(),
            images: 0,
        },
    )
}

fn finished(status: RunStatus) -> Event {
    at(
        "2026-11-21T10:05:00Z",
        Kind::RunFinished {
            status,
            exit_code: 0,
            response: "done".into(),
            turns: 2,
            tool_calls: 1,
            usage: Usage {
                prompt: 900,
                cached: 800,
                completion: 100,
                cost_usd: None,
            },
            limit: None,
            error: None,
            duration_ms: 61_500,
        },
    )
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("is there").permissions().mode() & 0o777
}

fn chain(error: &Error) -> String {
    let mut text = format!("error: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text += &format!("\ncaused by: {cause}");
        source = cause.source();
    }
    if let Some(hint) = error.hint() {
        text += &format!("\nhint: {hint}");
    }
    text
}

#[test]
fn a_secret_is_hidden_from_the_first_record_on() {
    let home = Home::new();
    let secret = podbay::event::Secret::new("sk-proj/Ab+9");
    let task = Some("use the key sk-proj/Ab+9 for it");
    let mut log = Log::create(
        &home.state,
        &header("2026-11-21T10:00:00Z", "abc", task),
        &Options::default(),
        Some(&secret),
    )
    .expect("a log");
    log.append(&said("it is sk-proj/Ab+9")).expect("written");
    log.sync().expect("on the disk");
    for file in [log.path().to_owned(), home.state.events()] {
        let text = std::fs::read_to_string(&file).expect("there");
        assert!(
            !text.contains("Ab+9")
                && text.contains("use the key *** for it")
                && text.contains("it is ***"),
            "{}: {text}",
            file.display()
        );
    }
}

#[test]
fn a_log_holds_the_durable_events_and_nobody_else_may_read_it() {
    let home = Home::new();
    let mut log = home.log(
        "2026-11-21T10:00:00Z",
        "abcdefghjkmn",
        Some("fix \u{9b}2J it"),
    );
    log.append(&said("hello")).expect("writes");
    log.append(&at(
        "2026-11-21T10:00:02Z",
        Kind::TextDelta {
            text: "not kept".into(),
        },
    ))
    .expect("is passed over");
    log.sync().expect("syncs");
    let text = fs::read_to_string(log.path()).expect("reads");
    assert_snapshot!(text, @r#"
    {"type":"session_started","at":"2026-11-21T10:00:00Z","version":2,"session":"abcdefghjkmn","podbay":"0.1.0","project":"/home/demo","mode":"auto","task":"fix \u009b2J it"}
    {"type":"user_message","at":"2026-11-21T10:00:01Z","text":"hello"}
    "#);
    assert!(
        log.path()
            .ends_with("sessions/2026-11-21_abcdefghjkmn.jsonl")
    );
    let journal = text.replace(
        "{\"type\":\"user_message\"",
        "{\"session\":\"abcdefghjkmn\",\"type\":\"user_message\"",
    );
    assert_eq!(
        fs::read_to_string(home.state.events()).expect("reads"),
        journal,
        "the journal has the same lines, each with its session"
    );
    for folder in [
        home.state.root(),
        &home.state.sessions(),
        &home.state.locks(),
        &home.state.models(),
        &home.state.run(),
    ] {
        assert_eq!(mode(folder), 0o700, "{}", folder.display());
    }
    assert_eq!(
        (mode(log.path()), mode(&home.state.events())),
        (0o600, 0o600)
    );
}

#[test]
fn a_log_begins_with_a_header_and_never_overwrites_another() {
    let home = Home::new();
    let error = Log::create(&home.state, &said("hello"), &Options::default(), None)
        .err()
        .expect("refused");
    assert_snapshot!(error, @"start the session log: its first record must be `session_started` of version 2, not another event");
    drop(home.log("2026-11-21T10:00:00Z", "abc", None));
    let again = Log::create(
        &home.state,
        &header("2026-11-21T11:00:00Z", "abc", None),
        &Options::default(),
        None,
    );
    assert!(matches!(again, Err(Error::Io { action: "make", .. })));
}

#[test]
fn a_state_folder_that_is_a_link_is_refused_and_an_open_one_is_closed() {
    let temp = tempfile::tempdir().expect("a folder");
    let (real, link) = (temp.path().join("real"), temp.path().join("link"));
    fs::create_dir(&real).expect("makes");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o755)).expect("sets");
    symlink(&real, &link).expect("links");
    let error = State::open(&link).expect_err("refused");
    let shown = chain(&error).replace(&*temp.path().to_string_lossy(), "TEMP");
    assert_snapshot!(shown, @"
    error: use the state folder `TEMP/link`: it is a link
    hint: the state folder must be a real folder that you own; move `TEMP/link` away, or set PODBAY_HOME
    ");
    State::open(&real).expect("opens");
    assert_eq!(mode(&real), 0o700);
    fs::remove_dir_all(real.join("sessions")).expect("removes");
    symlink(temp.path(), real.join("sessions")).expect("links");
    assert!(
        matches!(State::open(&real), Err(Error::Unsafe { .. })),
        "a part that is a link is refused too"
    );
    fs::write(temp.path().join("file"), "").expect("writes");
    assert!(matches!(
        State::open(&temp.path().join("file")),
        Err(Error::Unsafe { .. })
    ));
}

#[test]
fn a_state_folder_of_another_user_is_refused() {
    let temp = tempfile::tempdir().expect("a folder");
    let (ours, theirs) = (temp.path().join("ours"), temp.path().join("theirs"));
    fs::create_dir(&theirs).expect("makes");
    let other = if nix::unistd::geteuid().is_root() {
        std::os::unix::fs::chown(&theirs, Some(4242), Some(4242)).expect("root may give it away");
        theirs
    } else {
        // The root folder is another user's for everyone but root.
        PathBuf::from("/")
    };
    assert!(
        matches!(State::open(&other), Err(Error::Unsafe { what, .. }) if what.contains("owned by uid"))
    );
    State::open(&ours).expect("our own opens");
}

#[track_caller]
fn check_reading(name: &str, kinds: &[&str], problems: &[(u64, &str)]) {
    let records = session::read(&fixture(name)).expect("reads");
    let read: Vec<String> = records
        .events
        .iter()
        .map(|event| {
            serde_json::to_value(event).expect("is JSON")["type"]
                .as_str()
                .expect("has a type")
                .to_owned()
        })
        .collect();
    let told: Vec<(u64, &str)> = records
        .problems
        .iter()
        .map(|problem| (problem.line, problem.what.as_str()))
        .collect();
    assert_eq!(
        (read.iter().map(String::as_str).collect::<Vec<_>>(), told),
        (kinds.to_vec(), problems.to_vec())
    );
}

#[test]
fn damaged_logs_give_what_is_whole_and_say_what_is_not() {
    let all = [
        "session_started",
        "user_message",
        "call_started",
        "call_finished",
    ];
    check_reading("torn.jsonl", &all, &[(5, "a torn last record")]);
    check_reading(
        "zeros.jsonl",
        &all,
        &[(3, "a block of zero bytes"), (5, "a block of zero bytes")],
    );
    check_reading("fused.jsonl", &all, &[(3, "a damaged record")]);
    check_reading(
        "2026-11-21_headless2345.jsonl",
        &["user_message"],
        &[(1, "a damaged record")],
    );
    let headless = session::read(&fixture("2026-11-21_headless2345.jsonl")).expect("reads");
    assert_eq!(
        (headless.session.as_str(), headless.header),
        ("headless2345", None),
        "the file's name says whose it is"
    );
}

#[test]
fn a_newer_log_is_read_as_far_as_its_format_is_known() {
    let newer = "a record `call_finished` that does not read: unknown variant `paused`, expected one of `ok`, `failed`, `conflict`, `timed_out`, `invalid`, `denied`, `cancelled`";
    check_reading(
        "newer_kinds.jsonl",
        &[
            "session_started",
            "user_message",
            "call_started",
            "unknown",
            "unknown",
        ],
        &[(5, newer)],
    );
    let error = session::read(&fixture("newer_version.jsonl")).expect_err("refused");
    assert!(matches!(error, Error::OtherVersion { version: 3, .. }));
    assert_eq!(
        error.hint().as_deref(),
        Some("a newer Podbay wrote it: update Podbay")
    );
    assert!(matches!(
        session::read(&fixture("empty.jsonl")),
        Err(Error::NoRecords { .. })
    ));
}

#[test]
fn a_resumed_log_is_repaired_before_anything_is_appended() {
    for (name, problems) in [("torn.jsonl", 1), ("zeros.jsonl", 2), ("fused.jsonl", 1)] {
        let home = Home::new();
        let path = home.fixture(name);
        let before = fs::read(&path).expect("reads");
        let (mut log, records, repair) =
            Log::resume(&home.state, &path, &Options::default()).expect("resumes");
        assert_eq!(
            (records.events.len(), records.problems.len()),
            (4, problems),
            "{name}"
        );
        log.append(&said("continue")).expect("writes");
        drop(log);
        let after = session::read(&path).expect("reads");
        assert_eq!(after.events.len(), 5, "{name}");
        assert_eq!(after.events[4], said("continue"));
        if let Some(LogRepair::Cut { bytes, kept }) = repair {
            let kept = fs::read(kept).expect("what was cut is kept");
            assert_eq!(
                kept,
                [&before[before.len() - bytes as usize..], b"\n"].concat(),
                "{name}"
            );
        } else {
            assert_eq!(name, "fused.jsonl");
        }
    }
}

#[test]
fn one_process_alone_writes_a_log() {
    let home = Home::new();
    let log = home.log("2026-11-21T10:00:00Z", "abc", None);
    let path = log.path().to_owned();
    let again = Log::resume(&home.state, &path, &Options::default());
    assert!(matches!(again, Err(Error::Busy { .. })));
    assert_eq!(
        session::read(&path)
            .expect("reading needs no lock")
            .events
            .len(),
        1
    );
    drop(log);
    Log::resume(&home.state, &path, &Options::default()).expect("it can be resumed");
}

/// A list holds a log for a moment, and so does a process that is starting a program.
#[test]
fn a_log_that_is_held_for_a_moment_is_waited_for() {
    let home = Home::new();
    let log = home.log("2026-11-21T10:00:00Z", "abc", None);
    let path = log.path().to_owned();
    drop(log);
    let held = fs::File::open(&path).expect("opens");
    held.lock_shared().expect("is held");
    let listing = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(20));
        drop(held);
    });
    Log::resume(&home.state, &path, &Options::default()).expect("it can be resumed");
    listing.join().expect("ends");
}

#[test]
fn a_whole_last_record_without_its_newline_is_not_cut() {
    let home = Home::new();
    let path = home.fixture("torn.jsonl");
    let text = fs::read_to_string(&path).expect("reads");
    fs::write(&path, text.rsplit_once('\n').expect("has lines").0).expect("writes");
    assert_eq!(
        session::repair_tail(&path).expect("repairs"),
        Some(LogRepair::Ended)
    );
    assert_eq!(session::repair_tail(&path).expect("looks"), None);
    assert_eq!(session::read(&path).expect("reads").problems, []);
}

#[test]
fn a_log_of_a_newer_format_is_not_touched_by_a_resume() {
    let home = Home::new();
    let path = home.fixture("newer_version.jsonl");
    let before = fs::read(&path).expect("reads");
    assert!(matches!(
        Log::resume(&home.state, &path, &Options::default()),
        Err(Error::OtherVersion { .. })
    ));
    assert_eq!(fs::read(&path).expect("reads"), before);
}

#[test]
fn sessions_are_listed_newest_first_from_head_and_tail() {
    let home = Home::new();
    let mut chat = home.log("2026-11-21T10:00:00Z", "chatchatchat", None);
    chat.append(&said("\n  hello there\nsecond line"))
        .expect("writes");
    let mut done = home.log("2026-11-21T12:00:00Z", "donedonedone", Some("fix the test"));
    // The middle is large: it is never read.
    for _ in 0..40 {
        done.append(&said(&"x".repeat(10_000))).expect("writes");
    }
    done.append(&finished(RunStatus::Completed))
        .expect("writes");
    let mut again = home.log("2026-11-20T12:00:00Z", "againagainag", Some("an older one"));
    again
        .append(&finished(RunStatus::Completed))
        .expect("writes");
    again.append(&said("continue")).expect("writes");
    fs::write(
        home.state.sessions().join("2026-11-21_emptyemptyem.jsonl"),
        "",
    )
    .expect("writes");
    fs::write(home.state.sessions().join("notes.txt"), "").expect("writes");
    let listed = session::list(&home.state, 20).expect("lists");
    assert_eq!(
        listed.passed_over,
        [format!(
            "{}: it is empty",
            home.state
                .sessions()
                .join("2026-11-21_emptyemptyem.jsonl")
                .display()
        )]
    );
    let list = listed.sessions;
    let shown: Vec<String> = list
        .iter()
        .map(|one| {
            format!(
                "{} {} {:?} {:?} {:?} {:?}",
                one.session, one.started, one.title, one.status, one.turns, one.tool_calls
            )
        })
        .collect();
    assert_snapshot!(shown.join("\n"), @r#"
    donedonedone 2026-11-21T12:00:00Z "fix the test" Some(Completed) Some(2) Some(1)
    chatchatchat 2026-11-21T10:00:00Z "hello there" None Some(0) Some(0)
    againagainag 2026-11-20T12:00:00Z "an older one" None Some(0) Some(0)
    "#);
}

#[test]
fn a_log_that_was_copied_by_hand_is_listed_by_the_name_that_finds_it() {
    let home = Home::new();
    let mut log = home.log("2026-11-21T10:00:00Z", "abcdefghjkmn", Some("work"));
    log.append(&said("hello")).expect("writes");
    drop(log);
    let found = session::find(&home.state, "abcdefghjkmn").expect("finds");
    fs::copy(
        &found.path,
        home.state.sessions().join("2026-11-21_bcdefghjkmnp.jsonl"),
    )
    .expect("copies");
    let listed = || session::list(&home.state, 20).expect("lists").sessions;
    let mut ids: Vec<String> = listed().iter().map(|one| one.session.to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["abcdefghjkmn", "bcdefghjkmnp"]);
    session::remove(&home.state, &found).expect("removes");
    let left: Vec<String> = listed().iter().map(|one| one.session.to_string()).collect();
    assert_eq!(left, ["bcdefghjkmnp"]);
    assert!(session::find(&home.state, &left[0]).is_ok());
}

#[test]
fn a_list_reads_no_more_than_it_shows() {
    let home = Home::new();
    for n in 0..9 {
        drop(home.log(
            &format!("2026-11-2{}T1{n}:00:00Z", n / 3),
            &format!("abcdefghjkm{n}"),
            Some("work"),
        ));
    }
    let ids = |most| {
        session::list(&home.state, most)
            .expect("lists")
            .sessions
            .iter()
            .map(|one| one.session.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(ids(2), ["abcdefghjkm8", "abcdefghjkm7"]);
    assert_eq!(
        ids(4),
        [
            "abcdefghjkm8",
            "abcdefghjkm7",
            "abcdefghjkm6",
            "abcdefghjkm5"
        ]
    );
    assert_eq!((ids(0).len(), ids(100).len()), (0, 9));
    // Of days that are not shown nothing is read.
    let accessed = |path: &Path| {
        fs::metadata(path)
            .expect("there")
            .accessed()
            .expect("a time")
    };
    let old = session::find(&home.state, "abcdefghjkm0")
        .expect("finds")
        .path;
    let at = std::time::SystemTime::UNIX_EPOCH;
    fs::File::options()
        .append(true)
        .open(&old)
        .and_then(|file| file.set_times(fs::FileTimes::new().set_accessed(at)))
        .expect("ours");
    ids(3);
    assert_eq!(accessed(&old), at);
}

#[test]
fn a_log_whose_first_line_is_no_text_hides_no_other_and_says_what_is_wrong() {
    let home = Home::new();
    let mut good = home.log("2026-11-21T10:00:00Z", "abcdefghjkmn", Some("work"));
    good.append(&said("hello")).expect("writes");
    drop(good);
    let text = fs::read(
        session::find(&home.state, "abcdefghjkmn")
            .expect("finds")
            .path,
    )
    .expect("reads");
    let put = |id: &str, bytes: &[u8]| {
        let path = home.state.sessions().join(format!("2026-11-21_{id}.jsonl"));
        fs::write(&path, bytes).expect("writes");
        path
    };
    let headless = put("headlesshead", &[b"\xff\xfe", &text[10..]].concat());
    let binary = put(
        "binarybinary",
        &[
            (128..=255).cycle().take(5000).collect::<Vec<u8>>(),
            b"\n".to_vec(),
        ]
        .concat(),
    );
    let late = String::from_utf8(text.clone())
        .expect("text")
        .replace("abcdefghjkmn", "latelatelate")
        .replace("2026-11-21T", "9999-12-31T");
    let late = put("latelatelate", late.as_bytes());
    let listed = session::list(&home.state, 20).expect("lists");
    assert_eq!(
        listed
            .sessions
            .iter()
            .map(|one| one.session.as_str())
            .collect::<Vec<_>>(),
        ["abcdefghjkmn"]
    );
    let said = |path: &Path, what: &str| {
        listed
            .passed_over
            .iter()
            .any(|one| one.starts_with(&format!("{}: {what}", path.display())))
    };
    assert!(
        said(&headless, "line 1: a damaged record") && said(&binary, "line 1: a damaged record"),
        "{listed:?}"
    );
    assert!(
        said(&late, "line 1: no event: ") && listed.passed_over.len() == 3,
        "{listed:?}"
    );
    let records = session::read(&headless).expect("reads what is whole");
    assert_eq!(
        (
            records.header.is_none(),
            records.events.len(),
            records.problems[0].line
        ),
        (true, 1, 1)
    );
    for path in [&binary, &late] {
        let error = session::read(path).expect_err("no session");
        assert!(
            error.to_string().contains(&format!(
                "read `{}`: it holds no session (line 1: ",
                path.display()
            )),
            "{error}"
        );
        assert!(
            error
                .hint()
                .expect("a remedy")
                .contains("`podbay sessions rm "),
            "{error}"
        );
    }
    assert_eq!(
        session::prune(
            &home.state,
            &Options::default(),
            std::time::SystemTime::now()
        )
        .expect("prunes"),
        []
    );
    let keep = Options {
        keep_sessions: 1,
        ..Options::default()
    };
    assert_eq!(
        session::prune(&home.state, &keep, std::time::SystemTime::now())
            .expect("prunes")
            .len(),
        3,
        "by their times alone"
    );
}

#[test]
fn times_of_far_away_years_are_times() {
    let home = Home::new();
    for (id, first) in [
        ("farfarfarfar", "9999-12-30T22:00:00Z"),
        ("agoagoagoago", "-009999-01-02T01:59:59Z"),
        ("zerozerozero", "1970-01-01T00:00:00Z"),
    ] {
        let mut log = home.log(first, id, Some("work"));
        for time in ["-009999-01-02T01:59:59Z", "9999-12-30T22:00:00Z"] {
            log.append(&at(
                time,
                Kind::UserMessage {
                    text: "hello".into(),
                    images: 0,
                },
            ))
            .expect("writes");
        }
        log.append(&finished(RunStatus::Completed)).expect("writes");
        drop(log);
        let path = session::find(&home.state, id).expect("finds").path;
        let records = session::read(&path).expect("reads");
        assert_eq!((records.events.len(), records.problems.len()), (4, 0));
        assert!(session::show(&records).contains("hello"));
    }
    let listed = session::list(&home.state, 20).expect("lists");
    let ids: Vec<&str> = listed
        .sessions
        .iter()
        .map(|one| one.session.as_str())
        .collect();
    assert_eq!(
        (ids.len(), ids[0], listed.passed_over.len()),
        (3, "farfarfarfar", 0)
    );
}

#[test]
fn what_is_passed_over_on_the_way_to_the_latest_session_is_said() {
    let home = Home::new();
    let at = |path: &Path, age: u64| {
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options()
            .append(true)
            .open(path)
            .and_then(|file| file.set_modified(time))
            .expect("ours");
    };
    let file = |name: &str, text: &str| {
        let path = home.state.sessions().join(name);
        fs::write(&path, text).expect("written");
        path
    };
    at(&file("2026-11-21_emptyemptyem.jsonl", ""), 10);
    let newer = r#"{"type":"session_started","at":"2026-11-21T10:00:00Z","version":9,"session":{"id":"x"},"where":"/home/demo"}"#;
    at(
        &file("2026-11-21_newernewerne.jsonl", &format!("{newer}\n")),
        20,
    );
    at(&file("2026-11-21_foreignforei.jsonl", "hello\n"), 30);
    symlink(
        "/dev/null",
        home.state.sessions().join("2026-11-21_linkedlinked.jsonl"),
    )
    .expect("linked");
    let error = session::find_latest(&home.state, "/home/demo").expect_err("none");
    let said = chain(&error);
    for words in [
        "there is none that can be read",
        "it is a symbolic link",
        "it is empty",
        "a newer Podbay wrote it, in format 9",
        "and 1 more",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let anywhere = chain(&session::find(&home.state, "last").expect_err("none"));
    assert!(
        anywhere.contains("there is none that can be read; passed over: "),
        "{anywhere}"
    );
    drop(home.log("2026-11-20T10:00:00Z", "abcdefghjkmn", None));
    let path = session::find(&home.state, "abcdefghjkmn")
        .expect("finds")
        .path;
    at(&path, 15);
    let latest = session::find_latest(&home.state, "/home/demo").expect("finds");
    assert_eq!(
        (latest.found.path, latest.passed_over.len()),
        (path, 2),
        "the link and the empty one are newer"
    );
}

#[test]
fn a_session_is_found_by_id_beginning_or_last() {
    let home = Home::new();
    assert!(matches!(
        session::find(&home.state, "last"),
        Err(Error::NoSession { .. })
    ));
    for (time, id) in [
        ("2026-11-21T10:00:00Z", "abcdefghjkmn"),
        ("2026-11-21T11:00:00Z", "abczzzzzzzzz"),
        ("2026-11-20T11:00:00Z", "kkkkkkkkkkkk"),
    ] {
        drop(home.log(time, id, None));
    }
    let id =
        |wanted: &str| session::find(&home.state, wanted).map(|found| found.session.to_string());
    // The one that was worked on last, whenever it began: what --resume and --continue continue.
    let worked_on = |wanted: &str, age: u64| {
        let log = session::find(&home.state, wanted).expect("finds").path;
        let at = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        fs::File::options()
            .append(true)
            .open(log)
            .expect("ours")
            .set_modified(at)
            .expect("set");
    };
    for (wanted, age) in [("abcd", 30), ("abcz", 20), ("kkkk", 10)] {
        worked_on(wanted, age);
        assert_eq!(session::recent(&home.state).expect("lists").count(), 3);
    }
    assert_eq!(
        id("last").expect("finds"),
        "kkkkkkkkkkkk",
        "the oldest, but resumed last"
    );
    worked_on("abcd", 0);
    assert_eq!(id("last").expect("finds"), "abcdefghjkmn");
    let here = session::list(&home.state, 1)
        .expect("lists")
        .sessions
        .remove(0)
        .project;
    assert_eq!(
        session::find_latest(&home.state, &here)
            .expect("finds")
            .found
            .session
            .to_string(),
        "abcdefghjkmn",
        "both mean the same"
    );
    assert_eq!(id("abcd").expect("finds"), "abcdefghjkmn");
    assert_eq!(id("kkkkkkkkkkkk").expect("finds"), "kkkkkkkkkkkk");
    assert_snapshot!(chain(&id("kkkj").expect_err("no such")), @"
    error: find the session `kkkj`
    hint: did you mean `kkkkkkkkkkkk`?
    ");
    let error = id("abc").expect_err("two");
    assert_eq!(
        error.to_string(),
        "find the session `abc`: 2 sessions match"
    );
    assert_snapshot!(chain(&id("../../etc").expect_err("no such")), @"
    error: find the session `../../etc`
    hint: `podbay sessions list` shows them all
    ");
    assert!(id("").is_err());
    let found = session::find(&home.state, "kkkk").expect("finds");
    let artifacts = Artifacts::new(&home.state, &found.session, &Options::default());
    artifacts.store("c1", b"text").expect("keeps");
    session::remove(&home.state, &found).expect("removes");
    assert!(!found.path.exists() && !home.state.artifacts(&found.session).exists());
    session::remove(&home.state, &found).expect("what is gone is gone");
}

#[test]
fn a_session_reads_as_text_and_exports_as_it_is() {
    let home = Home::new();
    let mut log = home.log("2026-11-21T10:00:00Z", "abcdefghjkmn", Some("fix the test"));
    let call = |id: &str, command: &str| Kind::CallStarted {
        call: id.into(),
        name: "bash".into(),
        arguments: format!(r#"{{"command":"{command}"}}"#),
    };
    let end = |id: &str, status, result: String| Kind::CallFinished {
        call: id.into(),
        name: "bash".into(),
        status,
        result,
        artifact: Some(id.into()),
        duration_ms: 1234,
        seen: vec![],
    };
    let calls = vec![ToolCall {
        id: "c1".into(),
        name: "bash".into(),
        arguments: "{}".into(),
    }];
    let events = [
        Kind::SandboxStarted {
            image: "podbay/workspace".into(),
            duration_ms: 300,
            hidden: vec![".env".into()],
            tracked: vec![".env".into()],
        },
        Kind::AssistantMessage {
            text: "I run the tests.".into(),
            thinking: String::new(),
            calls,
            raw: None,
            usage: Usage::default(),
            interrupted: false,
            cut: false,
            duration_ms: 10,
        },
        call("c1", "cargo test"),
        end(
            "c1",
            CallStatus::Failed,
            (1..=20)
                .map(|n| format!("line {n}"))
                .collect::<Vec<_>>()
                .join("\n"),
        ),
        // Some servers number the calls of each turn anew.
        call("c1", "sleep 1000"),
        Kind::Interrupted,
        Kind::Warning {
            message: "the disk is nearly full".into(),
        },
    ];
    for kind in events {
        log.append(&at("2026-11-21T10:00:02Z", kind))
            .expect("writes");
    }
    log.append(&finished(RunStatus::Interrupted))
        .expect("writes");
    let records = session::read(log.path()).expect("reads");
    assert_snapshot!(session::show(&records), @r#"
    session abcdefghjkmn, 2026-11-21 10:00:00 UTC
    project /home/demo, mode auto, podbay 0.1.0

    task:
    fix the test
    sandbox podbay/workspace, started in 300 ms
    masked: .env (its committed version can be read)

    model:
    I run the tests.

    -> bash {"command":"cargo test"}
       failed, 1.2 s
       line 1
       line 2
       line 3
       line 4
       line 5
       line 6
       line 7
       line 8
       line 9
       line 10
       line 11
       line 12
       … 8 more lines
       all of it: artifact c1

    -> bash {"command":"sleep 1000"}
       interrupted
    ! interrupted
    ! the disk is nearly full

    interrupted (exit code 0): 2 turns, 1 call, 1000 tokens, 1 min 1 s
    "#);
    let mut out = Vec::new();
    assert_eq!(session::raw(log.path(), &mut out).expect("exports"), 9);
    assert_eq!(out, fs::read(log.path()).expect("reads"));
    let mut newer = Vec::new();
    session::raw(&fixture("newer_kinds.jsonl"), &mut newer).expect("exports");
    assert!(
        String::from_utf8(newer)
            .expect("is text")
            .contains(r#""phase":3"#),
        "what is not known is exported too"
    );
}

#[test]
fn results_stand_below_their_own_calls_and_refused_calls_are_shown_too() {
    let home = Home::new();
    let mut log = home.log("2026-11-21T10:00:00Z", "abcdefghjkmn", None);
    let calls = [
        ("a", "bash", "{\"command\":\"sleep 2\"}"),
        ("b", "read_file", "{\"path\":\"x\"}"),
        ("c", "fly", "{\"to\":\"moon\"}"),
        ("d", "write_file", "{}"),
    ];
    let call = |at: usize| ToolCall {
        id: calls[at].0.into(),
        name: calls[at].1.into(),
        arguments: calls[at].2.into(),
    };
    let begin = |at: usize| Kind::CallStarted {
        call: call(at).id,
        name: call(at).name,
        arguments: call(at).arguments,
    };
    let end = |at: usize, status, result: &str| Kind::CallFinished {
        call: call(at).id,
        name: call(at).name,
        status,
        result: result.into(),
        artifact: None,
        duration_ms: 5,
        seen: vec![],
    };
    let message = Kind::AssistantMessage {
        text: String::new(),
        thinking: String::new(),
        calls: (0..4).map(call).collect(),
        raw: None,
        usage: Usage::default(),
        interrupted: false,
        cut: false,
        duration_ms: 10,
    };
    let denied = Kind::CallDecided {
        call: "d".into(),
        name: "write_file".into(),
        decision: podbay::event::Decision::Deny,
        reason: "the user said no".into(),
    };
    let events = [
        message,
        begin(0),
        begin(1),
        end(2, CallStatus::Invalid, "there is no tool `fly`"),
        end(1, CallStatus::Ok, "text of x"),
        end(0, CallStatus::Ok, "slept"),
        Kind::PermissionAnswered {
            call: "d".into(),
            answer: podbay::event::Answer::Deny,
            reason: None,
        },
        denied,
        end(3, CallStatus::Denied, "Denied: the user said no."),
    ];
    for kind in events {
        log.append(&at("2026-11-21T10:00:02Z", kind))
            .expect("writes");
    }
    let shown = session::show(&session::read(log.path()).expect("reads"));
    assert_snapshot!(shown, @r#"
    session abcdefghjkmn, 2026-11-21 10:00:00 UTC
    project /home/demo, mode auto, podbay 0.1.0

    -> fly {"to":"moon"}
       invalid, 5 ms
       there is no tool `fly`

    -> read_file {"path":"x"}
       ok, 5 ms
       text of x

    -> bash {"command":"sleep 2"}
       ok, 5 ms
       slept

    -> write_file {}
       you denied it
       denied, 5 ms
       Denied: the user said no.
    "#);
}

/// Asked twice and refused a third time, with a result that is too long to show what was refused.
#[test]
fn what_was_asked_and_refused_in_the_middle_of_a_call_is_shown() {
    let home = Home::new();
    let mut log = home.log("2026-11-21T10:00:00Z", "abcdefghjkmn", None);
    let asked = |path: &str| {
        let [path, program, file, directory] =
            [path, "make", "/usr/bin/make", "/workspace"].map(str::to_owned);
        let held = Capability::HeldWrite {
            path,
            change: WriteChange::Write,
            protected: false,
            program,
            file,
            directory,
        };
        Kind::PermissionAsked {
            call: "a".into(),
            capabilities: vec![held],
        }
    };
    let answered = Kind::PermissionAnswered {
        call: "a".into(),
        answer: podbay::event::Answer::Allow,
        reason: None,
    };
    let denied = |reason: &str| Kind::CallDecided {
        call: "a".into(),
        name: "bash".into(),
        decision: podbay::event::Decision::Deny,
        reason: reason.into(),
    };
    let finished = Kind::CallFinished {
        call: "a".into(),
        name: "bash".into(),
        status: CallStatus::Denied,
        result: format!("`x` was not run\n{}[`y` was not run]", "line\n".repeat(20)),
        artifact: None,
        duration_ms: 5,
        seen: vec![],
    };
    let started = Kind::CallStarted {
        call: "a".into(),
        name: "bash".into(),
        arguments: "{}".into(),
    };
    let kinds = [
        started,
        asked("b"),
        answered,
        asked("c"),
        denied("`x` was not run"),
        denied("`y` was not run"),
        finished,
    ];
    for kind in kinds {
        log.append(&at("2026-11-21T10:00:02Z", kind))
            .expect("writes");
    }
    let shown = session::show(&session::read(log.path()).expect("reads"));
    let shown: Vec<&str> = shown
        .lines()
        .skip(3)
        .filter(|line| *line != "   line")
        .collect();
    let expected = [
        "-> bash {}",
        "   `make` wants to write b: you allowed it",
        "   `make` wants to write c: not answered",
        "   denied, 5 ms",
        "   `x` was not run",
        "   … 10 more lines",
        "   denied: `y` was not run",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn artifacts_are_private_bounded_and_never_paths() {
    let home = Home::new();
    let options = Options {
        artifacts_max: ByteSize::new(100),
        ..Options::default()
    };
    let artifacts = Artifacts::new(&home.state, &"abc".parse().expect("an id"), &options);
    assert!(matches!(
        artifacts.open("c1"),
        Err(Error::NoArtifact { .. })
    ));
    let one = artifacts.store("call/../1", &[b'a'; 60]).expect("keeps");
    assert_eq!((one.id.as_str(), one.dropped), ("call1", vec![]));
    let path = home
        .state
        .artifacts(&"abc".parse().expect("an id"))
        .join("call1");
    assert_eq!(
        (mode(&path), mode(path.parent().expect("has one"))),
        (0o600, 0o700)
    );
    std::thread::sleep(std::time::Duration::from_millis(20));
    let two = artifacts
        .store("call1", b"first\nsecond\nthird\n")
        .expect("keeps");
    assert_eq!((two.id.as_str(), two.dropped), ("call1-2", vec![]));
    assert_eq!(
        artifacts.page("call1-2", 2, 1).expect("reads").text,
        "second\n"
    );
    let three = artifacts.store("call3", &[b'c'; 70]).expect("keeps");
    assert_eq!(three.dropped, ["call1"], "the oldest goes first");
    assert_snapshot!(chain(&artifacts.open("call1").expect_err("dropped")), @"
    error: open the artifact `call1`: this session has none of that name
    hint: the newest are `call3` or `call1-2`
    ");
    assert!(matches!(
        artifacts.store("big", &[0; 101]),
        Err(Error::ArtifactTooLarge {
            size: 101,
            max: 100
        })
    ));
    for bad in [
        "../abc/call3",
        "/etc/passwd",
        "..",
        ".",
        "",
        "a/b",
        "a\0b",
        ".new-x",
    ] {
        assert!(
            matches!(artifacts.open(bad), Err(Error::BadArtifact { .. })),
            "{bad}"
        );
    }
    symlink("/etc/passwd", path.with_file_name("link")).expect("links");
    assert!(artifacts.open("link").is_err(), "a link is not followed");
}
