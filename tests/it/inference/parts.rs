//! One file in several parts, and what the hub says of it.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use podbay::event::ProgressSink;
use podbay::event::Secret;
use podbay::inference;
use podbay::inference::CompletedDownload;
use podbay::inference::Download;
use podbay::inference::DownloadLimits;
use podbay::inference::Error;
use podbay::inference::ExpectedFile;
use podbay::llm::http;
use tokio_util::sync::CancellationToken;

use super::hub::Hub;
use super::hub::model;
use super::hub::sha256;

const SIZE: usize = 1_000_003;

struct Case {
    folder: tempfile::TempDir,
    hub: Hub,
    file: Vec<u8>,
}

impl Case {
    fn new() -> Self {
        let file = model(SIZE);
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            hub: Hub::start(file.clone()),
            file,
        }
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("m.gguf")
    }

    fn download(&self, token: Option<&str>) -> Download {
        let base = self.hub.url.parse().expect("an address");
        Download {
            url: format!("{}/a/b/resolve/main/m.gguf", self.hub.url),
            expected: ExpectedFile::default(),
            hub: Some(inference::Hub {
                base,
                token: token.map(Secret::new),
            }),
            to: self.to(),
            task: "loading".to_owned(),
            room: 0,
            is_model: true,
        }
    }

    async fn fetch(&self) -> Result<CompletedDownload, Error> {
        // Only who falls silent is worth little patience: a busy machine may answer late.
        let idle = Duration::from_millis(if self.hub.manners().budget.is_some() {
            300
        } else {
            10_000
        });
        fetch(&self.download(None), idle).await
    }

    #[track_caller]
    fn arrived(&self, loaded: &CompletedDownload) {
        assert!(fs::read(self.to()).expect("it has its name") == self.file);
        assert_eq!(
            (loaded.size, &loaded.sha256),
            (self.file.len() as u64, &sha256(&self.file))
        );
        assert_eq!(
            fs::read_dir(self.folder.path()).expect("a folder").count(),
            1,
            "nothing else is left"
        );
    }

    async fn fails(&self, because: &str) -> Error {
        let error = self.fetch().await.expect_err("it must not arrive");
        assert!(error.to_string().contains(because), "{error}");
        assert!(error.hint().is_some() && !self.to().exists());
        error
    }
}

async fn fetch(download: &Download, idle: Duration) -> Result<CompletedDownload, Error> {
    let client = http::client(&http::Settings {
        tls: false,
        ..http::Settings::default()
    })
    .expect("a client");
    let pause = Duration::from_millis(1);
    let patience = DownloadLimits {
        idle,
        slowest: 1 << 10,
        retries: 2,
        least: 4096,
        pause,
        connections: 4,
        stretch: 100_000,
    };
    let progress: ProgressSink = Arc::new(|_| {});
    let cancel = CancellationToken::new();
    tokio::time::timeout(
        Duration::from_secs(60),
        download.fetch(&client, &patience, &progress, &cancel),
    )
    .await
    .expect("bounded")
}

#[tokio::test]
async fn four_connections_load_a_file_whose_hash_the_hub_tells() {
    let case = Case::new();
    case.hub.manners().slowly = Some(Duration::from_millis(20));
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    assert!(loaded.checked);
    assert!(case.hub.most_at_once() > 1, "the parts come side by side");
    let mut ranges = case.hub.ranges();
    ranges.sort();
    assert_eq!(
        ranges,
        [
            "bytes=0-250000",
            "bytes=0-3",
            "bytes=250001-500001",
            "bytes=500002-750002",
            "bytes=750003-1000002"
        ]
    );
}

#[tokio::test]
async fn the_token_goes_to_the_hub_and_not_to_where_it_points() {
    let case = Case::new();
    fetch(&case.download(Some("hf_sesame")), Duration::from_secs(10))
        .await
        .expect("it arrives");
    let (hub, store): (Vec<_>, Vec<_>) =
        case.hub.asked().into_iter().partition(|asked| asked.is_hub);
    assert!(
        !hub.is_empty()
            && hub
                .iter()
                .all(|asked| asked.token.as_deref() == Some("Bearer hf_sesame")),
        "{hub:?}"
    );
    assert!(
        !store.is_empty() && store.iter().all(|asked| asked.token.is_none()),
        "{store:?}"
    );
}

#[tokio::test]
async fn each_part_goes_on_where_its_connection_was_cut() {
    let case = Case::new();
    case.hub.manners().cut = Some(90_000);
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    // Four parts of a quarter of a million, three connections each, and the first question.
    assert_eq!(case.hub.ranges().len(), 13, "{:?}", case.hub.ranges());
}

