//! A call of mode ask is held at its first write, and runs unasked as long as it only reads.

use std::fs;
use std::pin::Pin;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use podbay::sandbox::link::Asks;
use podbay::wire::AskedProgram;
use podbay::wire::AskedWrite;
use podbay::wire::Bash;
use podbay::wire::Because;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::CommandEnded;
use podbay::wire::End;
use podbay::wire::Fault;
use podbay::wire::Output;
use podbay::wire::WriteChange;
use podbay::wire::WriteGate;
use podbay::wire::message::Stream;
use tokio_util::sync::CancellationToken;

use crate::support::guest::PATIENCE;
use crate::support::guest::TestGuest;
use crate::support::guest::bash;

/// Changes where a path leads, as fast as it can, while it is opened.
const RACE: &str = include_str!("fixtures/gate/write_race.py");

/// Answers each question, after a while, and remembers it.
struct Person {
    says: fn(&AskedWrite) -> bool,
    after: Duration,
    asked: Mutex<Vec<AskedProgram>>,
}

impl Person {
    fn new(says: fn(&AskedWrite) -> bool) -> Self {
        Self {
            says,
            after: Duration::ZERO,
            asked: Mutex::default(),
        }
    }

    fn yes() -> Self {
        Self::new(|_| true)
    }

    fn no() -> Self {
        Self::new(|_| false)
    }

    /// Returns what was asked: who, what becomes of which path, and a mark where that is protected.
    fn asked(&self) -> Vec<String> {
        let line = |program: &AskedProgram| {
            let write = program.write.as_ref().expect("about a write");
            let mark = if write.protected { " !" } else { "" };
            let name = program
                .argv
                .first()
                .map_or_else(String::new, BytesPath::to_text);
            format!("{name} {:?} {}{mark}", write.change, write.path.to_text())
        };
        self.asked
            .lock()
            .expect("no panic")
            .iter()
            .map(line)
            .collect()
    }
}

impl Asks for Person {
    fn ask<'a>(&'a self, program: AskedProgram) -> Pin<Box<dyn Future<Output = bool> + Send + 'a>> {
        let yes = (self.says)(program.write.as_ref().expect("about a write"));
        self.asked.lock().expect("no panic").push(program);
        Box::pin(async move {
            tokio::time::sleep(self.after).await;
            yes
        })
    }
}

fn gated(command: &str, unasked: &[&str]) -> Bash {
    let unasked = unasked.iter().map(|&pattern| pattern.to_owned()).collect();
    Bash {
        write_gate: Some(WriteGate { unasked }),
        ..bash(command)
    }
}

async fn call(
    guest: &TestGuest,
    person: &Person,
    bash: Bash,
    cancel: &CancellationToken,
) -> (CommandEnded, String) {
    let mut printed = Vec::new();
    let on_chunk = |_: Stream, bytes: &[u8]| printed.extend_from_slice(bytes);
    let haste = CancellationToken::new();
    let output = guest
        .link
        .call_asking(Call::Bash(bash), on_chunk, person, cancel, &haste, PATIENCE)
        .await
        .expect("answers");
    let Output::Command(ended) = output else {
        panic!("{output:?}")
    };
    (ended, String::from_utf8_lossy(&printed).into_owned())
}

async fn run(guest: &TestGuest, person: &Person, command: &str) -> (CommandEnded, String) {
    call(
        guest,
        person,
        gated(command, &[]),
        &CancellationToken::new(),
    )
    .await
}

/// Returns paths that were denied.
fn denied(ended: &CommandEnded) -> Vec<String> {
    let path = |because: &Because| match because {
        Because::Write { path } => path.to_text(),
        other => panic!("{other:?}"),
    };
    ended
        .denied
        .iter()
        .map(|denied| path(&denied.because))
        .collect()
}

