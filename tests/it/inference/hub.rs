//! A server that behaves like the hub: it points to where files lie, and says their size and hash
//! on the way. It can be told to misbehave.

use std::io::Read;
use std::io::Write;
use std::net::TcpListener;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::MutexGuard;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sha2::Digest;

/// What a hub does for each request, at the moment it comes.
#[derive(Clone, Debug)]
pub(crate) struct Manners {
    pub(crate) file: Arc<Vec<u8>>,
    /// Told instead of the right ones.
    pub(crate) sha256: Option<String>,
    pub(crate) size: Option<u64>,
    /// Neither is told.
    pub(crate) is_silent: bool,
    /// Told for the body instead of its length.
    pub(crate) total: Option<u64>,
    pub(crate) has_parts: bool,
    /// Hangs up after so many bytes of a body.
    pub(crate) cut: Option<usize>,
    /// Bytes of bodies that are sent in all; then nothing more is said.
    pub(crate) budget: Option<Arc<AtomicUsize>>,
    /// Pause after each piece.
    pub(crate) slowly: Option<Duration>,
    /// Bytes of a piece.
    pub(crate) piece: usize,
    /// Where it points, instead of its own store.
    pub(crate) location: Option<String>,
    /// Answers with this page instead of pointing anywhere.
    pub(crate) page: Option<&'static str>,
    /// Answers with this status.
    pub(crate) status: Option<&'static str>,
    pub(crate) etag: Option<&'static str>,
}

/// One request as it came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Asked {
    /// Whether it came to the hub, and not to its store.
    pub(crate) is_hub: bool,
    pub(crate) path: String,
    pub(crate) range: Option<String>,
    pub(crate) token: Option<String>,
}

pub(crate) struct Hub {
    pub(crate) url: String,
    /// Where the files lie: another origin, as with the real one.
    pub(crate) store: String,
    manners: Arc<Mutex<Manners>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    /// Connections of the store that are open, and the most that were.
    open: Arc<[AtomicUsize; 2]>,
}

/// Returns a whole model of one tensor that means nothing, with a content of its own.
pub(crate) fn model(size: usize) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut file = b"GGUF\x03\0\0\0".to_vec();
    for n in [1_u64, 1] {
        file.extend(n.to_le_bytes());
    }
    file.extend(
        [
            text("general.architecture"),
            8_u32.to_le_bytes().to_vec(),
            text("llama"),
        ]
        .concat(),
    );
    // Of bytes, in one dimension: as many as there is room for.
    file.extend([text("t"), 1_u32.to_le_bytes().to_vec()].concat());
    let start = (file.len() + 8 + 4 + 8).next_multiple_of(32);
    file.extend((size.saturating_sub(start) as u64).to_le_bytes());
    file.extend(24_u32.to_le_bytes());
    file.extend(0_u64.to_le_bytes());
    file.resize(start, 0);
    let mut state = 0x9e37_79b9_u32;
    file.extend(
        std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .take(size.saturating_sub(start)),
    );
    file
}

pub(crate) fn sha256(bytes: &[u8]) -> String {
    sha2::Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
}

impl Hub {
    pub(crate) fn start(file: Vec<u8>) -> Self {
        let manners = Manners {
            file: Arc::new(file),
            sha256: None,
            size: None,
            is_silent: false,
            total: None,
            has_parts: true,
            cut: None,
            budget: None,
            slowly: None,
            piece: 16 << 10,
            location: None,
            page: None,
            status: None,
            etag: Some("\"one\""),
        };
        let (manners, asked) = (
            Arc::new(Mutex::new(manners)),
            Arc::new(Mutex::new(Vec::new())),
        );
        let open = Arc::new([AtomicUsize::new(0), AtomicUsize::new(0)]);
        let store = serve(false, String::new(), &manners, &asked, &open);
        let url = serve(true, store.clone(), &manners, &asked, &open);
        Self {
            url,
            store,
            manners,
            asked,
            open,
        }
    }

    pub(crate) fn manners(&self) -> MutexGuard<'_, Manners> {
        self.manners.lock().expect("no panic")
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Returns how many parts were on their way at once.
    pub(crate) fn most_at_once(&self) -> usize {
        self.open[1].load(Ordering::SeqCst)
    }

    /// Lets it send so many bytes and then fall silent.
    pub(crate) fn falls_silent_after(&self, n_bytes: usize) {
        self.manners().budget = Some(Arc::new(AtomicUsize::new(n_bytes)));
    }

    /// Returns the parts of the file that were asked for.
    pub(crate) fn ranges(&self) -> Vec<String> {
        self.asked()
            .into_iter()
            .filter(|asked| !asked.is_hub)
            .filter_map(|asked| asked.range)
            .collect()
    }
}

