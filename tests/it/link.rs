//! The link against a peer that does not keep to the protocol.

use std::time::Duration;

use podbay::sandbox::link::CallUpdate;
use podbay::sandbox::link::Error;
use podbay::sandbox::link::Link;
use podbay::sandbox::link::Reason;
use podbay::wire::AskedProgram;
use podbay::wire::BytesPath;
use podbay::wire::Call;
use podbay::wire::CallId;
use podbay::wire::Change;
use podbay::wire::Changed;
use podbay::wire::CommandEnded;
use podbay::wire::End;
use podbay::wire::Fault;
use podbay::wire::FileChange;
use podbay::wire::MAX_QUESTIONS;
use podbay::wire::Output;
use podbay::wire::PROTOCOL;
use podbay::wire::frame;
use podbay::wire::keep::FindOrder;
use podbay::wire::keep::FindResult;
use podbay::wire::keep::MOST_HIDDEN;
use podbay::wire::keep::SecretPath;
use podbay::wire::message::Data;
use podbay::wire::message::DiskLimits;
use podbay::wire::message::Facts;
use podbay::wire::message::GuestHello;
use podbay::wire::message::Stream;
use podbay::wire::message::ToGuest;
use podbay::wire::message::ToHost;
use podbay::wire::message::WINDOW;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::io::DuplexStream;
use tokio_util::sync::CancellationToken;

use crate::support::guest::PATIENCE;
use crate::support::guest::bash;

/// A guest that does what the test says.
struct Evil(DuplexStream);

impl Evil {
    async fn say(&mut self, message: &ToHost) {
        let frame = frame::encode(message).expect("fits");
        self.raw(&(frame.len() as u32).to_be_bytes()).await;
        self.raw(&frame).await;
    }

    async fn raw(&mut self, bytes: &[u8]) {
        // A link that has given up reads no more; the test looks at what it says.
        let _ = self.0.write_all(bytes).await;
    }

    async fn hear(&mut self) -> ToGuest {
        let length = self.0.read_u32().await.expect("a frame");
        let mut bytes = vec![0; length as usize];
        self.0.read_exact(&mut bytes).await.expect("a whole frame");
        frame::decode(&bytes).expect("a message")
    }

    async fn hello(&mut self, protocol: u32, build: &str) {
        self.say(&ToHost::Hello(GuestHello {
            protocol,
            build: build.to_owned(),
            facts: Facts::default(),
        }))
        .await;
    }
}

fn pair() -> (DuplexStream, Evil) {
    let (ours, theirs) = tokio::io::duplex(16 * 1024);
    (ours, Evil(theirs))
}

async fn connect(stream: DuplexStream) -> Result<Link, Error> {
    Link::connect(
        stream,
        "build",
        DiskLimits::default(),
        Duration::from_secs(5),
        &CancellationToken::new(),
    )
    .await
    .map(|(link, _)| link)
}

async fn connected() -> (Link, Evil) {
    let (ours, mut evil) = pair();
    evil.hello(PROTOCOL, "build").await;
    let link = connect(ours).await.expect("greets");
    assert!(matches!(evil.hear().await, ToGuest::Hello(_)));
    (link, evil)
}

fn chunk(id: u32, bytes: usize) -> ToHost {
    ToHost::Chunk {
        id: CallId(id),
        stream: Stream::Stdout,
        data: Data(vec![0; bytes]),
    }
}

fn done(id: u32) -> ToHost {
    ToHost::Done {
        id: CallId(id),
        output: Output::Fault(Fault::Cancelled),
    }
}

/// Says something and returns why the link then ends.
async fn ends_after(said: &[ToHost]) -> Reason {
    let (link, mut evil) = connected().await;
    let _open = link.open(Call::Bash(bash("true"))).expect("opens");
    for message in said {
        evil.say(message).await;
    }
    tokio::time::timeout(PATIENCE, link.wait_ended())
        .await
        .expect("ends")
}

#[track_caller]
fn breaks_protocol(reason: &Reason, words: &str) {
    assert!(
        matches!(reason, Reason::Protocol(text) if text.contains(words)),
        "{reason:?}"
    );
}

