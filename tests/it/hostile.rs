//! A hostile guest against the whole program: what it does to the controller's memory, exit code
//! and terminal.
//!
//! The backend `attach` leads the program to a socket of the test's. Its memory is that of a
//! process of its own, as the kernel counts it.

use std::io;
use std::io::Read;
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use podbay::wire::Because;
use podbay::wire::BytesPath;
use podbay::wire::CallId;
use podbay::wire::CommandEnded;
use podbay::wire::Denied;
use podbay::wire::Encoding;
use podbay::wire::End;
use podbay::wire::Fault;
use podbay::wire::FileText;
use podbay::wire::Output;
use podbay::wire::PROTOCOL;
use podbay::wire::Program;
use podbay::wire::Programs;
use podbay::wire::frame;
use podbay::wire::message::Data;
use podbay::wire::message::Facts;
use podbay::wire::message::GuestHello;
use podbay::wire::message::Stream;
use podbay::wire::message::ToGuest;
use podbay::wire::message::ToHost;
use serde_json::json;

use crate::support::ScriptedModel;
use crate::support::TestEnv;
use crate::support::test_env::Done;
use crate::support::test_env::start;

/// What a terminal would obey, or what hides something.
const BAD: &str = "a\x1b]52;c;x\x07b\u{9b}31m\u{202e}\rc\x1b[2J\u{85}\u{7f}";

/// The guest's end of one connection.
pub(super) struct Guest(UnixStream);

impl Guest {
    pub(super) fn say(&mut self, message: &ToHost) -> io::Result<()> {
        let bytes = frame::encode(message).expect("fits");
        self.raw(&bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(&(bytes.len() as u32).to_be_bytes())?;
        self.0.write_all(bytes)
    }

    pub(super) fn hear(&mut self) -> io::Result<ToGuest> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length)?;
        let mut bytes = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut bytes)?;
        frame::decode(&bytes).map_err(io::Error::other)
    }

    /// Waits for a call.
    pub(super) fn call(&mut self) -> io::Result<CallId> {
        loop {
            if let ToGuest::Call { id, .. } = self.hear()? {
                return Ok(id);
            }
        }
    }

    pub(super) fn done(&mut self, id: CallId, output: Output) -> io::Result<()> {
        self.say(&ToHost::Done { id, output })
    }
}

type Act = fn(&mut Guest) -> io::Result<()>;

/// Listens where the program will look for a sandbox, and does the same to everybody who comes.
pub(super) fn listen(
    socket: &Path,
    hello: Option<Facts>,
    act: impl Fn(&mut Guest) -> io::Result<()> + Send + Sync + 'static,
) {
    let act = Arc::new(act);
    let listener = UnixListener::bind(socket).expect("a free path");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (hello, act) = (hello.clone(), Arc::clone(&act));
            std::thread::spawn(move || {
                let mut guest = Guest(stream);
                // The program goes away when it has had enough.
                let _ = (|| {
                    let Some(facts) = hello else {
                        return act(&mut guest);
                    };
                    let ToGuest::Hello(theirs) = guest.hear()? else {
                        return Ok(());
                    };
                    guest.say(&ToHost::Hello(GuestHello {
                        protocol: PROTOCOL,
                        build: theirs.build,
                        facts,
                    }))?;
                    act(&mut guest)
                })();
                // Open until the other end has closed, so that what was said is read.
                let _ = io::copy(&mut guest.0, &mut io::sink());
            });
        }
    });
}

pub(super) fn facts() -> Facts {
    Facts {
        uid: 1000,
        gid: 1000,
        workspace_writable: true,
        ..Facts::default()
    }
}

pub(super) fn attached(env: &TestEnv, command: &mut Command) {
    command
        .env("PODBAY_SANDBOX_BACKEND", "attach")
        .env("PODBAY_SANDBOX_SOCKET", env.beside("guest.sock"));
    command
        .env("PODBAY_SANDBOX_START_TIMEOUT", "1s")
        .env("PODBAY_TOOLS_FILE_TIMEOUT", "2s")
        .env("DOCKER_HOST", "unix:///nonexistent/docker.sock");
}

