//! The program at the other end of a connection of this sandbox, as far as `/proc` tells: the
//! socket by its ports, then a process that has it open.
//!
//! It helps whoever reads what was tried. A command can hide from it.

use std::net::IpAddr;
use std::net::Ipv4Addr;
use std::net::SocketAddr;

use super::super::proc;

/// Most bytes of a table of sockets that are read: each takes 150, and there are at most as many as
/// descriptors.
const MAX_TABLE: u64 = 1024 * 1024;

/// Most descriptors that are looked at, over all processes: each takes a microsecond or two, for
/// which nothing else is carried.
const MAX_DESCRIPTORS: usize = 4096;

/// The kernel's tables, with what stands in front of an address of IPv4 in each.
const STREAMS: [(&str, &str); 2] = [
    ("self/net/tcp", ""),
    ("self/net/tcp6", "0000000000000000FFFF0000"),
];
const DATAGRAMS: [(&str, &str); 2] = [
    ("self/net/udp", ""),
    ("self/net/udp6", "0000000000000000FFFF0000"),
];

/// Returns the program whose socket has one address and is connected to another.
pub(super) fn of_stream(client: SocketAddr, to: SocketAddr) -> Option<String> {
    program_of(STREAMS, client, Some(to))
}

/// Returns the program that sends from an address.
pub(super) fn of_datagram(client: SocketAddr) -> Option<String> {
    program_of(DATAGRAMS, client, None)
}

fn program_of(
    tables: [(&str, &str); 2],
    client: SocketAddr,
    to: Option<SocketAddr>,
) -> Option<String> {
    let inode = tables.iter().find_map(|(table, before)| {
        let table = proc::read(table, MAX_TABLE).ok()?;
        let table = String::from_utf8(table).ok()?;
        inode_of(
            &table,
            &format!("{before}{}", written(client)?),
            to.and_then(written)
                .map(|to| format!("{before}{to}"))
                .as_deref(),
        )
    })?;
    process_with(inode).and_then(name_of)
}

/// Returns an address as the kernel writes it: the bytes as a number of this machine.
fn written(address: SocketAddr) -> Option<String> {
    let IpAddr::V4(ip) = address.ip() else {
        return None;
    };
    Some(format!("{}:{:04X}", hexadecimal(ip), address.port()))
}

fn hexadecimal(address: Ipv4Addr) -> String {
    format!("{:08X}", u32::from_ne_bytes(address.octets()))
}

/// Returns the inode of a socket. One of a program that does not connect it may be bound to all
/// addresses.
fn inode_of(table: &str, local: &str, remote: Option<&str>) -> Option<u64> {
    let port = local.rsplit_once(':')?.1;
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let (at, to) = (fields.nth(1)?, fields.next()?);
        let is_it = match remote {
            Some(remote) => at == local && to == remote,
            None => at.rsplit_once(':')?.1 == port,
        };
        // Behind them: state, queues, timer, retransmissions, user, timeout.
        let inode = fields.nth(6)?;
        is_it.then(|| inode.parse().ok()).flatten()
    })
}

/// Returns a process that has a socket open. Those that were started last come first.
fn process_with(inode: u64) -> Option<u32> {
    let wanted = format!("socket:[{inode}]").into_bytes();
    let mut processes: Vec<u32> = proc::names("")
        .ok()?
        .filter_map(|name| name.parse().ok())
        .filter(|&process| process != std::process::id())
        .collect();
    processes.sort_unstable_by(|one, other| other.cmp(one));
    let mut left = MAX_DESCRIPTORS;
    processes.into_iter().find(|process| {
        let folder = format!("{process}/fd");
        // One that ended meanwhile, or that may not be looked at.
        let Ok(descriptors) = proc::names(&folder) else {
            return false;
        };
        descriptors
            .take_while(|_| {
                let is_left = left > 0;
                left = left.saturating_sub(1);
                is_left
            })
            .any(|descriptor| {
                proc::link(&format!("{folder}/{descriptor}")).is_ok_and(|link| link == wanted)
            })
    })
}

/// Returns the name of a process's program: of its file, else the one that it gave itself.
fn name_of(process: u32) -> Option<String> {
    let file = proc::link(&format!("{process}/exe")).ok().and_then(|file| {
        let file = String::from_utf8_lossy(&file).into_owned();
        let file = file.strip_suffix(" (deleted)").unwrap_or(&file);
        file.rsplit('/').next().map(str::to_owned)
    });
    let own = || {
        let name = proc::read(&format!("{process}/comm"), 64).ok()?;
        Some(String::from_utf8_lossy(&name).trim().to_owned())
    };
    file.filter(|name| !name.is_empty()).or_else(own)
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;
    use std::net::UdpSocket;
    use std::process::Command;
    use std::process::Stdio;

    use super::*;

    /// Returns the program that is run, which need not have the name by which it was run.
    fn bash() -> String {
        let file = std::fs::canonicalize("/bin/bash").expect("bash");
        let name = file.file_name().expect("a name");
        name.to_string_lossy().into_owned()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a real process")]
    fn the_program_behind_a_connection_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let to = listener.local_addr().expect("its address");
        let mut child = Command::new("/bin/bash")
            .args([
                "-c",
                &format!("exec 3<>/dev/tcp/127.0.0.1/{}; read", to.port()),
            ])
            .stdin(Stdio::piped())
            .spawn()
            .expect("bash");
        let (_stream, client) = listener.accept().expect("a client");
        assert_eq!(of_stream(client, to), Some(bash()));
        assert_eq!(of_stream(to, client), None, "this process is no program");
        drop(child.stdin.take());
        child.wait().expect("it ends");
        assert_eq!(of_stream(client, to), None);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the test needs a real process")]
    fn the_program_behind_a_datagram_is_found() {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let port = socket.local_addr().expect("its address").port();
        let mut child = Command::new("/bin/bash")
            .args([
                "-c",
                &format!("exec 3<>/dev/udp/127.0.0.1/{port}; echo >&3; read"),
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("bash");
        let (_, client) = socket.recv_from(&mut [0]).expect("a datagram");
        assert_eq!(of_datagram(client), Some(bash()));
        drop(child.stdin.take());
        drop(child.stdout.take().map(|mut out| out.read(&mut [0])));
        child.wait().expect("it ends");
    }

    #[test]
    fn a_socket_is_known_by_both_ends_in_either_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1 0 100 0 0 10 0\n   \
                     1: 0100007F:A000 0100007F:0C38 01 00000000:00000000 00:00000000 00000000  1000        0 22 1 0 20 4 30 10 -1\n   \
                     2: 0100007F:0C38 0100007F:A000 01 00000000:00000000 00:00000000 00000000  1000        0 33 1 0 20 4 30 10 -1\n";
        assert_eq!(
            inode_of(table, "0100007F:A000", Some("0100007F:0C38")),
            Some(22)
        );
        assert_eq!(
            inode_of(table, "0100007F:A001", Some("0100007F:0C38")),
            None
        );
        assert_eq!(inode_of(table, "00000000:1F90", None), Some(11));
        assert_eq!(inode_of("", "0100007F:A000", None), None);
    }
}