#[tokio::test]
async fn a_hello_must_come_in_time_and_match() {
    let (ours, _evil) = pair();
    let late = Link::connect(
        ours,
        "build",
        DiskLimits::default(),
        Duration::from_millis(50),
        &CancellationToken::new(),
    )
    .await;
    assert!(matches!(late, Err(Error::NoHello { .. })));

    let (ours, mut evil) = pair();
    evil.hello(PROTOCOL + 1, "build").await;
    assert!(matches!(
        connect(ours).await,
        Err(Error::Protocol { ours: PROTOCOL, .. })
    ));

    let (ours, mut evil) = pair();
    evil.hello(PROTOCOL, "other\x1b[2J").await;
    let error = connect(ours).await.expect_err("builds differ");
    assert!(
        matches!(&error, Error::Build { theirs, .. } if theirs == "other\\u{1b}[2J"),
        "{error:?}"
    );

    let (ours, mut evil) = pair();
    evil.say(&chunk(0, 1)).await;
    assert!(matches!(
        connect(ours).await,
        Err(Error::Greet {
            reason: Reason::Protocol(_)
        })
    ));

    let (ours, evil) = pair();
    drop(evil);
    assert!(matches!(connect(ours).await, Err(Error::Greet { .. })));

    let (ours, _evil) = pair();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = Link::connect(ours, "build", DiskLimits::default(), PATIENCE, &cancel).await;
    assert!(matches!(result, Err(Error::Cancelled { .. })));
}

#[tokio::test]
async fn a_search_beside_the_calls_is_answered_once() {
    let found = FindResult {
        is_whole: true,
        ..FindResult::default()
    };
    let too_much = FindResult {
        auto_run: vec![BytesPath::from_bytes(vec![b'a'; 5000])],
        ..FindResult::default()
    };
    let check = async |said: [FindResult; 2], first: Option<FindResult>| {
        let (ours, mut evil) = pair();
        evil.hello(PROTOCOL, "build").await;
        let (disk, find) = (DiskLimits::default(), FindOrder::default());
        let cancel = CancellationToken::new();
        let connecting = Link::connect_searching(ours, "build", disk, find, PATIENCE, &cancel);
        let (link, _, receiver) = connecting.await.expect("greeted");
        for found in said {
            evil.say(&ToHost::Found(found)).await;
        }
        let reason = tokio::time::timeout(PATIENCE, link.wait_ended()).await;
        assert!(matches!(reason, Ok(Reason::Protocol(_))), "{reason:?}");
        assert_eq!(receiver.await.ok(), first);
    };
    check([found.clone(), found.clone()], Some(found.clone())).await;
    check([too_much, found], None).await;
}

