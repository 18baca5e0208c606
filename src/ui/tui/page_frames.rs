//! Frames of the review and of the first start, at three sizes.

use crossterm::event::KeyCode;
use crossterm::event::KeyModifiers;
use tokio::sync::oneshot;

use super::frames::Stage;
use super::page::Page;
use super::review::Review;
use super::review::ReviewChoice;
use super::review::ReviewFile;
use super::review::ReviewView;
use super::screen::Told;
use super::start::Start;
use super::start::StartChoice;
use super::start::StartOption;
use super::start::StartView;

fn view() -> ReviewView {
    let file = |name: &str, sign, added, removed| ReviewFile {
        name: name.to_owned(),
        sign,
        lines: Some((added, removed)),
        ..ReviewFile::default()
    };
    let divisible = ReviewFile {
        hunks: vec![
            "@@ -1,4 +1,4 @@\n def add(a, b):\n-    return a - b\n+    return a + b\n \n".to_owned(),
            "@@ -20,3 +20,5 @@\n def mul(a, b):\n+    # \u{202e}hidden\n+    assert a\n     return a * b\n"
                .to_owned(),
        ],
        is_divisible: true,
        ..file("src/app.py", 'M', 3, 1)
    };
    ReviewView {
        title: "review 3f2a91c0 · fix the failing test".to_owned(),
        files: vec![
            divisible,
            ReviewFile {
                runs: Some("make runs what it says".to_owned()),
                hunks: vec!["@@ -1 +1 @@\n-test: old\n+test: new\n".to_owned()],
                is_divisible: true,
                ..file("Makefile", 'M', 1, 1)
            },
            ReviewFile {
                runs: Some("a shell with direnv runs it in this folder".to_owned()),
                runs_by_itself: true,
                head: vec!["new file mode 100644".to_owned()],
                hunks: vec!["@@ -0,0 +1 @@\n+export A=1\n".to_owned()],
                ..file(".envrc", 'A', 1, 0)
            },
            ReviewFile {
                is_conflict: true,
                ..file(
                    "docs/a-rather-long-folder-name/another-one/guide.md",
                    'M',
                    2,
                    2,
                )
            },
        ],
        notes: vec!["1 commit on main is pending".to_owned()],
        discard: Some("Discard all of these changes for good".to_owned()),
    }
}

fn review(stage: &mut Stage) -> oneshot::Receiver<ReviewChoice> {
    let (answer, answered) = oneshot::channel();
    stage.told(Told::Page(Page::Review {
        review: Box::new(Review::new(view())),
        answer,
    }));
    stage.frame(80, 24);
    answered
}

fn key(stage: &mut Stage, code: KeyCode) {
    stage.key(code, KeyModifiers::NONE);
}

#[test]
fn a_review_shows_files_counts_and_what_may_run() {
    let mut stage = Stage::ready();
    let _answered = review(&mut stage);
    stage.check("review");
}

#[test]
fn one_hunk_is_left_and_the_question_says_what_is_applied() {
    let mut stage = Stage::ready();
    let mut answered = review(&mut stage);
    key(&mut stage, KeyCode::Tab);
    key(&mut stage, KeyCode::Down);
    stage.frame(80, 24);
    stage.types(" ");
    stage.check("review_hunks");
    stage.types("\n");
    stage.check("review_apply");
    stage.types("x");
    assert!(answered.try_recv().is_err(), "another key goes back");
    stage.types("\ny");
    assert_eq!(
        answered.try_recv().expect("decided"),
        ReviewChoice::Apply(vec![Some(vec![0]), Some(vec![0]), None, Some(vec![0])])
    );
    assert!(stage.screen.over.is_none());
}

#[test]
fn what_runs_by_itself_is_taken_only_by_its_own_key() {
    let mut stage = Stage::ready();
    let mut answered = review(&mut stage);
    stage.types("na");
    key(&mut stage, KeyCode::Down);
    key(&mut stage, KeyCode::Down);
    stage.types(" ");
    key(&mut stage, KeyCode::Up);
    stage.types(" \ny");
    assert_eq!(
        answered.try_recv().expect("decided"),
        ReviewChoice::Apply(vec![Some(vec![0, 1]), None, Some(vec![0]), Some(vec![0])])
    );
}