#[tokio::test]
async fn a_server_that_cuts_every_connection_short_is_given_up() {
    let case = Case::new();
    case.hub.manners().cut = Some(1000);
    let error = case.fails("the connection failed").await;
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("the next attempt resumes there")),
        "{error:?}"
    );
    // Of four parts at once, each is given up after three connections; the first that is ends the
    // others.
    let n_ranges = case.hub.ranges().len();
    assert!((4..=13).contains(&n_ranges), "{n_ranges} connections");
    // What came is kept, and a better day continues from there.
    case.hub.manners().cut = None;
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    assert!(
        !case
            .hub
            .ranges()
            .split_off(n_ranges)
            .contains(&"bytes=0-250000".to_owned())
    );

    // One that does not do parts begins anew each time, and never gets further.
    let case = Case::new();
    case.hub.manners().has_parts = false;
    case.hub.manners().cut = Some(500_000);
    case.fails("the connection failed").await;
    assert!(case.hub.asked().len() < 20, "{:?}", case.hub.asked());
}

#[tokio::test]
async fn a_server_without_parts_is_asked_for_the_whole() {
    let case = Case::new();
    case.hub.manners().has_parts = false;
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);

    // It did parts until a moment ago: what is there is of no use, and the whole comes in one
    // piece.
    let case = Case::new();
    case.hub.falls_silent_after(200_000);
    case.fails("said nothing").await;
    case.hub.manners().budget = None;
    case.hub.manners().has_parts = false;
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
}

#[tokio::test]
async fn a_hash_that_is_not_the_files_keeps_it_out() {
    let case = Case::new();
    case.hub.manners().sha256 = Some("ab".repeat(32));
    let error = case.fails("SHA-256").await;
    assert!(matches!(error, Error::WrongHash { .. }));
    assert_eq!(
        fs::read_dir(case.folder.path()).expect("a folder").count(),
        0,
        "wrong bytes are thrown away"
    );
}

#[tokio::test]
async fn what_the_hub_and_its_store_say_of_the_size_must_agree() {
    for lie in [SIZE as u64 - 1, SIZE as u64 + 1, 0] {
        let case = Case::new();
        case.hub.manners().size = Some(lie);
        case.fails(&format!("{SIZE} bytes instead of {lie}")).await;
        assert!(
            case.hub.ranges().len() <= 1,
            "nothing is loaded: {:?}",
            case.hub.ranges()
        );
    }
    for lie in [SIZE as u64 - 1, SIZE as u64 + 1] {
        let case = Case::new();
        case.hub.manners().total = Some(lie);
        case.fails("instead of").await;
    }
}

#[tokio::test]
async fn a_page_is_no_model() {
    let case = Case::new();
    case.hub.manners().page = Some("<!doctype html><title>Sign in</title>");
    case.fails("a web page").await;

    // One that does not say what it is.
    let case = Case::new();
    case.hub.manners().file = Arc::new(b"<!doctype html> and so on".repeat(1000));
    case.fails("not a GGUF file").await;
    assert_eq!(case.hub.ranges(), ["bytes=0-3"]);
}

#[tokio::test]
async fn a_model_that_nobody_told_the_hash_of_must_at_least_be_one() {
    let case = Case::new();
    case.hub.manners().is_silent = true;
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    assert!(!loaded.checked);

    // It begins like one.
    let case = Case::new();
    case.hub.manners().is_silent = true;
    case.hub.manners().file = Arc::new([b"GGUF".to_vec(), vec![0xff; 200_000]].concat());
    case.fails("not a model").await;
    assert_eq!(
        fs::read_dir(case.folder.path()).expect("a folder").count(),
        0
    );
}

#[tokio::test]
async fn a_hub_that_stalls_or_refuses_is_given_up() {
    let case = Case::new();
    case.hub.falls_silent_after(0);
    case.fails("said nothing").await;
    for (status, words) in [
        ("401 Unauthorized", "401"),
        ("404 Not Found", "404"),
        ("503 Service Unavailable", "503"),
        ("429 Too Many Requests", "429"),
    ] {
        let case = Case::new();
        case.hub.manners().status = Some(status);
        case.fails(words).await;
    }
}

