//! What the egress gateway costs a client: through it against direct, both over loopback on this
//! machine.
//!
//! Servers and clients have a runtime of their own, and the gateway one like that of its role. A
//! name and an address are made up for the servers, since the gateway reaches no loopback.

use std::future::Future;
use std::io;
use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;
use std::path::Path;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use std::time::Instant;

use podbay::egress::Dial;
use podbay::egress::Gateway;
use podbay::egress::HostStreams;
use podbay::egress::Limits;
use podbay::egress::Resolve;
use podbay::egress::ResolveError;
use podbay::egress::RuleSet;
use podbay::egress::host_name::HostName;
use podbay::egress::limits::ATTEMPTS;
use podbay::egress::rule::Rules;
use podbay::wire::EgressRule;
use tokio::io::AsyncRead;
use tokio::io::AsyncReadExt;
use tokio::io::AsyncWrite;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::net::TcpStream;
use tokio::net::UnixListener;
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls;

use super::Outcome;
use super::table::Table;
use super::table::Times;
use super::throughput;

const NAME: &str = "a.example";
/// What the name resolves to, and the ports of its servers: bytes without end, answers of plain
/// HTTP, TLS.
const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(93, 184, 216, 34));
pub(super) const FLOOD: u16 = 1;
const WEB: u16 = 80;
const TLS: u16 = 443;

const REQUESTS: usize = 2000;
const HANDSHAKES: usize = 200;

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

struct Names;

impl Resolve for Names {
    fn resolve<'a>(&'a self, _: &'a HostName) -> Later<'a, Result<Vec<IpAddr>, ResolveError>> {
        Box::pin(async { Ok(vec![ADDRESS]) })
    }
}

#[derive(Clone, Copy)]
struct Servers {
    flood: SocketAddr,
    web: SocketAddr,
    tls: SocketAddr,
}

