//! Downloads, from a server that does everything wrong; and models, from a server that behaves like
//! the hub.

pub(crate) mod hub;
mod models;
mod names;
mod parts;
mod records;

use std::collections::VecDeque;
use std::fs;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use podbay::event::ProgressSink;
use podbay::inference::Download;
use podbay::inference::DownloadLimits;
use podbay::inference::Error;
use podbay::inference::ExpectedFile;
use podbay::llm::http;
use sha2::Digest;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// One answer: its head, and how much of which body.
struct Answer {
    head: String,
    body: Vec<u8>,
    /// Says nothing more, and does not hang up either.
    stalls: bool,
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Answer {
    Answer {
        head: format!("HTTP/1.1 {status}\r\nconnection: close\r\n{headers}\r\n"),
        body: body.to_vec(),
        stalls: false,
    }
}

/// The file, from an offset, cut after some bytes; its length is told as it should be.
fn part(file: &[u8], from: usize, n_sent: usize) -> Answer {
    let rest = &file[from..];
    let headers = format!(
        "content-range: bytes {from}-{}/{}\r\ncontent-length: {}\r\n",
        file.len() - 1,
        file.len(),
        rest.len()
    );
    answer(
        "206 Partial Content",
        &headers,
        &rest[..n_sent.min(rest.len())],
    )
}

fn whole(file: &[u8], n_sent: usize) -> Answer {
    answer(
        "200 OK",
        &format!("content-length: {}\r\n", file.len()),
        &file[..n_sent],
    )
}

/// Gives its answers in order, one for each connection, and notes what it was asked.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    left: Arc<Mutex<VecDeque<Answer>>>,
}

impl Server {
    async fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/file", listener.local_addr().expect("an address"));
        let requests = Arc::new(Mutex::new(Vec::new()));
        let left = Arc::new(Mutex::new(VecDeque::from(answers)));
        let (seen, answers) = (Arc::clone(&requests), Arc::clone(&left));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    match stream.read_u8().await {
                        Ok(byte) => head.push(byte),
                        Err(_) => break,
                    }
                }
                let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
                let range = head
                    .lines()
                    .find_map(|line| line.strip_prefix("range: "))
                    .unwrap_or("all")
                    .to_owned();
                seen.lock().expect("no panic").push(range);
                let Some(answer) = answers.lock().expect("no panic").pop_front() else {
                    continue;
                };
                // A client that has heard enough hangs up; that is its right.
                let _ = stream.write_all(answer.head.as_bytes()).await;
                let _ = stream.write_all(&answer.body).await;
                let _ = stream.flush().await;
                if answer.stalls {
                    tokio::spawn(async move {
                        tokio::time::sleep(Duration::from_secs(30)).await;
                        drop(stream);
                    });
                }
            }
        });
        Self {
            url,
            requests,
            left,
        }
    }

    fn requests(&self) -> Vec<String> {
        assert_eq!(
            self.left.lock().expect("no panic").len(),
            0,
            "answers are left"
        );
        self.requests.lock().expect("no panic").clone()
    }
}

struct Case {
    folder: tempfile::TempDir,
    file: Vec<u8>,
    size: u64,
}

impl Case {
    fn new() -> Self {
        let file: Vec<u8> = (0..300_000_u32).flat_map(u32::to_le_bytes).collect();
        Self {
            folder: tempfile::tempdir().expect("a folder"),
            size: file.len() as u64,
            file,
        }
    }

    fn to(&self) -> PathBuf {
        self.folder.path().join("models").join("file")
    }

    fn partial(&self) -> PathBuf {
        self.folder.path().join("models").join("file.part")
    }

    fn leave(&self, bytes: &[u8]) {
        fs::create_dir_all(self.folder.path().join("models")).expect("made");
        fs::write(self.partial(), bytes).expect("written");
    }

    async fn fetch(&self, server: &Server) -> Result<(), Error> {
        self.fetch_until(server, &CancellationToken::new()).await
    }