/// A project with a repository.
async fn project() -> TestGuest {
    let guest = TestGuest::start().await;
    fs::create_dir(guest.path("sub")).expect("made");
    fs::write(guest.path("file"), "old\n").expect("written");
    fs::write(guest.path("sub/other"), "other\n").expect("written");
    fs::write(guest.path(".env"), "SECRET=1\n").expect("written");
    let git = |words: &[&str]| {
        #[expect(clippy::disallowed_methods, reason = "it makes the project of a test")]
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@b"])
            .args(words)
            .current_dir(guest.workspace.path());
        assert!(git.output().expect("git").status.success(), "{words:?}");
    };
    git(&["init", "-q"]);
    git(&["add", "file"]);
    git(&["commit", "-qm", "first"]);
    guest
}

#[tokio::test]
async fn what_only_reads_is_not_asked_about() {
    let guest = project().await;
    // So that git has something to write down, which it does not.
    fs::write(guest.path("file"), "old\n").expect("written");
    let (no, long) = (Person::no(), "x".repeat(100_000));
    for (command, expected) in [
        ("ls", "file\nsub\n"),
        ("git log --format=%s", "first\n"),
        ("git status --short", "?? .env\n?? sub/\n"),
        ("grep -r --exclude-dir=.git other .", "./sub/other:other\n"),
        ("python3 -c 'print(1)'", "1\n"),
        ("find . -name other", "./sub/other\n"),
        ("cat <<END\nsome lines\nEND", "some lines\n"),
        (
            "echo x > /dev/null; echo y > /dev/stdout; echo z > /dev/stderr",
            "y\nz\n",
        ),
        (
            "f=$(mktemp) && echo x > $f && cat $f && chmod 600 $f && mv $f $f.1 && rm $f.1",
            "x\n",
        ),
        (
            "(umask 077; d=$(mktemp -d); echo x > $d/x; stat -c %a $d/x; mkdir $d/y; rm -r $d)",
            "600\n",
        ),
        ("mkdir -p sub; rm -f none; true", ""),
        (
            "exec 9>/dev/null; echo x >&9; python3 -c 'import tempfile; print(tempfile.TemporaryFile().write(b\"abc\"))'",
            "3\n",
        ),
    ] {
        let (ended, printed) = run(&guest, &no, command).await;
        assert_eq!(
            (printed.as_str(), denied(&ended), no.asked()),
            (expected, vec![], vec![]),
            "{command} {:?}",
            ended.end
        );
    }
    let (ended, printed) = run(&guest, &no, &format!("wc -c <<END\n{long}\nEND")).await;
    assert_eq!(
        (printed.trim(), ended.denied.len(), no.asked()),
        ("100001", 0, vec![])
    );
}

#[tokio::test]
async fn each_way_to_write_is_asked_about_once_and_a_yes_lets_the_whole_call_go_on() {
    let python = |act: &str| format!("python3 -c 'import os; {act}'");
    for (command, expected) in [
        ("echo x > build.o".to_owned(), "bash Write build.o"),
        ("echo x >> file".to_owned(), "bash Write file"),
        (python("open(\"new\", \"w\")"), "python3 Write new"),
        (python("os.truncate(\"file\", 0)"), "python3 Write file"),
        (
            python("os.fchmod(os.open(\"file\", 0), 0o600)"),
            "python3 Attributes file",
        ),
        (
            python("os.setxattr(\"file\", \"user.a\", b\"b\")"),
            "python3 Attributes file",
        ),
        (
            python("os.open(\".\", os.O_TMPFILE | os.O_RDWR)"),
            "python3 Write .",
        ),
        (python("os.mkfifo(\"pipe\")"), "python3 Write pipe"),
        (
            python("os.replace(\"file\", \"sub/new\")"),
            "python3 Rename file",
        ),
        (
            python(
                "d = os.open(\"sub\", 0); os.open(\"../new\", os.O_CREAT | os.O_RDWR, dir_fd=d)",
            ),
            "python3 Write new",
        ),
        ("rm file".to_owned(), "rm Remove file"),
        ("mv file sub/".to_owned(), "mv Rename file"),
        ("ln -s file link".to_owned(), "ln Link link"),
        ("ln file link".to_owned(), "ln Link link"),
        ("chmod 600 file".to_owned(), "chmod Attributes file"),
        ("touch file".to_owned(), "touch Write file"),
        (
            "touch -m -d yesterday -c file".to_owned(),
            "touch Attributes file",
        ),
        ("mkdir made".to_owned(), "mkdir MakeFolder made"),
        ("sed -i s/old/new/ file".to_owned(), "sed Write "),
        (
            "cd /; echo x > \"$OLDPWD/sub/../new\"".to_owned(),
            "bash Write new",
        ),
    ] {
        let guest = project().await;
        let (yes, command) = (
            Person::yes(),
            format!("{command} && mkdir after && echo x > after/more && rm -r after && echo done"),
        );
        let (ended, printed) = run(&guest, &yes, &command).await;
        assert_eq!(
            (printed.as_str(), denied(&ended)),
            ("done\n", vec![]),
            "{command}"
        );
        let asked = yes.asked();
        assert!(
            asked.len() == 1
                && asked[0]
                    .trim_start_matches("/usr/bin/")
                    .starts_with(expected),
            "{command}: {asked:?}"
        );
    }
}

