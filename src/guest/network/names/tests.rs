use std::collections::BTreeMap;
use std::path::PathBuf;

use podbay_wire::EgressName;
use podbay_wire::EgressOpening;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::net::UnixListener;
use tokio::net::UnixStream;

use super::*;

type Rules = Arc<Mutex<BTreeMap<String, Vec<u16>>>>;

/// A gateway that says which host a connection is for, and which names it was asked for.
struct StubGateway {
    rules: Rules,
    asked: Arc<Mutex<Vec<String>>>,
    socket: PathBuf,
    _folder: tempfile::TempDir,
}

impl StubGateway {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let socket = folder.path().join("s");
        let listener = UnixListener::bind(&socket).expect("a socket");
        let (rules, asked) = (Rules::default(), Arc::<Mutex<Vec<String>>>::default());
        let gateway = Self {
            rules: Arc::clone(&rules),
            asked: Arc::clone(&asked),
            socket,
            _folder: folder,
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&rules), Arc::clone(&asked)));
            }
        });
        gateway
    }

    fn allow(&self, name: &str, ports: &[u16]) {
        lock(&self.rules).insert(name.to_owned(), ports.to_vec());
    }

    fn names(&self) -> Arc<Names> {
        Names::new(Carrier::new(self.socket.clone()))
    }
}

async fn serve(mut stream: UnixStream, rules: Rules, asked: Arc<Mutex<Vec<String>>>) {
    let mut prefix = [0; 3];
    stream.read_exact(&mut prefix).await.expect("an opening");
    let mut json = vec![0; usize::from(u16::from_be_bytes([prefix[1], prefix[2]]))];
    stream.read_exact(&mut json).await.expect("an opening");
    let opening: EgressOpening = serde_json::from_slice(&json).expect("an opening");
    let answer = match opening.purpose {
        EgressPurpose::Name { host } => {
            let ports = lock(&rules).get(&host).cloned().unwrap_or_default();
            lock(&asked).push(host);
            serde_json::to_string(&EgressName { ports }).expect("JSON")
        }
        EgressPurpose::Direct { host, port } => format!("{host}:{port}"),
        EgressPurpose::Proxy => "a proxy".to_owned(),
    };
    // A client that hung up needs no answer.
    drop(stream.write_all(answer.as_bytes()).await);
}

fn asker() -> SocketAddr {
    "127.0.0.1:1".parse().expect("an address")
}

async fn find(names: &Arc<Names>, name: &str) -> Found {
    Arc::clone(names).find(name.to_owned(), asker()).await
}

#[track_caller]
fn address(found: Found) -> Ipv4Addr {
    match found {
        Found::Address(address) => address,
        other => panic!("{other:?}"),
    }
}

async fn said_at(address: Ipv4Addr, port: u16) -> String {
    let mut stream = TcpStream::connect((address, port))
        .await
        .expect("it listens");
    let mut said = String::new();
    stream.read_to_string(&mut said).await.expect("an answer");
    said
}

/// Returns a port that is free at all addresses of this machine.
async fn free_port() -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    listener.local_addr().expect("its address").port()
}

#[tokio::test]
async fn each_name_has_an_address_that_leads_to_it_and_to_no_other() {
    let gateway = StubGateway::start();
    let names = gateway.names();
    let (one, two) = (free_port().await, free_port().await);
    gateway.allow("a.example", &[one, two]);
    gateway.allow("b.example", &[one]);
    let a = address(find(&names, "a.example").await);
    let b = address(find(&names, "b.example").await);
    assert!(a != b && a.is_loopback() && b.is_loopback());
    assert_eq!(address(find(&names, "a.example").await), a);
    assert_eq!(said_at(a, one).await, format!("a.example:{one}"));
    assert_eq!(said_at(a, two).await, format!("a.example:{two}"));
    assert_eq!(said_at(b, one).await, format!("b.example:{one}"));
    assert!(TcpStream::connect((b, two)).await.is_err());
    assert_eq!(find(&names, "c.example").await, Found::Denied);
}

#[tokio::test]
async fn both_families_of_a_name_are_one_question() {
    let gateway = StubGateway::start();
    let names = gateway.names();
    let (one, other) = tokio::join!(find(&names, "a.example"), find(&names, "a.example"));
    assert_eq!((one, other), (Found::Denied, Found::Denied));
    assert_eq!(*lock(&gateway.asked), ["a.example"]);
}

/// Waits until what was said of a name is old.
#[tokio::test]
async fn a_port_that_is_allowed_no_more_is_listened_at_no_more() {
    let gateway = StubGateway::start();
    let names = gateway.names();
    let (one, two) = (free_port().await, free_port().await);
    gateway.allow("a.example", &[one, two]);
    let a = address(find(&names, "a.example").await);
    gateway.allow("a.example", &[two]);
    tokio::time::sleep(FRESH).await;
    assert_eq!(address(find(&names, "a.example").await), a);
    assert_eq!(said_at(a, two).await, format!("a.example:{two}"));
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(TcpStream::connect((a, one)).await.is_err());
}

#[tokio::test]
async fn names_without_end_make_room_for_each_other_and_not_in_place_of_one_in_use() {
    let gateway = StubGateway::start();
    let names = gateway.names();
    let port = free_port().await;
    gateway.allow("a.example", &[port]);
    let a = address(find(&names, "a.example").await);
    for n in 0..2 * NAMES {
        assert_eq!(find(&names, &format!("{n}.example")).await, Found::Denied);
    }
    assert!(lock(&names.state).known.len() <= NAMES);
    assert_eq!(said_at(a, port).await, format!("a.example:{port}"));
}

#[tokio::test]
async fn without_a_gateway_no_name_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let names = Names::new(Carrier::new(folder.path().join("none")));
    assert_eq!(find(&names, "a.example").await, Found::Denied);
}

#[tokio::test]
async fn a_port_that_a_program_has_taken_is_no_reason_to_lead_there() {
    let gateway = StubGateway::start();
    let names = gateway.names();
    let taken = TcpListener::bind("0.0.0.0:0").await.expect("a port");
    let port = taken.local_addr().expect("its address").port();
    gateway.allow("a.example", &[port]);
    assert_eq!(find(&names, "a.example").await, Found::Unknown);
}