#[tokio::test]
async fn what_a_guest_found_comes_next_when_it_was_asked_and_never_else() {
    let find = FindOrder {
        budget_ms: 1,
        ..FindOrder::default()
    };
    let looking = async |said: &[ToHost]| {
        let (ours, mut evil) = pair();
        evil.hello(PROTOCOL, "build").await;
        for message in said {
            evil.say(message).await;
        }
        drop(evil);
        let cancel = CancellationToken::new();
        let connected = Link::connect_looking(
            ours,
            "build",
            DiskLimits::default(),
            Some(find.clone()),
            PATIENCE,
            &cancel,
        )
        .await;
        connected.map(|(_, _, found)| found)
    };
    let secret = |path: &str| SecretPath {
        path: BytesPath::from_bytes(path),
        is_folder: false,
    };
    let found = FindResult {
        secrets: vec![secret(".env")],
        is_whole: true,
        ..FindResult::default()
    };
    assert_eq!(
        looking(&[ToHost::Found(found.clone())])
            .await
            .expect("looked"),
        Some(found.clone())
    );
    let many = FindResult {
        secrets: vec![secret("a"); MOST_HIDDEN + 1],
        ..FindResult::default()
    };
    let long = FindResult {
        auto_run: vec![BytesPath::from_bytes(vec![b'a'; 5000])],
        ..FindResult::default()
    };
    for (said, words) in [
        (ToHost::Found(many), "more was found"),
        (ToHost::Found(long), "more was found"),
        (done(0), "not what was found"),
    ] {
        let error = looking(&[said]).await.expect_err(words);
        let Error::Greet { reason } = error else {
            panic!("{error:?}")
        };
        breaks_protocol(&reason, words);
    }
    let closing = looking(&[ToHost::Closing {
        reason: "look through the project".to_owned(),
    }])
    .await
    .expect_err("it could not look");
    assert!(
        closing.to_string().contains("look through the project"),
        "{closing}"
    );
    assert!(matches!(
        looking(&[]).await,
        Err(Error::Greet {
            reason: Reason::EndOfStream
        })
    ));
    breaks_protocol(
        &ends_after(&[ToHost::Found(found)]).await,
        "nobody looks for",
    );
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_link_before_its_bytes_come() {
    let (link, mut evil) = connected().await;
    evil.raw(&(frame::MAX_FRAME as u32 + 1).to_be_bytes()).await;
    breaks_protocol(&link.wait_ended().await, "longer than");
}

#[tokio::test]
async fn what_is_no_message_ends_the_link() {
    for bytes in [
        &b"\0\0\0\x04nope"[..],
        b"\0\0\0\0",
        b"\0\0\0\x02\xff\xfe",
        b"\0\0\0\x0f{\"type\":\"open\"}",
    ] {
        let (link, mut evil) = connected().await;
        evil.raw(bytes).await;
        breaks_protocol(&link.wait_ended().await, "not what the protocol says");
    }
    let (link, mut evil) = connected().await;
    let deep = "[".repeat(100_000);
    evil.raw(&(deep.len() as u32).to_be_bytes()).await;
    evil.raw(deep.as_bytes()).await;
    breaks_protocol(&link.wait_ended().await, "not what the protocol says");
}

#[tokio::test]
async fn the_end_in_the_middle_of_a_frame_is_no_clean_end() {
    let (link, mut evil) = connected().await;
    evil.raw(b"\0\0\x01\0{\"type\"").await;
    drop(evil);
    assert_eq!(
        link.wait_ended().await,
        Reason::Broken("it ended in the middle of a frame".to_owned())
    );

    let (link, evil) = connected().await;
    drop(evil);
    assert_eq!(link.wait_ended().await, Reason::EndOfStream);
}

#[tokio::test]
async fn output_beyond_the_credit_ends_the_link() {
    let pieces: Vec<ToHost> = (0..=WINDOW / 32_768).map(|_| chunk(0, 32_768)).collect();
    breaks_protocol(&ends_after(&pieces).await, "credit");
    // Single bytes cost more than they weigh.
    let drops: Vec<ToHost> = (0..=WINDOW / 64).map(|_| chunk(0, 1)).collect();
    breaks_protocol(&ends_after(&drops).await, "credit");
    breaks_protocol(&ends_after(&[chunk(0, 0)]).await, "a chunk of 0 bytes");
    breaks_protocol(
        &ends_after(&[chunk(0, 49_153)]).await,
        "a chunk of 49153 bytes",
    );
    breaks_protocol(
        &ends_after(&[ToHost::Credit {
            id: CallId(0),
            bytes: u32::MAX,
        }])
        .await,
        "credit",
    );
    let hello = ToHost::Hello(GuestHello {
        protocol: PROTOCOL,
        build: "build".to_owned(),
        facts: Facts::default(),
    });
    breaks_protocol(&ends_after(&[hello]).await, "hello");
}

#[tokio::test]
async fn what_nobody_asked_for_is_dropped_until_it_is_too_much() {
    let (link, mut evil) = connected().await;
    let mut open = link.open(Call::Bash(bash("true"))).expect("opens");
    for message in [chunk(77, 5), done(77), done(0), done(0)] {
        evil.say(&message).await;
    }
    assert!(matches!(open.recv().await, Some(CallUpdate::Done(_))));
    assert_eq!(link.ended(), None);
    for _ in 0..1001 {
        evil.say(&done(0)).await;
    }
    breaks_protocol(&link.wait_ended().await, "not under way");
}

#[tokio::test]
async fn the_words_of_a_guest_that_closes_are_made_harmless() {
    let reason = ends_after(&[ToHost::Closing {
        reason: format!("\x1b]0;x\x07{}", "y".repeat(10_000)),
    }])
    .await;
    let Reason::Closing(text) = reason else {
        panic!("{reason:?}")
    };
    assert!(
        text.starts_with("\\u{1b}]0;x") && text.chars().count() < 600,
        "{text}"
    );
}

#[tokio::test]
async fn a_guest_that_ignores_cancel_is_called_unresponsive() {
    let (link, _evil) = connected().await;
    let (cancelled, waiting) = (CancellationToken::new(), CancellationToken::new());
    cancelled.cancel();
    let call =
        |cancel, deadline| link.call(Call::Bash(bash("true")), |_, _: &[u8]| {}, cancel, deadline);
    let (stopped, late) = tokio::join!(
        call(&cancelled, PATIENCE),
        call(&waiting, Duration::from_millis(10))
    );
    let (stopped, late) = (
        stopped.expect_err("no answer"),
        late.expect_err("no answer"),
    );
    assert!(matches!(stopped, Error::Unresponsive { .. }), "{stopped}");
    assert!(
        matches!(late, Error::Overdue { .. })
            && late.to_string().contains("longer than its limit of"),
        "{late}"
    );
}

/// What was done is told as done, however late; only what the guest stopped came to nothing.
#[tokio::test]
async fn an_answer_that_comes_late_is_given_unless_the_call_was_stopped() {
    let change = FileChange {
        path: "d".into(),
        change: Change::Deleted,
        entries: Some(3),
        ..FileChange::default()
    };
    let done = Output::Changed(Changed {
        files: vec![change],
        ..Changed::default()
    });
    let ended = |end| Output::Command(CommandEnded::plain(end));
    let gone = Output::Fault(Fault::Changed { path: "d".into() });
    for (answer, is_given) in [
        (done, true),
        (gone, true),
        (ended(End::Exited { code: 0 }), true),
        (ended(End::Cancelled), false),
        (Output::Fault(Fault::Cancelled), false),
    ] {
        let (link, mut evil) = connected().await;
        let cancel = CancellationToken::new();
        let call = link.call(
            Call::Bash(bash("true")),
            |_, _: &[u8]| {},
            &cancel,
            Duration::from_millis(10),
        );
        let answers = async {
            while !matches!(evil.hear().await, ToGuest::Cancel { .. }) {}
            evil.say(&ToHost::Done {
                id: CallId(0),
                output: answer.clone(),
            })
            .await;
        };
        let (given, ()) = tokio::join!(call, answers);
        match given {
            Ok(given) => assert!(is_given && given == answer, "{given:?}"),
            Err(error) => assert!(
                !is_given && matches!(error, Error::TimedOut { .. }),
                "{error}"
            ),
        }
    }
}

#[tokio::test]
async fn a_guest_that_reads_nothing_cannot_make_the_host_queue_without_end() {
    let (link, mut evil) = connected().await;
    let mut open = link.open(Call::Bash(bash("true"))).expect("opens");
    let flood = async {
        loop {
            if link.ended().is_some() {
                return;
            }
            evil.say(&chunk(0, 1000)).await;
        }
    };
    let consume = async { while open.recv().await.is_some() {} };
    tokio::time::timeout(PATIENCE, async { tokio::join!(flood, consume) })
        .await
        .expect("ends");
    breaks_protocol(&link.wait_ended().await, "unread");
}

#[tokio::test]
async fn calls_and_their_length_are_bounded() {
    let (link, _evil) = connected().await;
    let open: Vec<_> = (0..64)
        .map(|_| link.open(Call::Bash(bash("true"))).expect("opens"))
        .collect();
    assert!(matches!(
        link.open(Call::Bash(bash("true"))),
        Err(Error::TooManyCalls { .. })
    ));
    drop(open);
    let (link, _evil) = connected().await;
    let huge = Call::Bash(bash(&"x".repeat(frame::MAX_FRAME)));
    assert!(matches!(link.open(huge), Err(Error::TooLong { .. })));
    assert_eq!(link.ended(), None);
}

#[tokio::test]
async fn the_end_of_the_link_ends_its_calls() {
    let (link, _evil) = connected().await;
    let cancel = CancellationToken::new();
    let call = link.call(
        Call::Bash(bash("sleep 1")),
        |_, _: &[u8]| {},
        &cancel,
        PATIENCE,
    );
    let (result, ()) = tokio::join!(call, async { link.close() });
    let error = result.expect_err("has ended");
    assert_eq!(
        error.to_string(),
        "run `sleep 1`: this end closed the stream"
    );
    assert!(matches!(
        link.open(Call::Bash(bash("true"))),
        Err(Error::Ended {
            reason: Reason::Closed,
            ..
        })
    ));
}

#[tokio::test]
async fn answers_in_any_order_find_their_calls() {
    let (link, mut evil) = connected().await;
    let mut open: Vec<_> = (0..3)
        .map(|_| link.open(Call::Bash(bash("true"))).expect("opens"))
        .collect();
    let said = |id: u32| {
        Output::Fault(Fault::Invalid {
            field: "call".to_owned(),
            problem: id.to_string(),
        })
    };
    // Backwards, each twice, and the first again when it is long over.
    for id in [2, 2, 1, 0, 1, 0, 2] {
        evil.say(&ToHost::Done {
            id: CallId(id),
            output: said(id),
        })
        .await;
        evil.say(&chunk(id, 5)).await;
    }
    for (id, open) in open.iter_mut().enumerate() {
        let update = tokio::time::timeout(PATIENCE, open.recv())
            .await
            .expect("in time");
        assert!(
            matches!(&update, Some(CallUpdate::Done(output)) if *output == said(id as u32)),
            "{id}: {update:?}"
        );
        let after = tokio::time::timeout(PATIENCE, open.recv())
            .await
            .expect("in time");
        assert!(after.is_none(), "{id}: {after:?}");
    }
    assert_eq!(link.ended(), None, "a few stray frames are no reason");
}

#[tokio::test]
async fn a_hello_that_drips_is_given_up_in_time() {
    let (ours, mut evil) = pair();
    let dripping = tokio::spawn(async move {
        evil.raw(&(1000_u32).to_be_bytes()).await;
        loop {
            evil.raw(b" ").await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    });
    let cancel = CancellationToken::new();
    let greeting = Link::connect(
        ours,
        "build",
        DiskLimits::default(),
        Duration::from_millis(300),
        &cancel,
    );
    let outcome = tokio::time::timeout(PATIENCE, greeting)
        .await
        .expect("its time is over before that");
    assert!(matches!(outcome, Err(Error::NoHello { .. })), "{outcome:?}");
    dripping.abort();
}

fn asks(id: u32, question: u32, word: &str) -> ToHost {
    let program = AskedProgram {
        argv: vec![word.into()],
        truncated: false,
        directory: "/".into(),
        file: "/x".into(),
        rule: "x".into(),
        write: None,
    };
    ToHost::Asks {
        id: CallId(id),
        question,
        program,
    }
}

#[tokio::test]
async fn a_guest_asks_one_bounded_question_at_a_time_and_not_without_end() {
    breaks_protocol(
        &ends_after(&[asks(0, 0, "a"), asks(0, 1, "b")]).await,
        "more questions",
    );
    breaks_protocol(
        &ends_after(&[asks(0, 1_000_000, "a")]).await,
        "more questions",
    );
    breaks_protocol(
        &ends_after(&[asks(0, 0, &"a".repeat(100_000))]).await,
        "longer than it may be",
    );
    let (link, mut evil) = connected().await;
    let mut open = link.open(Call::Bash(bash("true"))).expect("opens");
    assert!(matches!(evil.hear().await, ToGuest::Call { .. }));
    // One about no call goes nowhere.
    evil.say(&asks(9, 0, "a")).await;
    for n in 0..MAX_QUESTIONS {
        evil.say(&asks(0, n, "a")).await;
        assert!(
            matches!(open.recv().await, Some(CallUpdate::Asked { question, .. }) if question == n)
        );
        // An answer to another one is about nothing, and one that is given twice is given once.
        open.answer(n + 1, true);
        open.answer(n, n % 2 == 0);
        open.answer(n, true);
        assert_eq!(
            evil.hear().await,
            ToGuest::Answer {
                id: CallId(0),
                question: n,
                go_on: n % 2 == 0
            }
        );
    }
    evil.say(&asks(0, MAX_QUESTIONS, "a")).await;
    breaks_protocol(&link.wait_ended().await, "more questions");
}

#[tokio::test]
async fn where_nobody_can_be_asked_the_answer_is_no_and_after_a_cancel_none_is_waited_for() {
    let (link, mut evil) = connected().await;
    let cancel = CancellationToken::new();
    let call = link.call(
        Call::Bash(bash("true")),
        |_, _: &[u8]| {},
        &cancel,
        PATIENCE,
    );
    let guest = async {
        assert!(matches!(evil.hear().await, ToGuest::Call { .. }));
        evil.say(&asks(0, 0, "a")).await;
        assert_eq!(
            evil.hear().await,
            ToGuest::Answer {
                id: CallId(0),
                question: 0,
                go_on: false
            }
        );
        cancel.cancel();
        assert!(matches!(evil.hear().await, ToGuest::Cancel { .. }));
        evil.say(&asks(0, 1, "a")).await;
        assert_eq!(
            evil.hear().await,
            ToGuest::Answer {
                id: CallId(0),
                question: 1,
                go_on: false
            }
        );
        evil.say(&done(0)).await;
    };
    let (output, ()) = tokio::join!(call, guest);
    assert!(
        matches!(output, Ok(Output::Fault(Fault::Cancelled))),
        "{output:?}"
    );
}

#[test]
fn a_guest_has_seven_words_and_asks_one_thing() {
    // By the seventh it asks whether a program that waits in the sandbox continues there, and the answer
    // can mean nothing else. Whoever adds a word here has to say why it asks the host for nothing;
    // docs/protocol.md and docs/security-cases.md count on it.
    let error = frame::decode::<ToHost>(br#"{"type":"open_on_host","path":"/etc/passwd"}"#)
        .expect_err("no such word");
    let source = std::error::Error::source(&error)
        .expect("the parser's words")
        .to_string();
    assert!(
        source.contains(
            "expected one of `hello`, `found`, `chunk`, `credit`, `done`, `asks`, `closing`"
        ),
        "{source}"
    );
}