/// Makes one call against such a guest; returns how it ended and the most memory that the program
/// took.
fn against(hello: Option<Facts>, act: Act, arguments: &[&str]) -> (Done, usize) {
    let env = TestEnv::new();
    listen(&env.beside("guest.sock"), hello, act);
    let mut command = env.podbay(arguments);
    attached(&env, &mut command);
    let started = start(&mut command);
    let status = format!("/proc/{}/status", started.pid());
    let watching = std::thread::spawn(move || {
        let mut most = 0;
        while let Ok(text) = std::fs::read_to_string(&status) {
            let Some(peak) = text.lines().find_map(|line| {
                line.strip_prefix("VmHWM:")?
                    .trim()
                    .strip_suffix(" kB")?
                    .parse()
                    .ok()
            }) else {
                break;
            };
            most = std::cmp::max(most, peak);
            std::thread::sleep(Duration::from_millis(2));
        }
        most
    });
    let done = started.wait();
    (done, watching.join().expect("no panic") << 10)
}

/// The same of a result on a pipe, which is what a model reads, byte for byte: only what is said
/// beside it is for a screen.
#[track_caller]
fn check_told(done: &Done) {
    let bad: Vec<char> = done
        .stderr
        .chars()
        .filter(|&c| !matches!(c, '\n' | '\t') && podbay::event::is_hidden(c))
        .collect();
    assert!(bad.is_empty(), "{bad:?} in {:?}", done.stderr);
}

#[track_caller]
fn check_screen(done: &Done) {
    let all = done.text() + &done.stderr;
    let bad: Vec<char> = all
        .chars()
        .filter(|&c| !matches!(c, '\n' | '\t') && podbay::event::is_hidden(c))
        .collect();
    assert!(bad.is_empty(), "{bad:?} in {all:?}");
}

