//! Ways out of the sandbox by the network. Nothing is sent except to listeners that the host opened
//! for this.

use std::fs;
use std::net::SocketAddr;
use std::net::TcpStream;
use std::net::UdpSocket;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net;
use std::time::Duration;

use nix::sys::socket::AddressFamily;
use nix::sys::socket::SockFlag;
use nix::sys::socket::SockProtocol;
use nix::sys::socket::SockType;
use nix::sys::socket::socket;

use super::Finding;

/// N-01: whether the kernel has a route to any address. Connecting a datagram socket sends nothing;
/// it only looks up the route.
pub(super) fn routes(_: &[String]) -> Finding {
    const ADDRESSES: [&str; 6] = [
        "169.254.169.254:80",
        "[fd00:ec2::254]:80",
        "192.0.2.1:443",
        "[2001:db8::1]:443",
        "10.0.0.1:80",
        "172.17.0.1:2375",
    ];
    let mut worked = Vec::new();
    for text in ADDRESSES {
        let address: SocketAddr = text.parse().expect("an address");
        let any = if address.is_ipv4() {
            "0.0.0.0:0"
        } else {
            "[::]:0"
        };
        if UdpSocket::bind(any).is_ok_and(|socket| socket.connect(address).is_ok()) {
            worked.push(format!("there is a way to {text}"));
        }
    }
    Finding::of(
        &worked,
        format!("no way to any of {} addresses", ADDRESSES.len()),
    )
}

/// N-02: interfaces and routes.
pub(super) fn interfaces(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    let listed = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names = listed
        .lines()
        .skip(2)
        .filter_map(|line| line.split(':').next())
        .map(str::trim);
    worked.extend(
        names
            .filter(|name| *name != "lo" && is_up(name))
            .map(|name| format!("interface {name}")),
    );
    let routes = fs::read_to_string("/proc/net/route").unwrap_or_default();
    worked.extend(
        routes
            .lines()
            .skip(1)
            .filter_map(|line| line.split_whitespace().next())
            .map(|name| format!("a route by {name}")),
    );
    let addresses = fs::read_to_string("/proc/net/if_inet6").unwrap_or_default();
    let names = addresses
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    worked.extend(
        names
            .filter(|name| *name != "lo")
            .map(|name| format!("an address of {name}")),
    );
    worked.dedup();
    Finding::of(&worked, "loopback alone")
}

/// Kernels create idle tunnel interfaces in every namespace.
fn is_up(name: &str) -> bool {
    let flags = fs::read_to_string(format!("/sys/class/net/{name}/flags")).unwrap_or_default();
    u32::from_str_radix(flags.trim().trim_start_matches("0x"), 16).unwrap_or(1) & 1 == 1
}

/// N-03: configured name servers.
pub(super) fn resolver(_: &[String]) -> Finding {
    let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let is_own = |line: &str| {
        let mut words = line.split_whitespace();
        let (word, value) = (
            words.next().unwrap_or_default(),
            words.next().unwrap_or_default(),
        );
        // Compose cannot leave the file empty: there it names the sandbox's own loopback.
        word.starts_with('#')
            || word == "options"
            || word == "nameserver" && value == "127.0.0.1"
            || word == "search" && value == "."
    };
    let told: Vec<String> = text
        .lines()
        .filter(|line| !line.trim().is_empty() && !is_own(line))
        .map(str::to_owned)
        .collect();
    Finding::of(&told, "no name server is configured")
}

/// N-04: ports and an abstract socket that the host opened: addresses first, then the name behind
/// an `@`.
pub(super) fn listeners(arguments: &[String]) -> Finding {
    let mut worked = Vec::new();
    for argument in arguments {
        let reached = match argument.strip_prefix('@') {
            Some(name) => net::SocketAddr::from_abstract_name(name)
                .is_ok_and(|name| net::UnixStream::connect_addr(&name).is_ok()),
            None => argument.parse().is_ok_and(|address| {
                TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
            }),
        };
        if reached {
            worked.push(format!("{argument} answered"));
        }
    }
    Finding::of(&worked, format!("none of {} answered", arguments.len()))
}

/// N-05: raw and packet sockets.
pub(super) fn raw(_: &[String]) -> Finding {
    let mut worked = Vec::new();
    for (name, family, protocol) in [
        ("a raw IPv4 socket", AddressFamily::Inet, SockProtocol::Icmp),
        (
            "a raw IPv6 socket",
            AddressFamily::Inet6,
            SockProtocol::IcmpV6,
        ),
        (
            "a packet socket",
            AddressFamily::Packet,
            SockProtocol::EthAll,
        ),
    ] {
        if socket(family, SockType::Raw, SockFlag::empty(), protocol).is_ok() {
            worked.push(name.to_owned());
        }
    }
    Finding::of(&worked, "3 refused")
}
