//! The sandbox's end of the way to the gateway: a proxy on loopback, the variables that tell
//! programs of it, and a name server for those that know nothing of proxies.
//!
//! ```text
//! program ── HTTP to a proxy ──────────────────────> proxy ──┐
//! program ── name? ──> dns ── names (address, ports)         ├──> gateway's socket
//! program ── its own bytes to that address ────────> names ──┘
//! ```
//!
//! What may be reached the gateway decides, outside of the sandbox. Nothing here is a boundary:
//! commands reach the gateway's socket without it just as well.

mod asker;
mod dns;
mod gateway;
mod names;
mod proxy;
mod variables;

use std::io;
use std::net::Ipv4Addr;
use std::net::TcpListener;
use std::net::UdpSocket;
use std::path::Path;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::OnceLock;

use names::Names;
use podbay_wire::EGRESS_FOLDER;
use podbay_wire::EGRESS_SOCKET;
use podbay_wire::PROXY_PORT;
use proxy::Carrier;

/// Where resolvers ask that are told of no other place: without `/etc/resolv.conf`, or with an empty
/// one.
const DNS_PORT: u16 = 53;

/// What the thread calls goes some frames deep.
const STACK: usize = 512 * 1024;

/// Why there is no name server, where there should be one.
static NO_NAMES: OnceLock<String> = OnceLock::new();

/// Offers proxy and names where the gateway's volume is mounted; elsewhere there is never a
/// gateway. They have a thread of their own, so that a download takes no time from the calls that
/// the guest serves.
pub(super) fn start() -> io::Result<()> {
    if !Path::new(EGRESS_FOLDER).is_dir() {
        return Ok(());
    }
    let proxy = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
    proxy.set_nonblocking(true)?;
    let dns = match dns_socket() {
        Ok(socket) => Some(socket),
        Err(error) => {
            // It is set once.
            drop(NO_NAMES.set(error.to_string()));
            None
        }
    };
    std::thread::Builder::new()
        .name("proxy".to_owned())
        .stack_size(STACK)
        .spawn(move || {
            // Without a runtime there is no proxy, and what wants one is told by its connection.
            let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
            else {
                return;
            };
            // Either fails only where the runtime does.
            drop(runtime.block_on(serve(proxy, dns)));
        })
        .map(drop)
}

/// Serves the proxy alone, which leads to the gateway of this socket.
pub async fn serve_proxy(listener: tokio::net::TcpListener, socket: PathBuf) {
    proxy::serve(listener, Carrier::new(socket)).await;
}

/// Returns why programs that know nothing of proxies reach no host, where they should.
pub(super) fn no_names() -> Option<&'static str> {
    NO_NAMES.get().map(String::as_str)
}

fn dns_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, DNS_PORT))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

async fn serve(proxy: TcpListener, dns: Option<UdpSocket>) -> io::Result<()> {
    let carrier = Carrier::new(socket());
    let proxy = tokio::net::TcpListener::from_std(proxy)?;
    if let Some(socket) = dns {
        let socket = tokio::net::UdpSocket::from_std(socket)?;
        let names = Names::new(carrier.clone());
        tokio::spawn(dns::serve(socket, move |name, asker| {
            Arc::clone(&names).find(name, asker)
        }));
    }
    proxy::serve(proxy, carrier).await;
    Ok(())
}

/// Returns what commands find in their environment: with the proxy, once there is a gateway.
pub(super) fn environment(own: &[Vec<u8>]) -> Vec<Vec<u8>> {
    if socket().exists() {
        variables::with_proxy(own)
    } else {
        own.to_vec()
    }
}

/// Returns whether there is a gateway, or was to be one.
pub(super) fn has_gateway_volume() -> bool {
    Path::new(EGRESS_FOLDER).is_dir()
}

/// Returns whether a gateway has begun.
pub(super) fn has_gateway() -> bool {
    socket().exists()
}

fn socket() -> PathBuf {
    Path::new(EGRESS_FOLDER).join(EGRESS_SOCKET)
}