    async fn fetch_until(&self, server: &Server, cancel: &CancellationToken) -> Result<(), Error> {
        let sha256 = sha2::Sha256::digest(&self.file)
            .iter()
            .fold(String::new(), |text, byte| text + &format!("{byte:02x}"));
        let (url, task) = (server.url.clone(), "loading".to_owned());
        let expected = ExpectedFile {
            size: Some(self.size),
            sha256: Some(sha256),
        };
        let download = Download {
            url,
            expected,
            hub: None,
            to: self.to(),
            task,
            room: 0,
            is_model: false,
        };
        let client = http::client(&http::Settings {
            tls: false,
            ..http::Settings::default()
        })
        .expect("a client");
        let patience = DownloadLimits {
            idle: Duration::from_millis(300),
            retries: 2,
            pause: Duration::from_millis(1),
            ..DownloadLimits::default()
        };
        let progress: ProgressSink = Arc::new(|_| {});
        tokio::time::timeout(
            Duration::from_secs(20),
            download.fetch(&client, &patience, &progress, cancel),
        )
        .await
        .expect("bounded")
        .map(drop)
    }

    #[track_caller]
    fn arrived(&self) {
        assert!(fs::read(self.to()).expect("it has its name") == self.file);
        assert!(!self.partial().exists());
    }

    #[track_caller]
    fn did_not_arrive(&self, error: &Error, because: &str) {
        assert!(error.to_string().contains(because), "{error}");
        assert!(error.hint().is_some());
        assert!(!self.to().exists());
    }
}

#[tokio::test]
async fn a_cut_connection_goes_on_where_it_ended() {
    let case = Case::new();
    let server = Server::start(vec![
        whole(&case.file, 500_000),
        part(&case.file, 500_000, 1),
        part(&case.file, 500_001, usize::MAX),
    ])
    .await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();
    assert_eq!(server.requests(), ["all", "bytes=500000-", "bytes=500001-"]);
}

