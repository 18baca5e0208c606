//! Images: shown to a model that can see, and refused with a hint to one that cannot.

use podbay::app::Error;
use podbay::event::Answer;
use podbay::event::Decision;
use podbay::event::Kind;
use podbay::event::RunStatus;
use podbay::llm::Message;
use podbay::session::ResumeState;
use serde_json::json;

use crate::support::Desk;
use crate::support::ScriptedModel;
use crate::support::desk::Wishes;

pub(crate) const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x02\0\0\0\x03\x08\x06\0\0\0\xb9\xea\xde\x81and so on";

async fn desk(model: ScriptedModel) -> Desk {
    let model = model
        .calls("read_file", json!({"path": "a.png"}))
        .says("A cat.")
        .says("Still a cat.")
        .start()
        .await;
    let desk = Desk::new(model, Wishes::default()).await;
    std::fs::write(desk.guest.path("a.png"), PNG).expect("written");
    desk
}

#[tokio::test]
async fn a_model_that_sees_is_shown_an_image() {
    let desk = desk(ScriptedModel::new().sees()).await;
    let outcome = desk.work("what is it?").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "A cat.")
    );
    assert!(
        desk.results(1)[0].starts_with("a.png: image/png, 42 bytes"),
        "{:?}",
        desk.results(1)
    );
    let requests = desk.model.requests();
    let last = requests[1]["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("messages");
    assert_eq!(last["role"], "user");
    assert_eq!(
        last["content"][1]["image_url"]["url"],
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAIAAAADCAYAAAC56t6BYW5kIHNvIG9u"
    );
    assert_eq!(desk.work("sure?").await.response, "Still a cat.");
    desk.model.assert_append_only();
    // The log keeps words and a name, and the picture stands beside it.
    assert!(!format!("{:?}", desk.events()).contains("iVBOR"));
    assert!(desk.kinds().iter().any(
        |kind| matches!(kind, Kind::ImageShown { text, media_type, .. }
        if text == "a.png, as read_file found it." && media_type == "image/png")
    ));
}