#[tokio::test]
async fn a_no_fails_that_write_and_all_later_ones_and_the_rest_runs() {
    let guest = project().await;
    let no = Person::no();
    let command = "echo x > new; rm -f file; mkdir made; echo x > /tmp/podbay-write-gate && rm /tmp/podbay-write-gate && cat file; \
                   python3 -c 'open(\"other\", \"w\")'";
    let (ended, printed) = run(&guest, &no, command).await;
    assert_eq!(no.asked(), ["bash Write new"]);
    assert_eq!(denied(&ended), ["new", "file", "made", "other"]);
    assert!(
        printed.contains("new: Permission denied")
            && printed.contains("\nold\n")
            && printed.contains("PermissionError"),
        "{printed}"
    );
    assert!(
        !guest.path("new").exists() && !guest.path("made").exists() && guest.path("file").exists()
    );
    // Where no host answers it is the same.
    let (ended, _) = guest.bash(gated("echo x > new; cat file", &[])).await;
    assert_eq!(
        (denied(&ended), guest.path("new").exists()),
        (vec!["new".to_owned()], false)
    );
}

#[tokio::test]
async fn a_protected_name_is_asked_about_by_itself_and_a_yes_opens_nothing_else() {
    let guest = project().await;
    let careful = Person::new(|write| !write.protected);
    let (ended, _) =
        run(&guest, &careful, "echo x > new; echo x > .env; echo x >> .env; mv new .env; ln -s .env l; echo x > l; rm file").await;
    assert_eq!(careful.asked(), ["bash Write new", "bash Write .env !"]);
    assert_eq!(
        (denied(&ended), ended.denied[0].count),
        (vec![".env".to_owned(); 2], 3),
        "{:?}",
        ended.denied
    );
    assert_eq!(
        fs::read_to_string(guest.path(".env")).expect("there"),
        "SECRET=1\n"
    );
    assert!(
        !guest.path("file").exists(),
        "the rest of the call continues"
    );
    let yes = Person::yes();
    let (_, printed) = run(
        &guest,
        &yes,
        "echo y > .env; echo z >> .env; cat .env; echo x > sub/.env; echo x > more",
    )
    .await;
    assert_eq!(
        (yes.asked().join(", "), printed.as_str()),
        (
            "bash Write .env !, bash Write sub/.env !, bash Write more".to_owned(),
            "y\nz\n"
        )
    );
}

