//! What is beyond a sandbox, in miniature: name servers that answer for made-up names, and servers
//! behind those, at the engine's bridge, where a gateway reaches them.

use std::collections::BTreeMap;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read;
use std::io::Write;
use std::net::IpAddr;
use std::net::SocketAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::PoisonError;

use super::super::test_box::TestBox;
use super::super::test_box::docker;

/// What a server answers, by path.
pub(super) type Files = BTreeMap<String, Vec<u8>>;

pub(super) struct Outside {
    names: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    bridge: IpAddr,
}

/// What came to a server.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Returns the first lines of the requests so far.
    pub(super) fn requests(&self) -> Vec<String> {
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }
}

impl Outside {
    /// Answers for every name below `example`, with the bridge's address.
    pub(super) fn new() -> Self {
        let bridge = bridge();
        let socket = UdpSocket::bind((bridge, 0)).expect("a port of the bridge");
        let names = socket.local_addr().expect("its address");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let list = Arc::clone(&asked);
        std::thread::spawn(move || answer_names(&socket, bridge, &list));
        Self {
            names,
            asked,
            bridge,
        }
    }

    /// Returns the address that every name has.
    pub(super) fn address(&self) -> IpAddr {
        self.bridge
    }

    /// Returns the names that were asked for.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Has the gateways of a test ask here, by the user's own settings.
    pub(super) fn tell(&self, env: &TestBox, more: &str) {
        let folder = env.home().join(".config/podbay");
        std::fs::create_dir_all(&folder).expect("made");
        let settings = format!("[network]\nname_servers = [\"{}\"]\n{more}\n", self.names);
        std::fs::write(folder.join("config.toml"), settings).expect("written");
    }

    /// Serves files over plain HTTP.
    pub(super) fn serve(&self, files: Files) -> Server {
        let listener = TcpListener::bind((self.bridge, 0)).expect("a port of the bridge");
        let port = listener.local_addr().expect("its address").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let server = Server {
            port,
            requests: Arc::clone(&requests),
        };
        let files = Arc::new(files);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (files, requests) = (Arc::clone(&files), Arc::clone(&requests));
                // A client that hangs up is no fault of the server's.
                std::thread::spawn(move || drop(serve_client(stream, &files, &requests)));
            }
        });
        server
    }
}

/// Returns the host's address on the engine's bridge. Not every engine tells it.
fn bridge() -> IpAddr {
    let option = "{{index .Options \"com.docker.network.bridge.name\"}}";
    let name = docker(&["network", "inspect", "bridge", "--format", option]);
    let found = nix::ifaddrs::getifaddrs()
        .expect("interfaces")
        .filter(|interface| interface.interface_name == name.trim())
        .find_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()));
    IpAddr::V4(found.expect("the bridge has an address of IPv4"))
}

fn serve_client(
    stream: TcpStream,
    files: &Files,
    requests: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let mut writer = stream;
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line.trim().is_empty() {
                break;
            }
        }
        std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink())?;
        requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(first.trim().to_owned());
        if first.starts_with("CONNECT ") {
            // As a proxy it is in the place of every server.
            writer.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
            continue;
        }
        let path = first.split(' ').nth(1).unwrap_or_default();
        let path = path.split('?').next().unwrap_or(path);
        let (status, body) = files
            .get(path)
            .map_or(("404 Not Found", &[][..]), |body| ("200 OK", body));
        let kind = if path.ends_with('/') {
            "text/html"
        } else {
            "application/octet-stream"
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        writer.write_all(head.as_bytes())?;
        if !first.starts_with("HEAD ") {
            writer.write_all(body)?;
        }
    }
}

/// Answers questions for addresses (RFC 1035): `example` and what is below it is there, with one
/// address of IPv4, and nothing else is.
fn answer_names(socket: &UdpSocket, address: IpAddr, asked: &Mutex<Vec<String>>) {
    let IpAddr::V4(address) = address else {
        panic!("the bridge has {address}")
    };
    let mut query = [0; 512];
    loop {
        let Ok((length, from)) = socket.recv_from(&mut query) else {
            return;
        };
        let query = &query[..length];
        let (name, end) = name_of(query);
        let kind = u16::from_be_bytes([query[end], query[end + 1]]);
        let is_there = name == "example" || name.ends_with(".example");
        asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(name);
        let has_address = is_there && kind == 1;
        let mut answer = query[..2].to_vec();
        answer.extend([0x81, if is_there { 0x80 } else { 0x83 }]);
        answer.extend([0, 1, 0, u8::from(has_address), 0, 0, 0, 0]);
        answer.extend(&query[12..end + 4]);
        if has_address {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address.octets());
        }
        drop(socket.send_to(&answer, from));
    }
}

/// Returns the name of a query's question in lower case, and where it ends.
fn name_of(query: &[u8]) -> (String, usize) {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(query[at]);
        at += 1;
        if length == 0 {
            return (labels.join("."), at);
        }
        labels.push(String::from_utf8_lossy(&query[at..at + length]).to_lowercase());
        at += length;
    }
}