#[test]
fn a_review_is_left_or_discarded_and_nothing_taken_is_not_applied() {
    let mut stage = Stage::ready();
    let mut answered = review(&mut stage);
    stage.types("n\ny");
    assert!(answered.try_recv().is_err(), "nothing is taken");
    stage.types("q");
    assert_eq!(answered.try_recv().expect("decided"), ReviewChoice::Quit);
    let mut answered = review(&mut stage);
    stage.types("dn");
    assert!(answered.try_recv().is_err(), "it was not confirmed");
    stage.types("dy");
    assert_eq!(answered.try_recv().expect("decided"), ReviewChoice::Discard);
    let mut answered = review(&mut stage);
    stage.control('c');
    assert_eq!(answered.try_recv().expect("decided"), ReviewChoice::Quit);
}

#[test]
fn no_change_in_a_review_is_out_of_sight() {
    let mut stage = Stage::ready();
    let _answered = review(&mut stage);
    let frame = stage.frame(140, 45);
    assert!(
        frame.contains("\\u{202e}hidden") && !frame.contains('\u{202e}'),
        "{frame}"
    );
    for size in 1..60 {
        stage.frame(size, 60 - size);
    }
}

fn start_view() -> StartView {
    let option = |title: &str, detail: &str, asks_for_model| StartOption {
        title: title.to_owned(),
        detail: detail.to_owned(),
        asks_for_model,
    };
    StartView {
        models: vec![
            option(
                "Ollama on this machine",
                "http://127.0.0.1:11434/v1, with qwen3-coder",
                false,
            ),
            option(
                "Podbay's own model server",
                "qwen2.5-coder-7b, 4.4 GiB to load, about 7 min at 100 Mbit/s",
                false,
            ),
            option(
                "openai, by the key in OPENAI_API_KEY",
                "https://api.openai.com/v1; your code is sent there",
                true,
            ),
        ],
        freedoms: vec![
            option(
                "It works freely (recommended)",
                "each turn's changes are shown, and can be undone",
                false,
            ),
            option(
                "It shows each turn's changes first",
                "you apply or drop them before they reach your files",
                false,
            ),
            option(
                "It asks before each change",
                "reading needs no question; changes can be undone",
                false,
            ),
            option(
                "You are the architect",
                "it asks about each step, and about what the task leaves open",
                false,
            ),
        ],
        file: "~/.config/podbay/config.toml".to_owned(),
    }
}

fn start(stage: &mut Stage) -> oneshot::Receiver<Option<StartChoice>> {
    let (answer, answered) = oneshot::channel();
    stage.told(Told::Page(Page::Start {
        start: Box::new(Start::new(start_view())),
        answer,
    }));
    answered
}

#[test]
fn the_first_start_asks_two_questions_on_one_screen() {
    let mut stage = Stage::new();
    let mut answered = start(&mut stage);
    stage.check("start_model");
    key(&mut stage, KeyCode::Down);
    stage.types("\n");
    stage.check("start_freedom");
    stage.types("2\n");
    assert_eq!(
        answered.try_recv().expect("answered"),
        Some(StartChoice {
            model: Some(1),
            name: String::new(),
            freedom: 1,
        })
    );
}

#[test]
fn a_service_is_chosen_with_a_model_by_name() {
    let mut stage = Stage::new();
    let mut answered = start(&mut stage);
    stage.types("3\n\n");
    assert!(stage.frame(80, 24).contains("Name of the model"));
    stage.screen.paste(" gpt-5 ", stage.now);
    stage.types("-mini\n\n");
    assert_eq!(
        answered.try_recv().expect("answered"),
        Some(StartChoice {
            model: Some(2),
            name: "gpt-5-mini".to_owned(),
            freedom: 0,
        })
    );
    let mut answered = start(&mut stage);
    key(&mut stage, KeyCode::Esc);
    assert_eq!(answered.try_recv().expect("answered"), None);
}