fn serve(
    is_hub: bool,
    store: String,
    manners: &Arc<Mutex<Manners>>,
    asked: &Arc<Mutex<Vec<Asked>>>,
    open: &Arc<[AtomicUsize; 2]>,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (manners, asked, open) = (Arc::clone(manners), Arc::clone(asked), Arc::clone(open));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (manners, asked, open, store) = (
                Arc::clone(&manners),
                Arc::clone(&asked),
                Arc::clone(&open),
                store.clone(),
            );
            std::thread::spawn(move || {
                let Some(head) = head(&stream) else { return };
                let field = |name: &str| {
                    head.lines()
                        .find_map(|line| line.strip_prefix(name))
                        .map(str::to_owned)
                };
                let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
                let request = Asked {
                    is_hub,
                    path,
                    range: field("range: "),
                    token: field("authorization: "),
                };
                let manners = manners.lock().expect("no panic").clone();
                let range = request.range.clone();
                asked.lock().expect("no panic").push(request);
                // A client that has heard enough hangs up; that is its right.
                let _ = if is_hub {
                    point(&stream, &manners, &store)
                } else {
                    let n = open[0].fetch_add(1, Ordering::SeqCst) + 1;
                    open[1].fetch_max(n, Ordering::SeqCst);
                    let sent = send(&stream, &manners, range.as_deref());
                    open[0].fetch_sub(1, Ordering::SeqCst);
                    sent
                };
            });
        }
    });
    url
}

fn head(mut stream: &TcpStream) -> Option<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    // Names of fields only; a path keeps its case.
    let text = String::from_utf8_lossy(&head).into_owned();
    let lines = text.lines().map(|line| match line.split_once(": ") {
        Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
        None => line.to_owned(),
    });
    Some(lines.collect::<Vec<_>>().join("\n"))
}

fn point(mut stream: &TcpStream, manners: &Manners, store: &str) -> std::io::Result<()> {
    if let Some(status) = manners.status {
        return write!(
            stream,
            "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
        );
    }
    if let Some(page) = manners.page {
        let length = page.len();
        return write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{page}"
        );
    }
    let location = manners
        .location
        .clone()
        .unwrap_or_else(|| format!("{store}/blob"));
    let linked = if manners.is_silent {
        String::new()
    } else {
        let hash = manners
            .sha256
            .clone()
            .unwrap_or_else(|| sha256(&manners.file));
        format!(
            "x-linked-etag: \"{hash}\"\r\nx-linked-size: {}\r\n",
            manners.size.unwrap_or(manners.file.len() as u64)
        )
    };
    write!(
        stream,
        "HTTP/1.1 302 Found\r\nlocation: {location}\r\n{linked}content-length: 0\r\nconnection: close\r\n\r\n"
    )
}

fn send(mut stream: &TcpStream, manners: &Manners, range: Option<&str>) -> std::io::Result<()> {
    let file = &manners.file;
    let total = manners.total.unwrap_or(file.len() as u64);
    let etag = manners
        .etag
        .map(|etag| format!("etag: {etag}\r\n"))
        .unwrap_or_default();
    let range = range.filter(|_| manners.has_parts).and_then(|range| {
        let (from, to) = range.strip_prefix("bytes=")?.split_once('-')?;
        let from: usize = from.parse().ok()?;
        Some((
            from,
            to.parse::<usize>()
                .map_or(file.len(), |to| (to + 1).min(file.len())),
        ))
    });
    let body = match range {
        Some((from, _)) if from >= file.len() => {
            return write!(
                stream,
                "HTTP/1.1 416 Range Not Satisfiable\r\ncontent-range: bytes */{total}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
        }
        Some((from, to)) => {
            let (last, length) = (to - 1, to - from);
            let told = format!(
                "content-range: bytes {from}-{last}/{total}\r\ncontent-length: {length}\r\n"
            );
            write!(
                stream,
                "HTTP/1.1 206 Partial Content\r\n{told}{etag}connection: close\r\n\r\n"
            )?;
            &file[from..to]
        }
        None => {
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {total}\r\n{etag}connection: close\r\n\r\n"
            )?;
            &file[..]
        }
    };
    // The first question takes four bytes and is never cut.
    if body.len() <= 4 {
        return stream.write_all(body);
    }
    let mut left = manners.cut.unwrap_or(usize::MAX);
    for piece in body.chunks(manners.piece) {
        let piece = &piece[..piece.len().min(left)];
        if let Some(budget) = &manners.budget
            && budget
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |rest| {
                    rest.checked_sub(piece.len())
                })
                .is_err()
        {
            std::thread::sleep(Duration::from_secs(30));
            return Ok(());
        }
        stream.write_all(piece)?;
        left -= piece.len();
        if left == 0 {
            return Ok(());
        }
        if let Some(pause) = manners.slowly {
            std::thread::sleep(pause);
        }
    }
    Ok(())
}