impl Dial for Servers {
    fn dial(&self, address: SocketAddr) -> Later<'_, io::Result<TcpStream>> {
        let server = match address.port() {
            FLOOD => self.flood,
            WEB => self.web,
            _ => self.tls,
        };
        Box::pin(async move {
            let stream = TcpStream::connect(server).await?;
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

pub(super) fn rows(table: &mut Table) -> Outcome<()> {
    let around = Runtime::new()?;
    let (acceptor, connector) = tls()?;
    let servers = around.block_on(serve(acceptor))?;
    let folder = tempfile::tempdir()?;
    let socket = folder.path().join("egress.sock");
    let gateway = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    start(&gateway, servers, socket.clone())?;
    around.block_on(measure(table, &socket, servers, &connector))?;
    gateway.shutdown_background();
    Ok(())
}

fn start(runtime: &Runtime, servers: Servers, socket: PathBuf) -> Outcome<()> {
    let raw = EgressRule {
        host: format!("{NAME}:{FLOOD}"),
        raw: true,
        ..EgressRule::default()
    };
    let rules = Rules::parse(&[
        raw,
        EgressRule {
            host: NAME.to_owned(),
            ..EgressRule::default()
        },
    ])?;
    let (in_force, rules) = tokio::sync::watch::channel(RuleSet {
        rules,
        upstream: None,
    });
    let (told, mut attempts) = tokio::sync::mpsc::channel(ATTEMPTS);
    let listener = {
        let _runtime = runtime.enter();
        UnixListener::bind(socket)?
    };
    runtime.spawn(async move {
        let gateway = Gateway::new(
            Limits::default(),
            Arc::new(Names),
            Arc::new(servers),
            HostStreams::new(tokio::sync::mpsc::channel(1).0),
            rules,
            told,
        );
        gateway.serve(listener, std::future::pending()).await;
        drop(in_force);
    });
    runtime.spawn(async move { while attempts.recv().await.is_some() {} });
    Ok(())
}

async fn measure(
    table: &mut Table,
    socket: &Path,
    servers: Servers,
    connector: &TlsConnector,
) -> Outcome<()> {
    throughput::rows(table, socket, servers.flood).await?;
    let (mut near, mut far) = (UnixStream::connect(socket).await?, dial(servers.web).await?);
    let (mut direct, mut through) = (Times::default(), Times::default());
    for _ in 0..REQUESTS {
        direct.0.push(request(&mut far, "/").await?);
        through
            .0
            .push(request(&mut near, &format!("http://{NAME}/")).await?);
    }
    added(
        table,
        "a plain HTTP request on a kept connection through the gateway",
        &through,
        &direct,
        Duration::from_micros(500),
    );

    let (mut direct, mut through) = (Times::default(), Times::default());
    for _ in 0..HANDSHAKES {
        let begun = Instant::now();
        greet(connector, dial(servers.tls).await?).await?;
        direct.0.push(begun.elapsed());
        let begun = Instant::now();
        let near = UnixStream::connect(socket).await?;
        greet(connector, tunnel(near, TLS).await?).await?;
        through.0.push(begun.elapsed());
    }
    added(
        table,
        "a new TLS connection with its first answer through the gateway",
        &through,
        &direct,
        Duration::from_millis(3),
    );
    Ok(())
}

fn added(table: &mut Table, what: &str, through: &Times, direct: &Times, bar: Duration) {
    let milliseconds = |time: Duration| time.as_secs_f64() * 1000.0;
    let added = milliseconds(through.at(50)) - milliseconds(direct.at(50));
    let what = format!(
        "{what}, less the same direct, which takes {:.2} ms",
        milliseconds(direct.at(50))
    );
    table.figure(
        &what,
        &format!("{added:.2} ms"),
        &format!("≤ {} ms", milliseconds(bar)),
        added <= milliseconds(bar),
    );
}

async fn dial(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Makes a connection to a proxy a tunnel.
pub(super) async fn tunnel<S>(mut stream: S, port: u16) -> io::Result<S>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream
        .write_all(
            format!("CONNECT {NAME}:{port} HTTP/1.1\r\nHost: {NAME}:{port}\r\n\r\n").as_bytes(),
        )
        .await?;
    read_head(&mut stream).await?;
    Ok(stream)
}

async fn request(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    target: &str,
) -> io::Result<Duration> {
    let begun = Instant::now();
    stream
        .write_all(format!("GET {target} HTTP/1.1\r\nHost: {NAME}\r\n\r\n").as_bytes())
        .await?;
    read_head(stream).await?;
    Ok(begun.elapsed())
}

/// Reads up to the end of a head that nothing follows.
async fn read_head(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(())
}

async fn greet(
    connector: &TlsConnector,
    stream: impl AsyncRead + AsyncWrite + Unpin,
) -> Outcome<()> {
    let mut stream = connector.connect(NAME.try_into()?, stream).await?;
    request(&mut stream, "/").await?;
    Ok(())
}

async fn serve(acceptor: TlsAcceptor) -> io::Result<Servers> {
    let flood = listen(|mut stream| async move {
        // A word that it may begin: a client reads the head of a tunnel's answer first.
        drop(stream.read_u8().await);
        let chunk = vec![7; 256 * 1024];
        while stream.write_all(&chunk).await.is_ok() {}
    });
    let tls = listen(move |stream| {
        let acceptor = acceptor.clone();
        async move {
            if let Ok(stream) = acceptor.accept(stream).await {
                answer(stream).await;
            }
        }
    });
    Ok(Servers {
        flood: flood.await?,
        web: listen(answer).await?,
        tls: tls.await?,
    })
}

async fn answer(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    while read_head(&mut stream).await.is_ok()
        && stream
            .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            .await
            .is_ok()
    {}
}

async fn listen<F, T>(each: F) -> io::Result<SocketAddr>
where
    F: Fn(TcpStream) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if stream.set_nodelay(true).is_ok() {
                tokio::spawn(each(stream));
            }
        }
    });
    Ok(address)
}

/// A server's side and a client's that trusts it. Sessions are not resumed, so that each connection
/// is a new one.
fn tls() -> Outcome<(TlsAcceptor, TlsConnector)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)?;
    let mut roots = rustls::RootCertStore::empty();
    roots.add(made.cert.der().clone())?;
    let mut client = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    client.resumption = rustls::client::Resumption::disabled();
    Ok((
        TlsAcceptor::from(Arc::new(server)),
        TlsConnector::from(Arc::new(client)),
    ))
}