const READ: [&str; 3] = ["call", "read_file", r#"{"path":"file"}"#];

#[test]
fn a_hostile_guest_does_not_make_the_controller_grow() {
    let fault: Act = |guest| {
        let id = guest.call()?;
        guest.done(id, Output::Fault(Fault::Cancelled))
    };
    let (done, usual) = against(Some(facts()), fault, &READ);
    assert!(done.code != 0 && usual > 1 << 20, "{} {usual}", done.stderr);
    let floods: [(&str, Act); 7] = [
        ("a frame of the smallest values", |guest| {
            guest.call()?;
            let list = "0,".repeat(frame::MAX_FRAME / 2 - 100);
            guest.raw(format!(r#"{{"type":"done","id":0,"output":[{list}0]}}"#).as_bytes())
        }),
        ("credit that nobody asked for", |guest| {
            guest.call()?;
            (0..1_000_000).try_for_each(|_| {
                guest.say(&ToHost::Credit {
                    id: CallId(9),
                    bytes: 1,
                })
            })
        }),
        ("answers to calls that nobody made", |guest| {
            guest.call()?;
            (0..1_000_000)
                .try_for_each(|n| guest.done(CallId(1000 + n), Output::Fault(Fault::Cancelled)))
        }),
        ("output in single bytes", |guest| {
            let id = guest.call()?;
            let data = || Data(vec![b'x']);
            (0..1_000_000).try_for_each(|_| {
                guest.say(&ToHost::Chunk {
                    id,
                    stream: Stream::Stdout,
                    data: data(),
                })
            })
        }),
        ("output without credit", |guest| {
            let id = guest.call()?;
            let data = || Data(vec![b'x'; 48 << 10]);
            (0..10_000).try_for_each(|_| {
                guest.say(&ToHost::Chunk {
                    id,
                    stream: Stream::Stdout,
                    data: data(),
                })
            })
        }),
        ("the longest frames, one after the other", |guest| {
            guest.call()?;
            let output = Output::Fault(Fault::BoxEnded {
                problem: "x".repeat(7 << 20),
            });
            let bytes = frame::encode(&ToHost::Done {
                id: CallId(77),
                output,
            })
            .expect("fits");
            (0..100).try_for_each(|_| guest.raw(&bytes))
        }),
        ("lengths that are never filled", |guest| {
            guest.call()?;
            guest
                .0
                .write_all(&(frame::MAX_FRAME as u32).to_be_bytes())?;
            (0..100_000).try_for_each(|_| guest.0.write_all(b"{\"type\":\"done\",\"id\":0,"))
        }),
    ];
    // What one frame of the greatest length costs while it is read and understood; nothing may be
    // kept beside it.
    let room = 6 * frame::MAX_FRAME;
    for (what, act) in floods {
        let (done, most) = against(Some(facts()), act, &READ);
        assert_eq!(done.code, 1, "{what}: {}\n{}", done.text(), done.stderr);
        assert!(most < usual + room, "{what}: {usual} became {most}");
        check_screen(&done);
    }
}

/// A hello like that of a guest of this build, but for what is done to it.
fn hello(guest: &mut Guest, change: fn(&mut GuestHello)) -> io::Result<()> {
    let ToGuest::Hello(theirs) = guest.hear()? else {
        return Ok(());
    };
    let mut hello = GuestHello {
        protocol: PROTOCOL,
        build: theirs.build,
        facts: facts(),
    };
    change(&mut hello);
    guest.say(&ToHost::Hello(hello))
}

#[test]
fn a_huge_hello_and_a_flood_before_one_are_refused_in_bounded_memory() {
    let fault: Act = |guest| {
        let id = guest.call()?;
        guest.done(id, Output::Fault(Fault::Cancelled))
    };
    let (done, usual) = against(Some(facts()), fault, &READ);
    assert!(done.code != 0 && usual > 1 << 20, "{} {usual}", done.stderr);
    let greetings: [(&str, Act); 8] = [
        ("a build as long as a frame", |guest| {
            hello(guest, |hello| hello.build = BAD.repeat(150_000))
        }),
        ("names as long as a frame", |guest| {
            hello(guest, |hello| {
                hello.facts.workspace_names = vec![BytesPath::from_bytes(vec![b'x'; 30_000]); 250];
            })
        }),
        ("more names than it may", |guest| {
            hello(guest, |hello| {
                hello.facts.workspace_names = vec![BytesPath::from_bytes(*b"x"); 1_000_000];
            })
        }),
        ("a length over the limit", |guest| {
            guest
                .0
                .write_all(&(frame::MAX_FRAME as u32 + 1).to_be_bytes())?;
            (0..1000).try_for_each(|_| guest.0.write_all(&vec![b' '; 1 << 20]))
        }),
        ("a hello that is never whole", |guest| {
            guest
                .0
                .write_all(&(frame::MAX_FRAME as u32).to_be_bytes())?;
            guest.0.write_all(br#"{"type":"hello","build":""#)?;
            (0..frame::MAX_FRAME >> 10).try_for_each(|_| guest.0.write_all(&[b'x'; 1000]))
        }),
        ("frames without end and no hello", |guest| {
            (0..1_000_000).try_for_each(|_| {
                guest.say(&ToHost::Credit {
                    id: CallId(0),
                    bytes: 1,
                })
            })
        }),
        ("the longest frames and no hello", |guest| {
            let output = Output::Fault(Fault::BoxEnded {
                problem: "x".repeat(7 << 20),
            });
            let bytes = frame::encode(&ToHost::Done {
                id: CallId(0),
                output,
            })
            .expect("fits");
            (0..100).try_for_each(|_| guest.raw(&bytes))
        }),
        ("no frames at all", |guest| {
            (0..100_000).try_for_each(|_| guest.0.write_all(&[0xff; 1024]))
        }),
    ];
    let room = 6 * frame::MAX_FRAME;
    for (what, act) in greetings {
        let (done, most) = against(None, act, &READ);
        assert_eq!(done.code, 5, "{what}: {}\n{}", done.text(), done.stderr);
        assert!(most < usual + room, "{what}: {usual} became {most}");
        assert!(done.stderr.len() < 2000, "{what}: {}", done.stderr);
        check_screen(&done);
    }
    // One as it should be, with the most that it may say.
    let most: Act = |guest| {
        hello(guest, |hello| {
            hello.facts.workspace_names = vec![BytesPath::from_bytes(vec![b'x'; 255]); 256];
        })?;
        let id = guest.call()?;
        guest.done(
            id,
            Output::Fault(Fault::Outside {
                path: "file".into(),
            }),
        )
    };
    let (done, _) = against(None, most, &READ);
    assert_eq!(done.code, 1, "{}\n{}", done.text(), done.stderr);
}

#[test]
fn what_a_sandbox_has_no_limit_on_is_said_at_the_start() {
    let fault: Act = |guest| {
        let id = guest.call()?;
        guest.done(id, Output::Fault(Fault::Cancelled))
    };
    let warnings = [
        "no memory limit is in force in the sandbox",
        "no limit on processes is in force in the sandbox",
        "no processor limit is in force in the sandbox",
        "the sandbox has a network",
    ];
    let (done, _) = against(
        Some(Facts {
            networked: true,
            ..facts()
        }),
        fault,
        &READ,
    );
    assert!(
        warnings.iter().all(|warning| done.stderr.contains(warning)),
        "{}",
        done.stderr
    );
    let limited = Facts {
        memory_bytes: Some(1 << 30),
        n_processes: Some(512),
        millicores: Some(2000),
        ..facts()
    };
    let (done, _) = against(Some(limited), fault, &READ);
    assert!(
        warnings
            .iter()
            .all(|warning| !done.stderr.contains(warning)),
        "{}",
        done.stderr
    );
}

/// What a search found, with numbers that lead nowhere.
fn found() -> Output {
    let lines = [u64::MAX, 0].map(|number| podbay::wire::MatchedLine {
        number,
        text: BAD.to_owned(),
        cut: true,
        matched: false,
    });
    let file = podbay::wire::MatchedFile {
        path: BAD.into(),
        count: u64::MAX,
        lines: lines.to_vec(),
        binary: false,
    };
    Output::Matches(podbay::wire::Matches {
        output: podbay::wire::GrepOutput::Content,
        files: vec![file],
        n_matches: u64::MAX,
        truncated: true,
        timed_out: true,
        n_unreadable: u32::MAX,
        n_protected: u32::MAX,
        n_binary: u32::MAX,
        n_too_long: u32::MAX,
        cursor: Some(BAD.to_owned()),
        left_out: podbay::wire::LeftOut {
            hidden_folders: u64::MAX,
            folders: vec![BAD.into()],
            ..podbay::wire::LeftOut::default()
        },
        hint: Some(BAD.to_owned()),
    })
}

/// What a call started, with such numbers and names.
fn programs() -> Programs {
    let program = Program {
        argv: vec![BAD.into()],
        directory: BAD.into(),
        count: u64::MAX,
        exit_code: Some(i32::MIN),
        truncated: true,
    };
    Programs {
        listed: vec![program; 3],
        n_more: u64::MAX,
    }
}

fn denied() -> Box<[Denied]> {
    let because = Because::Rule {
        rule: BAD.to_owned(),
        justification: BAD.to_owned(),
    };
    vec![
        Denied {
            argv: vec![BAD.into()],
            truncated: true,
            count: u64::MAX,
            because,
            killed: true
        };
        3
    ]
    .into()
}

/// A command's end, with such numbers.
fn ended() -> Output {
    Output::Command(CommandEnded {
        end: End::Signaled { signal: i32::MAX },
        limit: Some(podbay::wire::Limit::Memory { bytes: u64::MAX }),
        culprit: Some(podbay::wire::Culprit {
            name: BAD.to_owned(),
            count: u64::MAX,
            bytes: u64::MAX,
            at_least: true,
        }),
        working_directory: None,
        output_bytes: u64::MAX,
        omitted_bytes: u64::MAX,
        omitted_in_line: true,
        n_survivors: u32::MAX,
        duration_ms: u64::MAX,
        note: Some(BAD.to_owned()),
        programs: programs(),
        denied: denied(),
    })
}

#[test]
fn a_hostile_guest_reaches_neither_terminal_nor_exit_code() {
    let greetings: [(&str, Option<Facts>, Act); 4] = [
        ("silence", None, |_| Ok(())),
        ("no hello", None, |guest| {
            guest.say(&ToHost::Credit {
                id: CallId(0),
                bytes: 1,
            })
        }),
        ("a build with escapes", None, |guest| {
            guest.say(&ToHost::Hello(GuestHello {
                protocol: PROTOCOL,
                build: BAD.to_owned(),
                facts: Facts::default(),
            }))
        }),
        ("last words with escapes", None, |guest| {
            guest.say(&ToHost::Closing {
                reason: BAD.to_owned(),
            })
        }),
    ];
    for (what, hello, act) in greetings {
        let (done, _) = against(hello, act, &READ);
        assert_eq!(done.code, 5, "{what}: {}\n{}", done.text(), done.stderr);
        check_screen(&done);
    }
    let calls: [(&str, i32, Act); 6] = [
        ("a fault with escapes", 1, |guest| {
            let id = guest.call()?;
            guest.done(
                id,
                Output::Fault(Fault::BoxEnded {
                    problem: BAD.to_owned(),
                }),
            )
        }),
        ("a path with escapes", 1, |guest| {
            let id = guest.call()?;
            guest.done(
                id,
                Output::Fault(Fault::Outside {
                    path: BytesPath::from_bytes(BAD.as_bytes()),
                }),
            )
        }),
        ("a file with escapes", 0, |guest| {
            let id = guest.call()?;
            let file = FileText {
                path: BytesPath::from_bytes(BAD.as_bytes()),
                text: BAD.to_owned(),
                first_line: u64::MAX,
                n_lines: u64::MAX,
                total_lines: Some(0),
                bytes: u64::MAX,
                more: true,
                cut_lines: u32::MAX,
                encoding: Encoding::Lossy,
                fault: None,
            };
            guest.done(
                id,
                Output::Read(podbay::wire::Read {
                    files: vec![file],
                    remaining: u32::MAX,
                    memos: vec![],
                }),
            )
        }),
        // It may lie about its sandbox in any form.
        ("an answer to another question", 0, |guest| {
            let id = guest.call()?;
            guest.done(
                id,
                Output::Files(podbay::wire::FoundFiles {
                    paths: vec![BAD.into()],
                    truncated: true,
                    n_unreadable: 0,
                    cursor: Some(BAD.to_owned()),
                    left_out: podbay::wire::LeftOut::default(),
                    notes: vec![BAD.to_owned()],
                }),
            )
        }),
        ("last words in the middle of a call", 1, |guest| {
            guest.call()?;
            guest.say(&ToHost::Closing {
                reason: BAD.repeat(10_000),
            })
        }),
        ("another hello", 1, |guest| {
            guest.call()?;
            guest.say(&ToHost::Hello(GuestHello {
                protocol: PROTOCOL,
                build: BAD.to_owned(),
                facts: Facts::default(),
            }))
        }),
    ];
    for (what, code, act) in calls {
        let (done, _) = against(Some(facts()), act, &READ);
        assert_eq!(done.code, code, "{what}: {}\n{}", done.text(), done.stderr);
        check_told(&done);
    }
    // A denial that it makes up is one: it might as well have carried nothing out.
    let answer: [(Act, &[&str], i32); 3] = [
        (
            |guest| guest.call().and_then(|id| guest.done(id, found())),
            &["call", "grep", r#"{"pattern":"x"}"#],
            0,
        ),
        (
            |guest| guest.call().and_then(|id| guest.done(id, ended())),
            &["call", "bash", r#"{"command":"x"}"#],
            4,
        ),
        (
            |guest| guest.call().and_then(|id| guest.done(id, ended())),
            &["sh", "--", "true"],
            255,
        ),
    ];
    for (act, arguments, code) in answer {
        let (done, _) = against(Some(facts()), act, arguments);
        assert_eq!(
            done.code,
            code,
            "{arguments:?}: {}\n{}",
            done.text(),
            done.stderr
        );
        if arguments[0] == "call" {
            check_told(&done);
        } else {
            check_screen(&done);
        }
    }
}

#[test]
fn logs_and_json_hold_no_raw_control_character() {
    let env = TestEnv::new();
    listen(&env.beside("guest.sock"), Some(facts()), |guest| {
        loop {
            let id = guest.call()?;
            guest.say(&ToHost::Chunk {
                id,
                stream: Stream::Stdout,
                data: Data(BAD.as_bytes().to_vec()),
            })?;
            let ended = CommandEnded {
                end: End::Exited { code: 0 },
                limit: None,
                culprit: None,
                working_directory: Some(BAD.into()),
                output_bytes: BAD.len() as u64,
                omitted_bytes: 0,
                omitted_in_line: true,
                n_survivors: 0,
                duration_ms: 1,
                note: Some(BAD.to_owned()),
                programs: programs(),
                denied: denied(),
            };
            guest.done(id, Output::Command(ended))?;
        }
    });
    let model = ScriptedModel::new()
        .calls("bash", json!({"command": format!("echo {BAD}")}))
        .says(BAD)
        .start_blocking();
    for format in ["json", "jsonl", "text"] {
        let mut command = env.podbay(&[
            "run",
            "--output",
            format,
            "--model",
            "scripted",
            "--endpoint",
        ]);
        attached(
            &env,
            command.arg(model.endpoint()).arg(format!("say {BAD}")),
        );
        check_screen(&start(&mut command).wait());
    }
    let files = Arc::new(std::sync::Mutex::new(0));
    scan(&env.state(), &mut |path, text| {
        *files.lock().expect("one thread") += 1;
        let raw = text
            .chars()
            .find(|&c| c != '\n' && podbay::event::is_hidden(c));
        assert_eq!(raw, None, "{}", path.display());
    });
    assert!(*files.lock().expect("one thread") >= 3, "a log of each run");
}

/// Looks at every log; artifacts hold what a command printed, as it was.
fn scan(folder: &Path, look: &mut dyn FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            scan(&path, look);
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            look(&path, &std::fs::read_to_string(&path).expect("text"));
        }
    }
}