#[tokio::test]
async fn a_server_that_drips_is_given_up_like_one_that_stalls() {
    let case = Case::new();
    {
        let mut manners = case.hub.manners();
        // No pause is as long as a silence would have to be.
        (manners.piece, manners.slowly) = (1, Some(Duration::from_millis(50)));
    }
    let error = fetch(&case.download(None), Duration::from_millis(400))
        .await
        .expect_err("it never ends");
    assert!(
        error.to_string().contains("bytes came within 0.4 s"),
        "{error}"
    );
    assert!(
        error
            .hint()
            .is_some_and(|hint| hint.contains("the next attempt resumes there")),
        "{error:?}"
    );
    // What came is kept, and a better day continues from there.
    {
        let mut manners = case.hub.manners();
        (manners.piece, manners.slowly) = (16 << 10, None);
    }
    let n_before = case.hub.ranges().len();
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    assert!(
        !case
            .hub
            .ranges()
            .split_off(n_before)
            .contains(&"bytes=0-250000".to_owned())
    );

    // Who is content with any rate waits.
    let case = Case::new();
    case.hub.manners().file = Arc::new(model(300));
    {
        let mut manners = case.hub.manners();
        (manners.piece, manners.slowly) = (10, Some(Duration::from_millis(20)));
    }
    let client = http::client(&http::Settings {
        tls: false,
        ..http::Settings::default()
    })
    .expect("a client");
    let patience = DownloadLimits {
        idle: Duration::from_millis(200),
        slowest: 0,
        ..DownloadLimits::default()
    };
    let progress: ProgressSink = Arc::new(|_| {});
    case.download(None)
        .fetch(&client, &patience, &progress, &CancellationToken::new())
        .await
        .expect("it arrives");
}

#[tokio::test]
async fn a_size_that_cannot_be_true_is_refused_and_nothing_is_made() {
    for absurd in [8 << 60, u64::MAX, (1 << 42) + 1] {
        let case = Case::new();
        (case.hub.manners().total, case.hub.manners().size) = (Some(absurd), Some(absurd));
        let error = case.fails("no model is that large").await;
        assert!(error.to_string().contains(&absurd.to_string()), "{error}");
        assert_eq!(
            fs::read_dir(case.folder.path()).expect("a folder").count(),
            0
        );
    }
    // One that could be true and fits no disk of these days leaves nothing either.
    let case = Case::new();
    (case.hub.manners().total, case.hub.manners().size) = (Some(1 << 42), Some(1 << 42));
    case.fails("on the disk, and").await;
    assert_eq!(
        fs::read_dir(case.folder.path()).expect("a folder").count(),
        0
    );
}

#[tokio::test]
async fn nobody_is_led_to_a_plain_address() {
    for elsewhere in [
        "http://models.example/m.gguf",
        "ftp://127.0.0.1/m.gguf",
        "file:///etc/passwd",
    ] {
        let case = Case::new();
        case.hub.manners().location = Some(elsewhere.to_owned());
        let error = case.fails("not encrypted").await;
        assert!(
            error
                .hint()
                .is_some_and(|hint| hint.contains("only encrypted addresses")),
            "{error:?}"
        );
    }
    let case = Case::new();
    let plain = Download {
        url: "http://models.example/m.gguf".to_owned(),
        hub: None,
        ..case.download(None)
    };
    let error = fetch(&plain, Duration::from_secs(10))
        .await
        .expect_err("plain");
    assert!(error.to_string().contains("not encrypted"), "{error}");
}

#[tokio::test]
async fn a_file_that_changed_meanwhile_is_not_mixed_with_the_old_one() {
    // With a hash: the notes of the first try are of another content.
    let case = Case::new();
    case.hub.falls_silent_after(50_000);
    case.fails("said nothing").await;
    let mut other = model(SIZE);
    other[SIZE / 2] ^= 1;
    {
        let mut manners = case.hub.manners();
        manners.budget = None;
        manners.file = Arc::new(other.clone());
    }
    case.fetch().await.expect("it arrives");
    assert!(fs::read(case.to()).expect("there") == other);

    // Without one: the server's mark is.
    let case = Case::new();
    case.hub.manners().is_silent = true;
    case.hub.falls_silent_after(50_000);
    case.fails("said nothing").await;
    {
        let mut manners = case.hub.manners();
        manners.budget = None;
        manners.etag = Some("\"two\"");
        manners.file = Arc::new(other.clone());
    }
    case.fetch().await.expect("it arrives");
    assert!(fs::read(case.to()).expect("there") == other);
}

#[tokio::test]
async fn what_was_loaded_is_not_loaded_again() {
    let case = Case::new();
    case.hub.falls_silent_after(200_000);
    case.fails("said nothing").await;
    let n_before = case.hub.ranges().len();
    case.hub.manners().budget = None;
    let loaded = case.fetch().await.expect("it arrives");
    case.arrived(&loaded);
    let later = case.hub.ranges().split_off(n_before);
    // The first question and the four parts, of which none that got anything begins anew.
    let starts = [
        "bytes=0-250000",
        "bytes=250001-500001",
        "bytes=500002-750002",
        "bytes=750003-1000002",
    ];
    assert!(
        later.len() == 5
            && starts
                .iter()
                .filter(|&&start| later.contains(&start.to_owned()))
                .count()
                < 4,
        "{later:?}"
    );
}