#[tokio::test]
async fn patterns_name_what_is_written_without_a_question_and_open_no_protected_name() {
    let guest = project().await;
    let no = Person::no();
    let command = "mkdir target && echo x > target/x && mkdir target/sub && touch target/sub/y && echo x > sub/x.o && rm sub/x.o; \
                   echo x > target/.env; echo x > plain; echo more >> target/x; cat target/x";
    let (ended, printed) = call(
        &guest,
        &no,
        gated(command, &["target/", "*.o"]),
        &CancellationToken::new(),
    )
    .await;
    assert_eq!(
        (no.asked(), denied(&ended)),
        (
            ["bash Write target/.env !", "bash Write plain"]
                .map(str::to_owned)
                .to_vec(),
            ["target/.env", "plain"].map(str::to_owned).to_vec()
        )
    );
    assert!(
        printed.ends_with("x\nmore\n") && guest.path("target/sub/y").exists(),
        "{printed}"
    );
}

#[tokio::test]
async fn a_call_that_is_held_does_not_grow_old_and_can_be_ended() {
    let guest = project().await;
    let slow = Person {
        after: Duration::from_secs(2),
        ..Person::yes()
    };
    let command = Bash {
        timeout_ms: 1000,
        ..gated("(echo x > one &); echo x > two; wait; cat two", &[])
    };
    let (ended, printed) = call(&guest, &slow, command, &CancellationToken::new()).await;
    assert_eq!(
        (ended.end, printed.as_str(), slow.asked().len()),
        (End::Exited { code: 0 }, "x\n", 1)
    );
    assert!(
        ended.duration_ms < 1000 && guest.path("one").exists(),
        "{}",
        ended.duration_ms
    );
    let (endless, cancel) = (
        Person {
            after: PATIENCE,
            ..Person::yes()
        },
        CancellationToken::new(),
    );
    let ending = async {
        while endless.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let ((ended, _), ()) = tokio::join!(
        call(
            &guest,
            &endless,
            gated("rm file; rm sub/other", &[]),
            &cancel
        ),
        ending
    );
    assert_eq!(ended.end, End::Cancelled);
    // One of its processes can be ended as well, and the others get on.
    let slow = Person {
        after: Duration::from_millis(700),
        ..Person::no()
    };
    let (_, printed) = run(&guest, &slow, "timeout 0.2 rm file; echo $?; cat file").await;
    assert_eq!((printed.as_str(), slow.asked().len()), ("124\nold\n", 1));
    assert!(guest.path("file").exists());
}

#[tokio::test]
async fn a_link_elsewhere_is_where_it_leads() {
    let guest = project().await;
    let (no, top) = (Person::no(), guest.workspace.path().display().to_string());
    let command = format!(
        "d=$(mktemp -d); ln -s {top}/file $d/link; echo x > $d/link; ln {top}/file $d/hard; ln -s {top}/none $d/dangling; echo x > $d/dangling; \
         echo x > /proc/self/cwd/new; exec 3<file; echo x > /proc/self/fd/3; echo x > /dev/fd/3; rm -r $d"
    );
    let (ended, printed) = run(&guest, &no, &command).await;
    assert_eq!(no.asked(), ["bash Write file"], "{printed}");
    let mut paths = denied(&ended);
    paths.retain(|path| !path.starts_with('/'));
    assert_eq!(
        paths,
        ["file", "file", "none", "new"],
        "{:?} {printed}",
        ended.denied
    );
    assert_eq!(
        fs::read_to_string(guest.path("file")).expect("there"),
        "old\n"
    );
}

#[tokio::test]
async fn a_path_that_is_exchanged_while_it_is_opened_wins_nothing() {
    let guest = project().await;
    fs::write(guest.path("race.py"), RACE).expect("written");
    let no = Person::no();
    let n = podbay_soak::whole_or(20_000, 400);
    let (_, printed) = run(
        &guest,
        &no,
        &format!("d=$(mktemp -d); python3 race.py {n} $d file; rm -r $d"),
    )
    .await;
    assert!(printed.ends_with("done\n"), "{printed}");
    assert_eq!(
        fs::read_to_string(guest.path("file")).expect("there"),
        "old\n",
        "{printed}"
    );
    // The attack works where nothing is in its way.
    let (_, printed) = guest
        .bash(bash(
            "d=$(mktemp -d); python3 race.py 1000000 $d file; rm -r $d",
        ))
        .await;
    assert_ne!(
        fs::read_to_string(guest.path("file")).expect("there"),
        "old\n",
        "{printed}"
    );
}

#[tokio::test]
async fn pipes_with_names_and_the_supervisors_own_files_are_as_without_a_gate() {
    let guest = project().await;
    let no = Person::no();
    let command = "d=$(mktemp -d); mkfifo $d/p; (echo through > $d/p &); cat $d/p; (timeout 0.3 sh -c \"echo x > $d/p\"; echo $?); rm -r $d; \
                   echo 500 > /proc/self/oom_score_adj; cat /proc/self/oom_score_adj; \
                   (echo x > /proc/$PPID/mem) 2>/dev/null || echo refused; (: > /dev/tty) 2>&1 | grep -c 'No such device'; ls /proc/self/fd | wc -l";
    let (_, printed) = run(&guest, &no, command).await;
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines[..2], ["through", "124"], "{printed}");
    assert_eq!(lines[3..5], ["refused", "1"], "{printed}");
    assert_eq!(no.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn a_background_command_and_too_many_patterns_are_refused() {
    let guest = project().await;
    let refused = async |bash: Bash| match guest
        .call(Call::Bash(bash), &mut Vec::new())
        .await
        .expect("answers")
    {
        Output::Fault(Fault::Invalid { field, problem }) => format!("{field}: {problem}"),
        output => panic!("{output:?}"),
    };
    assert!(
        refused(Bash {
            background: true,
            ..gated("touch new", &[])
        })
        .await
        .starts_with("background: ")
    );
    let many = vec!["x"; 300];
    assert!(
        refused(gated("touch new", &many))
            .await
            .starts_with("write_gate: contains more patterns")
    );
    assert!(!guest.path("new").exists());
}

#[tokio::test]
async fn a_call_that_cannot_be_held_does_not_run() {
    let guest = TestGuest::below_a_listener().await;
    let output = guest
        .call(Call::Bash(gated("touch new", &[])), &mut Vec::new())
        .await
        .expect("answers");
    let Output::Fault(Fault::NotStarted { problem }) = output else {
        panic!("{output:?}")
    };
    assert!(
        problem.contains("held at its first write") && problem.contains("mode auto"),
        "{problem}"
    );
    assert!(!guest.path("new").exists());
    guest.bash(bash("touch new")).await;
    assert!(guest.path("new").exists());
}

#[tokio::test]
async fn a_process_that_may_not_be_looked_into_is_held_whatever_it_writes() {
    let guest = project().await;
    let no = Person::no();
    let hides = "import ctypes; ctypes.CDLL(None).prctl(4, 0); open(\"/tmp/podbay-hidden\", \"w\")";
    let (ended, _) = run(
        &guest,
        &no,
        &format!("python3 -c '{hides}'; rm -f /tmp/podbay-hidden"),
    )
    .await;
    // Root, as outside of a sandbox, may look into it all the same.
    if !nix::unistd::geteuid().is_root() {
        assert_eq!(
            (no.asked(), denied(&ended).len()),
            (
                vec!["python3 Write (its process hides where)".to_owned()],
                1
            )
        );
    }
}

#[tokio::test]
async fn many_that_write_at_once_wait_for_one_answer() {
    let guest = project().await;
    let slow = Person {
        after: Duration::from_millis(300),
        ..Person::yes()
    };
    let command = "for n in $(seq 40); do (echo $n > sub/$n) & done; wait; ls sub | wc -l; for n in $(seq 500); do echo x > sub/$n; done; rm -r sub";
    let (ended, printed) = run(&guest, &slow, command).await;
    assert_eq!(
        (printed.trim(), slow.asked().len(), ended.denied.len()),
        ("41", 1, 0),
        "{:?}",
        ended.denied
    );
    assert_eq!(ended.end, End::Exited { code: 0 });
    assert!(
        !guest.path("sub").exists()
            && slow.asked()[0].starts_with(&format!("bash {:?} sub/", WriteChange::Write))
    );
}