#[tokio::test]
async fn what_a_killed_process_left_is_used() {
    let case = Case::new();
    case.leave(&case.file[..1_000_000]);
    let server = Server::start(vec![part(&case.file, 1_000_000, usize::MAX)]).await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();
    assert_eq!(server.requests(), ["bytes=1000000-"]);

    // All of it, only without its name: nothing is loaded.
    let case = Case::new();
    case.leave(&case.file);
    let server = Server::start(vec![]).await;
    case.fetch(&server).await.expect("it is here");
    case.arrived();
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_somebody_else_left_costs_one_more_try() {
    for left in [vec![1; 1000], vec![1; 1_200_000], vec![1; 2_000_000]] {
        let case = Case::new();
        case.leave(&left);
        let from = if left.len() as u64 >= case.size {
            None
        } else {
            Some(left.len())
        };
        let mut answers: Vec<Answer> = from
            .map(|from| part(&case.file, from, usize::MAX))
            .into_iter()
            .collect();
        answers.push(whole(&case.file, case.file.len()));
        let server = Server::start(answers).await;
        case.fetch(&server).await.expect("it arrives");
        case.arrived();
        assert_eq!(server.requests().last().map(String::as_str), Some("all"));
    }
}

#[tokio::test]
async fn a_server_without_parts_sends_the_whole_again() {
    let case = Case::new();
    case.leave(&case.file[..1000]);
    let server = Server::start(vec![whole(&case.file, case.file.len())]).await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();

    let case = Case::new();
    case.leave(&case.file[..1000]);
    let refusal = answer(
        "416 Range Not Satisfiable",
        "content-range: bytes */10\r\ncontent-length: 0\r\n",
        b"",
    );
    let server = Server::start(vec![refusal, whole(&case.file, case.file.len())]).await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();
    assert_eq!(server.requests(), ["bytes=1000-", "all"]);
}

#[tokio::test]
async fn a_part_from_another_place_is_not_pasted_in() {
    let case = Case::new();
    case.leave(&case.file[..1000]);
    let server = Server::start(vec![
        part(&case.file, 500, usize::MAX),
        whole(&case.file, case.file.len()),
    ])
    .await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();
}

#[tokio::test]
async fn wrong_bytes_are_thrown_away() {
    let case = Case::new();
    let mut other = case.file.clone();
    other[777] ^= 1;
    let server = Server::start(vec![whole(&other, other.len())]).await;
    let error = case.fetch(&server).await.expect_err("wrong");
    case.did_not_arrive(&error, "SHA-256");
    assert!(!case.partial().exists());
}

#[tokio::test]
async fn lies_about_the_length_are_found_out() {
    let case = Case::new();
    let server = Server::start(vec![answer(
        "200 OK",
        "content-length: 10\r\n",
        &case.file[..10],
    )])
    .await;
    case.did_not_arrive(
        &case.fetch(&server).await.expect_err("short"),
        "10 bytes instead of 1200000",
    );

    // No length at all, and more than there is.
    let mut long = case.file.clone();
    long.extend([0; 10]);
    let server = Server::start(vec![answer("200 OK", "", &long)]).await;
    case.did_not_arrive(
        &case.fetch(&server).await.expect_err("long"),
        "more than the 1200000 bytes",
    );

    // No length at all, and less.
    let case = Case::new();
    let server = Server::start(vec![
        answer("200 OK", "", &case.file[..10]),
        part(&case.file, 10, usize::MAX),
    ])
    .await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();
}

#[tokio::test]
async fn a_server_that_never_gets_on_is_given_up() {
    let case = Case::new();
    let busy = || answer("503 Service Unavailable", "content-length: 0\r\n", b"");
    let server = Server::start(vec![busy(), busy(), busy()]).await;
    case.did_not_arrive(&case.fetch(&server).await.expect_err("busy"), "503");
    assert_eq!(server.requests().len(), 3);

    let server = Server::start(vec![answer("404 Not Found", "content-length: 0\r\n", b"")]).await;
    case.did_not_arrive(&case.fetch(&server).await.expect_err("gone"), "404");

    let stall = || Answer {
        stalls: true,
        ..whole(&case.file, 0)
    };
    let server = Server::start(vec![stall(), stall(), stall()]).await;
    case.did_not_arrive(
        &case.fetch(&server).await.expect_err("silent"),
        "said nothing",
    );
}

#[tokio::test]
async fn redirects_are_followed_but_not_for_ever() {
    let case = Case::new();
    let there = || {
        answer(
            "302 Found",
            "location: /elsewhere\r\ncontent-length: 0\r\n",
            b"",
        )
    };
    let server = Server::start(vec![there(), there(), whole(&case.file, case.file.len())]).await;
    case.fetch(&server).await.expect("it arrives");
    case.arrived();

    let case = Case::new();
    let server = Server::start((0..6).map(|_| there()).collect()).await;
    case.did_not_arrive(
        &case.fetch(&server).await.expect_err("round and round"),
        "redirects",
    );

    let server = Server::start(vec![answer(
        "302 Found",
        "location: ftp://example.com/\r\ncontent-length: 0\r\n",
        b"",
    )])
    .await;
    case.did_not_arrive(
        &case.fetch(&server).await.expect_err("elsewhere"),
        "not encrypted",
    );
}

#[tokio::test]
async fn a_cancelled_download_keeps_what_it_has() {
    let case = Case::new();
    let server = Server::start(vec![Answer {
        stalls: true,
        ..whole(&case.file, 100_000)
    }])
    .await;
    let cancel = CancellationToken::new();
    let stop = async {
        while !has(&case.partial(), 100_000) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancel.cancel();
    };
    let (outcome, ()) = tokio::join!(case.fetch_until(&server, &cancel), stop);
    assert!(
        matches!(outcome, Err(Error::Cancelled { .. })),
        "{outcome:?}"
    );
    assert!(has(&case.partial(), 100_000));
    assert!(!case.to().exists());
}

fn has(path: &Path, length: u64) -> bool {
    fs::metadata(path).is_ok_and(|facts| facts.len() == length)
}