#[tokio::test]
async fn a_session_that_goes_on_shows_its_images_again() {
    let desk = desk(ScriptedModel::new().sees()).await;
    desk.work("what is it?").await;
    let mut past = ResumeState::of(&desk.events());
    assert_eq!(past.load_images(&desk.artifacts), 0);
    let model = ScriptedModel::new()
        .sees()
        .says("Still a cat.")
        .start()
        .await;
    let again = Desk::new(
        model,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    assert_eq!(again.work("sure?").await.response, "Still a cat.");
    assert!(
        again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")),
        "to the byte"
    );
    assert!(again.model.requests()[0].to_string().contains("image_url"));
}

#[tokio::test]
async fn an_image_that_is_no_longer_kept_leaves_its_words() {
    let desk = desk(ScriptedModel::new().sees()).await;
    desk.work("what is it?").await;
    let mut events = desk.events();
    for (artifact, media_type) in [
        ("gone", "image/png"),
        ("../../etc/passwd", "image/png"),
        ("call", "text/html\"}"),
    ] {
        for event in &mut events {
            if let Kind::ImageShown {
                artifact: name,
                media_type: kind,
                ..
            } = &mut event.kind
            {
                (*name, *kind) = (artifact.to_owned(), media_type.to_owned());
            }
        }
        let mut past = ResumeState::of(&events);
        assert_eq!(past.load_images(&desk.artifacts), 1, "{artifact}");
        let words = |message: &Message| matches!(message, Message::User { text } if text == "a.png, as read_file found it.");
        assert!(past.history.messages().any(words));
        assert!(
            !past
                .history
                .messages()
                .any(|message| matches!(message, Message::Image { .. }))
        );
    }
}

#[tokio::test]
async fn a_model_that_does_not_see_is_told_what_can_be_done_instead() {
    for model in [ScriptedModel::new(), ScriptedModel::new().without_props()] {
        let desk = desk(model).await;
        assert_eq!(desk.work("what is it?").await.status, RunStatus::Completed);
        let result = &desk.results(1)[0];
        assert!(
            result.contains("PNG image (42 bytes)")
                && result.contains("images cannot be shown to you"),
            "{result}"
        );
        assert!(!desk.model.requests()[1].to_string().contains("image_url"));
    }
}

#[tokio::test]
async fn an_image_that_is_too_large_is_refused_by_its_size() {
    let desk = desk(ScriptedModel::new().sees()).await;
    std::fs::write(
        desk.guest.path("a.png"),
        [PNG, &vec![0; 4 << 20][..]].concat(),
    )
    .expect("written");
    desk.work("what is it?").await;
    assert!(
        desk.results(1)[0].contains("4194304"),
        "{:?}",
        desk.results(1)
    );
}

/// What a server says to a conversation with an image that it cannot use.
async fn check_objection(code: u16, words: &str, shows_again: bool) {
    let read = |model: ScriptedModel| model.calls("read_file", json!({"path": "a.png"}));
    let refusal =
        json!({"error": {"code": code, "message": words, "type": "invalid_request_error"}})
            .to_string();
    let model = read(ScriptedModel::new().sees())
        .status(code, refusal)
        .says("I cannot see it.");
    let model = read(model.says("Still not.")).says("Again.").start().await;
    let desk = Desk::new(model, Wishes::default()).await;
    std::fs::write(desk.guest.path("a.png"), PNG).expect("written");
    let outcome = desk.work("what is it?").await;
    assert_eq!(
        (outcome.status, outcome.response.as_str()),
        (RunStatus::Completed, "I cannot see it."),
        "{words}"
    );
    let requests = desk.model.requests();
    assert!(
        requests[1].to_string().contains("image_url")
            && !requests[2].to_string().contains("image_url"),
        "{}",
        requests[2]
    );
    let asked = requests[2].to_string();
    assert!(
        asked.contains("a.png, as read_file found it.") && asked.contains("cannot read an image"),
        "{asked}"
    );
    let warned = |kind: &Kind| matches!(kind, Kind::Warning { message } if message.contains("removed from the conversation") && message.contains(words));
    assert_eq!(desk.kinds().iter().filter(|kind| warned(kind)).count(), 1);
    // The conversation is good for more.
    assert_eq!(desk.work("sure?").await.response, "Still not.");
    assert!(!desk.model.requests()[3].to_string().contains("image_url"));
    // Whoever continues it knows what was learnt.
    let mut past = ResumeState::of(&desk.events());
    assert_eq!(
        (past.load_images(&desk.artifacts), past.is_blind),
        (0, !shows_again)
    );
    let again = read(ScriptedModel::new().sees()).says("Yes.").start().await;
    let again = Desk::new(
        again,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    std::fs::write(again.guest.path("a.png"), PNG).expect("written");
    again.work("look again").await;
    assert!(again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")));
    assert_eq!(
        again.model.requests()[1].to_string().contains("image_url"),
        shows_again,
        "{words}"
    );
    desk.work("once more").await;
    assert_eq!(
        desk.model.requests()[5].to_string().contains("image_url"),
        shows_again,
        "{words}"
    );
}

#[tokio::test]
async fn an_image_that_the_server_cannot_read_is_taken_out_and_the_task_goes_on() {
    check_objection(400, "Failed to load image or audio file", true).await;
    check_objection(
        500,
        "image input is not supported - hint: you may need to provide the mmproj",
        false,
    )
    .await;
}

/// A message that names images, to a model that sees unless told otherwise.
async fn named(model: ScriptedModel) -> Desk {
    let desk = Desk::new(
        model.says("A cat.").says("Another.").start().await,
        Wishes::default(),
    )
    .await;
    std::fs::create_dir(desk.guest.path("my shots")).expect("made");
    for name in ["a.png", "my shots/b c.png"] {
        std::fs::write(desk.guest.path(name), PNG).expect("written");
    }
    std::fs::write(desk.guest.path("text.png"), "no image").expect("written");
    desk
}

#[tokio::test]
async fn an_image_that_the_person_names_is_part_of_their_message() {
    let desk = named(ScriptedModel::new().sees()).await;
    assert_eq!(
        desk.work("what is in @a.png and @\"my shots/b c.png\"?")
            .await
            .response,
        "A cat."
    );
    let request = desk.model.requests().remove(0);
    let last = request["messages"]
        .as_array()
        .and_then(|messages| messages.last())
        .expect("messages");
    let text = last["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.starts_with("what is in @a.png")
            && text.contains("my shots/b c.png, which the user shows."),
        "{text}"
    );
    let urls: Vec<&str> = [1, 2]
        .iter()
        .filter_map(|n| last["content"][n]["image_url"]["url"].as_str())
        .collect();
    assert!(
        urls.len() == 2
            && urls
                .iter()
                .all(|url| url.starts_with("data:image/png;base64,iVBOR")),
        "{last}"
    );
    assert_eq!(desk.reached(), ["read_file", "read_file"]);
    assert_eq!(desk.work("and now?").await.response, "Another.");
    desk.model.assert_append_only();
    let mut past = ResumeState::of(&desk.events());
    assert_eq!(past.load_images(&desk.artifacts), 0);
    let model = ScriptedModel::new().sees().says("Still.").start().await;
    let again = Desk::new(
        model,
        Wishes {
            past,
            ..Wishes::default()
        },
    )
    .await;
    again.work("sure?").await;
    assert!(again.model.heads()[0].starts_with(desk.model.heads().last().expect("requests")));
}

#[tokio::test]
async fn an_image_that_cannot_be_shown_is_refused_before_anything_is_said() {
    let cases = [
        (
            "what is @text.png?",
            "it is not an image that a model can read",
        ),
        (
            "what is @large.png?",
            "`@large.png` cannot be shown: it has 4194346 bytes, and the limit for images is 4194304",
        ),
        (
            "@1.png @2.png @3.png @4.png @5.png @6.png @7.png @8.png @9.png",
            "more than 8 images",
        ),
    ];
    for (text, says) in cases {
        let desk = named(ScriptedModel::new().sees()).await;
        std::fs::write(
            desk.guest.path("large.png"),
            [PNG, &vec![0; 4 << 20][..]].concat(),
        )
        .expect("written");
        for n in 1..=9 {
            std::fs::write(desk.guest.path(&format!("{n}.png")), PNG).expect("written");
        }
        let outcome = desk.work(text).await;
        let failure = outcome.failure.expect("it cannot be shown");
        assert!(failure.to_string().contains(says), "{failure}");
        assert!(
            failure
                .hint()
                .is_some_and(|hint| hint.contains("without the @"))
        );
        assert_eq!(Error::Agent(failure).exit_code(), 2);
        assert_eq!(
            (outcome.status, desk.model.requests().len()),
            (RunStatus::Failed, 0)
        );
        assert!(
            !desk
                .kinds()
                .iter()
                .any(|kind| matches!(kind, Kind::UserMessage { .. }))
        );
        // The conversation is good for the same words without it.
        assert_eq!(desk.work(&text.replace('@', "")).await.response, "A cat.");
    }
}

fn warnings(desk: &Desk) -> Vec<String> {
    let warning = |kind: Kind| {
        if let Kind::Warning { message } = kind {
            Some(message)
        } else {
            None
        }
    };
    desk.kinds()
        .into_iter()
        .filter_map(warning)
        .filter(|message| message.contains('@'))
        .collect()
}

#[tokio::test]
async fn a_word_that_names_no_file_is_a_word() {
    for model in [ScriptedModel::new().sees(), ScriptedModel::new()] {
        let desk = named(model).await;
        std::fs::create_dir(desk.guest.path("folder.png")).expect("made");
        let text = "'@/assets/logo.png' @2x.png @https://x/a.png @a.png/b.png @folder.png";
        assert_eq!(desk.work(text).await.response, "A cat.");
        assert_eq!(warnings(&desk), [""; 0]);
        assert!(!desk.model.requests()[0].to_string().contains("image_url"));
    }
}

#[tokio::test]
async fn an_image_that_is_named_twice_is_shown_once() {
    let desk = named(ScriptedModel::new().sees()).await;
    std::fs::create_dir(desk.guest.path("sub")).expect("made");
    for name in ["copy.png", "sub/a.png"] {
        std::fs::write(desk.guest.path(name), PNG).expect("written");
    }
    desk.work("@a.png @./a.png @sub/../a.png @.//a.png and @copy.png @sub/a.png")
        .await;
    let shown: Vec<String> = desk
        .kinds()
        .into_iter()
        .filter_map(|kind| {
            if let Kind::ImageShown { text, .. } = kind {
                Some(text)
            } else {
                None
            }
        })
        .collect();
    let of = |name: &str| format!("{name}, which the user shows.");
    assert_eq!(
        shown,
        [of("a.png"), of("copy.png"), of("sub/a.png")],
        "a copy is another file"
    );
    // A link makes the same name another file.
    let desk = named(ScriptedModel::new().sees()).await;
    std::fs::create_dir_all(desk.guest.path("far/deep")).expect("made");
    std::fs::write(desk.guest.path("far/a.png"), [PNG, b"another"].concat()).expect("written");
    std::os::unix::fs::symlink("far/deep", desk.guest.path("sub")).expect("linked");
    desk.work("@a.png @sub/../a.png").await;
    assert_eq!(
        desk.model.requests()[0]
            .to_string()
            .matches("image_url\":{")
            .count(),
        2
    );
}

#[tokio::test]
async fn an_image_outside_of_the_project_is_warned_of_once() {
    for model in [ScriptedModel::new().sees(), ScriptedModel::new()] {
        let desk = named(model).await;
        std::os::unix::fs::symlink("../../etc", desk.guest.path("out")).expect("linked");
        assert_eq!(
            desk.work("@../x.png @../x.png and @out/x.png")
                .await
                .response,
            "A cat."
        );
        let warnings = warnings(&desk);
        assert!(
            warnings.len() == 2
                && warnings[0]
                    .contains("`@../x.png` is not shown to the model: it leads out of the project"),
            "{warnings:?}"
        );
        assert!(warnings[1].contains("`@out/x.png`"), "{warnings:?}");
    }
}

#[tokio::test]
async fn an_image_that_nobody_would_see_is_warned_of() {
    for model in [ScriptedModel::new(), ScriptedModel::new().without_props()] {
        let desk = named(model).await;
        assert_eq!(desk.work("what is @a.png?").await.response, "A cat.");
        let warnings = warnings(&desk);
        assert!(
            warnings.len() == 1
                && warnings[0].contains("`@a.png`")
                && warnings[0].contains("does not report"),
            "{warnings:?}"
        );
        assert!(!desk.model.requests()[0].to_string().contains("image_url"));
    }
}

#[tokio::test]
async fn a_rule_that_denies_reading_denies_showing() {
    for (rule, is_denied) in [
        ("read_file", true),
        ("read_file(**)", true),
        ("read_file(*.png)", true),
        ("read_file(*.jpg)", false),
    ] {
        let policy = podbay::policy::Options {
            deny: vec![rule.to_owned()],
            ..podbay::policy::Options::default()
        };
        let model = ScriptedModel::new().sees().says("A cat.").start().await;
        let desk = Desk::new(
            model,
            Wishes {
                policy,
                ..Wishes::default()
            },
        )
        .await;
        std::fs::write(desk.guest.path("a.png"), PNG).expect("written");
        assert_eq!(desk.work("what is @a.png?").await.response, "A cat.");
        assert_eq!(desk.reached().is_empty(), is_denied, "{rule}");
        assert_eq!(
            desk.model.requests()[0].to_string().contains("image_url"),
            !is_denied,
            "{rule}"
        );
        assert_eq!(
            warnings(&desk)
                .iter()
                .any(|warning| warning.contains(&format!("the rule `{rule}` denies it"))),
            is_denied,
            "{rule}"
        );
        let decided = |kind: &Kind| match kind {
            Kind::CallDecided {
                call,
                name,
                decision,
                ..
            } if name == "read_file" && call == "image:a.png" => Some(*decision),
            _ => None,
        };
        let decisions: Vec<Decision> = desk.kinds().iter().filter_map(decided).collect();
        assert_eq!(
            decisions,
            [if is_denied {
                Decision::Deny
            } else {
                Decision::Allow
            }],
            "{rule}"
        );
    }
}

#[tokio::test]
async fn a_hook_may_hold_back_what_would_be_shown_and_a_person_who_quits_says_nothing() {
    let hooks = "[[pre_tool_use]]\nrun = 'echo not that one >&2; exit 1'\nif = { tool = 'read_file', input_contains = 'a.png' }";
    let model = ScriptedModel::new().sees().says("A cat.").start().await;
    let desk = Desk::new(
        model,
        Wishes {
            hooks: toml::from_str(hooks).expect("hooks"),
            ..Wishes::default()
        },
    )
    .await;
    for name in ["a.png", "b.png"] {
        std::fs::write(desk.guest.path(name), PNG).expect("written");
    }
    desk.work("what is @a.png and @b.png?").await;
    assert_eq!(
        desk.reached()
            .iter()
            .filter(|call| *call == "read_file")
            .count(),
        1
    );
    assert!(
        warnings(&desk)
            .concat()
            .contains("a hook of the user blocks it: not that one"),
        "{:?}",
        warnings(&desk)
    );
    let held = |kind: &Kind| matches!(kind, Kind::CallDecided { decision: Decision::Deny, reason, .. } if reason.contains("not that one"));
    assert!(desk.kinds().iter().any(held));

    let policy = podbay::policy::Options {
        ask: vec!["read_file".to_owned()],
        ..podbay::policy::Options::default()
    };
    let model = ScriptedModel::new().sees().says("A cat.").start().await;
    let wishes = Wishes {
        mode: podbay::policy::Mode::Ask,
        policy,
        answers: vec![Answer::Quit.into()],
        ..Wishes::default()
    };
    let desk = Desk::new(model, wishes).await;
    std::fs::write(desk.guest.path("a.png"), PNG).expect("written");
    desk.work("what is @a.png?").await;
    assert!(desk.reached().is_empty() && desk.model.requests().is_empty());
}

#[tokio::test]
async fn images_that_a_log_lacks_are_known_by_their_number() {
    let desk = named(ScriptedModel::new().sees()).await;
    desk.work("what is in @a.png and @\"my shots/b c.png\"?")
        .await;
    let mut events = desk.events();
    assert_eq!(ResumeState::of(&events).n_unshown, 0);
    let last = events
        .iter()
        .rposition(|event| matches!(event.kind, Kind::ImageShown { .. }))
        .expect("images");
    events.truncate(last);
    assert_eq!(ResumeState::of(&events).n_unshown, 1);
}

/// Eight large images, and somebody who does not wait for them.
async fn check_end(end: impl FnOnce(&podbay::agent::Interrupt), seconds: u64, expected: RunStatus) {
    let agent = podbay::agent::Options {
        timeout: podbay::event::Seconds::new(seconds),
        ..podbay::agent::Options::default()
    };
    let model = ScriptedModel::new().sees().says("A cat.").start().await;
    let desk = Desk::new(
        model,
        Wishes {
            agent,
            ..Wishes::default()
        },
    )
    .await;
    for n in 0..8 {
        std::fs::write(
            desk.guest.path(&format!("{n}.png")),
            [PNG, &vec![7; 3 << 20][..]].concat(),
        )
        .expect("written");
    }
    let text: String = (0..8).map(|n| format!("@{n}.png ")).collect();
    let interrupt = podbay::agent::Interrupt::new();
    let begun = std::time::Instant::now()
        .checked_sub(std::time::Duration::from_secs(seconds))
        .expect("a machine that is up for so long");
    let mut agent = desk.agent.lock().await;
    let (outcome, ()) = tokio::join!(agent.run_since(begun, Some(&text), &interrupt), async {
        while seconds == 0 && desk.reached().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        end(&interrupt);
    });
    assert_eq!(outcome.status, expected);
    assert_eq!(desk.model.requests().len(), 0);
    assert!(desk.reached().len() < 8, "{:?}", desk.reached());
    assert!(
        !desk
            .kinds()
            .iter()
            .any(|kind| matches!(kind, Kind::UserMessage { .. } | Kind::ImageShown { .. }))
    );
}

#[tokio::test]
async fn nobody_has_to_wait_for_many_large_images() {
    check_end(podbay::agent::Interrupt::press, 0, RunStatus::Interrupted).await;
    check_end(podbay::agent::Interrupt::end, 0, RunStatus::Interrupted).await;
    check_end(|_| {}, 10, RunStatus::Limit).await;
}
