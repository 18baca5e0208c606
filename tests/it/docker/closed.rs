//! What of the host a command finds in its sandbox: its kernel's files, devices, namespaces, sockets
//! and network.

use std::io::Read;
use std::io::Write;
use std::net::IpAddr;
use std::net::TcpListener;
use std::net::TcpStream;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::SocketAddr;
use std::os::unix::net::UnixListener;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering;

use nix::sys::stat::Mode;
use nix::sys::stat::SFlag;
use nix::sys::stat::mknod;
use podbay::sandbox::MASKED_PATHS;
use podbay::sandbox::READONLY_PATHS;

use super::test_box::TestBox;
use crate::support::test_env::is_root;
use crate::support::test_env::owner;
use crate::support::test_env::run;

/// Runs a Python script in a new sandbox, with arguments, and returns what it prints.
#[track_caller]
fn python(env: &TestBox, script: &str, arguments: &[&str]) -> String {
    run(env
        .here(&["sh", "--", "python3", "-c", script])
        .args(arguments))
    .expect(0)
    .text()
}

/// Both an ordinary user's sandbox and, where it is available, one of uid 0, to whom modes of files say
/// nothing.
fn for_user_and_root(check: impl Fn(&TestBox)) {
    let Some(env) = TestBox::new() else { return };
    check(&env);
    if is_root("a project of root's") {
        std::os::unix::fs::chown(env.project(), Some(0), Some(0)).expect("root");
        check(&env);
    }
    env.assert_no_container();
}

#[test]
fn kernel_files_cannot_be_read_or_written() {
    const SCRIPT: &str = r#"
import ctypes, os, sys
masked, readonly = (paths.split() for paths in sys.argv[1:])
for path in filter(os.path.exists, masked):
    inside = os.listdir(path) if os.path.isdir(path) else open(path, "rb").read(100)
    print("masked", path, "holds", len(inside))
for path in filter(os.path.exists, readonly):
    print("readonly", path, bool(os.statvfs(path).f_flag & os.ST_RDONLY))
for path in ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
             "/sys/kernel/uevent_helper", "/sys/power/state", "/proc/kmsg", "/dev/kmsg", "/dev/mem", "/proc/1/mem"]:
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
        print("opened", path)
    except OSError:
        pass
for path in ["/proc/kmsg", "/dev/kmsg", "/dev/mem", "/proc/kcore", "/proc/1/mem"]:
    try:
        if open(path, "rb", buffering=0).read(1):
            print("read", path)
    except OSError:
        pass
libc = ctypes.CDLL(None, use_errno=True)
for path in masked + readonly:
    if libc.umount2(path.encode(), 2) == 0:
        print("unmounted", path)
print("memory", "MemTotal" in open("/proc/meminfo").read(), int(open("/proc/sys/kernel/pid_max").read()) > 0)
"#;
    for_user_and_root(|env| {
        let text = python(
            env,
            SCRIPT,
            &[&MASKED_PATHS.join(" "), &READONLY_PATHS.join(" ")],
        );
        let mut n_masked = 0;
        for line in text.lines() {
            n_masked += usize::from(line.starts_with("masked"));
            let good = line.starts_with("masked") && line.ends_with("holds 0")
                || line.starts_with("readonly") && line.ends_with("True")
                || line == "memory True True";
            assert!(good, "{line}");
        }
        assert!(
            text.ends_with("memory True True\n"),
            "what programs need can be read: {text}"
        );
        let says_something = |path: &str| {
            std::fs::File::open(path)
                .is_ok_and(|mut file| file.read(&mut [0]).is_ok_and(|n| n == 1))
        };
        let n_outside = MASKED_PATHS
            .iter()
            .filter(|path| says_something(path))
            .count();
        assert!(
            n_masked > 3 && n_outside > 1,
            "there was something to mask: {text}"
        );
        let n_readonly = READONLY_PATHS
            .iter()
            .filter(|path| std::path::Path::new(path).exists())
            .count();
        assert_eq!(
            text.lines()
                .filter(|line| line.starts_with("readonly"))
                .count(),
            n_readonly,
            "{text}"
        );
    });
}

/// Leaves devices in the project that everybody may read, the kernel's log and the disk it lies on;
/// returns how many.
fn leave_devices(env: &TestBox) -> usize {
    if !is_root("devices in the project") {
        return 0;
    }
    let disk = std::fs::metadata(env.project()).expect("the project").dev();
    let devices = [
        ("log", SFlag::S_IFCHR, libc::makedev(1, 11)),
        ("disk", SFlag::S_IFBLK, disk),
    ];
    let opens = |&(name, kind, device): &(&str, SFlag, u64)| {
        let path = env.path(name);
        let _ = std::fs::remove_file(&path);
        mknod(&path, kind, Mode::empty(), device).expect("root");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o666)).expect("ours");
        let opened = std::fs::File::open(&path).is_ok();
        // Not every file system lies on a disk.
        if !opened {
            std::fs::remove_file(&path).expect("ours");
        }
        opened
    };
    let n_left = devices.iter().filter(|device| opens(device)).count();
    assert!(n_left > 0, "outside they can be opened");
    n_left
}

#[test]
fn no_device_and_no_namespace_of_the_host_is_there() {
    const SCRIPT: &str = r#"
import os, stat
for name in sorted(os.listdir("/proc/self/ns")):
    print("namespace", os.readlink("/proc/self/ns/" + name))
for top, folders, files in os.walk("/"):
    if top == "/proc":
        folders.clear()
    for path in (os.path.join(top, name) for name in files):
        try:
            facts = os.lstat(path)
        except FileNotFoundError:
            # What stands in /sys of other containers comes and goes.
            continue
        if stat.S_ISBLK(facts.st_mode) or stat.S_ISCHR(facts.st_mode):
            try:
                os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY))
                print("device", os.major(facts.st_rdev), os.minor(facts.st_rdev))
            except OSError as error:
                print("closed", path, error.strerror)
for folder in ["/tmp", "/workspace", "/dev/shm"]:
    for kind, device in [(stat.S_IFBLK, os.makedev(8, 0)), (stat.S_IFCHR, os.makedev(1, 1)), (stat.S_IFCHR, os.makedev(5, 1)), (stat.S_IFCHR, 0)]:
        try:
            os.mknod(folder + "/node", 0o666 | kind, device)
            print("made", folder)
        except PermissionError:
            pass
os.mkfifo("/tmp/fifo")
print("groups", sorted({os.getgid(), *os.getgroups()}))
print("processes", all(int(pid) < 1000 for pid in os.listdir("/proc") if pid.isdigit()))
print("host", os.uname().nodename)
"#;
    for_user_and_root(|env| {
        let n_left = leave_devices(env);
        let text = python(env, SCRIPT, &[]);
        let mut n_namespaces = 0;
        for line in text.lines() {
            match line.split_once(' ').expect("two words") {
                // Two kinds have no private one without the engine's user namespaces; the page says
                // so.
                ("namespace", name) if name.starts_with("user:") || name.starts_with("time") => {}
                ("namespace", name) => {
                    n_namespaces += 1;
                    let kind = name.split(':').next().expect("its kind");
                    let ours = std::fs::read_link(format!("/proc/self/ns/{kind}")).expect("ours");
                    assert_ne!(name, ours.to_string_lossy(), "a namespace of the host");
                }
                ("device", number) => {
                    assert!(
                        ["1 3", "1 5", "1 7", "1 8", "1 9", "5 0", "5 2"].contains(&number),
                        "a device: {line}"
                    );
                }
                ("closed", what) => assert!(
                    !what.contains("/workspace") || what.contains("not permitted"),
                    "{line}"
                ),
                ("groups", list) => assert!(
                    list == format!("[{}]", owner().1) || list == "[0]",
                    "{line}"
                ),
                ("processes", all) => assert_eq!(all, "True", "processes of the sandbox alone"),
                ("host", name) => assert_eq!(name, "workspace"),
                _ => panic!("{line}"),
            }
        }
        assert!(n_namespaces >= 6 && text.contains("device 1 3"), "{text}");
        assert_eq!(text.matches("closed /workspace/").count(), n_left, "{text}");
    });
}

#[test]
fn no_socket_of_the_host_is_in_the_box() {
    const SCRIPT: &str = r#"
import os, socket, stat, sys
for top, folders, files in os.walk("/"):
    if top == "/proc":
        folders.clear()
    for path in (os.path.join(top, name) for name in files):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            print("socket", path)
for line in open("/proc/net/unix").read().splitlines()[1:]:
    if len(line.split()) > 7:
        print("listening", line.split()[7])
for address in ["\0" + sys.argv[1], sys.argv[2], "/var/run/docker.sock", "/run/docker.sock", "/run/containerd/containerd.sock"]:
    try:
        socket.socket(socket.AF_UNIX).connect(address)
        print("reached", repr(address))
    except OSError:
        pass
for file in os.listdir("/proc/self/fd"):
    try:
        if stat.S_ISSOCK(os.fstat(int(file)).st_mode):
            print("inherited", file)
    except OSError:
        pass
for address in ["/tmp/own", "\0own", "/workspace/own"]:
    server, client = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    server.bind(address)
    server.listen()
    client.connect(address)
    client.send(b"own")
    print(server.accept()[0].recv(3).decode())
os.unlink("/workspace/own")
"#;
    let Some(env) = TestBox::new() else { return };
    let (name, path) = (format!("podbay-test-{}", env.key()), env.beside("socket"));
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let _listening = (
        UnixListener::bind_addr(&address).expect("free"),
        UnixListener::bind(&path).expect("free"),
    );
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777)).expect("ours");
    assert!(
        UnixStream::connect_addr(&address).is_ok() && UnixStream::connect(&path).is_ok(),
        "outside both answer"
    );
    let text = python(&env, SCRIPT, &[&name, path.to_str().expect("is text")]);
    assert_eq!(
        text,
        "own\n".repeat(3),
        "sockets of its own work, and there is no other"
    );
    env.assert_no_container();
}

/// Addresses of this machine and of others that something might answer at.
fn addresses() -> Vec<IpAddr> {
    let of_interface = |interface: nix::ifaddrs::InterfaceAddress| {
        let address = interface.address?;
        let four = address
            .as_sockaddr_in()
            .map(|address| IpAddr::V4(address.ip()));
        four.or_else(|| {
            address
                .as_sockaddr_in6()
                .map(|address| IpAddr::V6(address.ip()))
        })
    };
    let mut found: Vec<IpAddr> = nix::ifaddrs::getifaddrs()
        .expect("interfaces")
        .filter_map(of_interface)
        .collect();
    found.retain(
        |address| !matches!(address, IpAddr::V6(address) if address.is_unicast_link_local()),
    );
    found
}

#[test]
fn no_address_but_loopback_answers() {
    const SCRIPT: &str = r#"
import errno, fcntl, os, socket, struct, sys, threading
port = int(sys.argv[1])
others = ["172.17.0.1", "169.254.169.254", "10.0.0.1", "192.168.0.1", "8.8.8.8", "255.255.255.255", "224.0.0.1",
          "2001:4860:4860::8888", "::ffff:8.8.8.8", "ff02::1", "fe80::1%lo"]
for address in sys.argv[2:] + others:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
        try:
            one = socket.socket(family, kind)
            one.settimeout(5)
            if kind == socket.SOCK_DGRAM:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            one.connect((address, port))
            # Without a server a datagram on loopback goes nowhere, as on any machine; the host says whether one came.
            if kind == socket.SOCK_STREAM:
                print("reached", address)
            else:
                one.send(b"out")
                if not (address.startswith("127.") or address == "::1"):
                    print("sent to", address)
        except OSError as error:
            pass
interfaces = [name for number, name in socket.if_nameindex()]
print("interfaces", interfaces)
request = struct.pack("16sH2s4s8s", b"lo", socket.AF_INET, b"", socket.inet_aton("10.1.2.3"), b"")
try:
    fcntl.ioctl(socket.socket(), 0x8916, request)
    print("set an address")
except PermissionError:
    pass
try:
    print("resolved", socket.getaddrinfo("example.com", 80))
except socket.gaierror:
    pass
print("localhost", sorted({found[4][0] for found in socket.getaddrinfo("localhost", 80)}))
server = socket.create_server(("127.0.0.1", 0))
def answer():
    server.accept()[0].sendall(b"own server")
threading.Thread(target=answer).start()
print(socket.create_connection(server.getsockname()).recv(20).decode())
"#;
    let Some(env) = TestBox::new() else { return };
    // On every address of this machine somebody listens.
    let listener = TcpListener::bind("[::]:0")
        .or_else(|_| TcpListener::bind("0.0.0.0:0"))
        .expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    let datagrams = std::net::UdpSocket::bind((listener.local_addr().expect("bound").ip(), port))
        .expect("free as well");
    datagrams.set_nonblocking(true).expect("ours");
    let n_came = Arc::new(AtomicUsize::new(0));
    std::thread::spawn({
        let n_came = Arc::clone(&n_came);
        move || {
            for mut stream in listener.incoming().flatten() {
                n_came.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(b"host");
            }
        }
    });
    let addresses = addresses();
    for address in &addresses {
        let mut word = String::new();
        let mut stream = TcpStream::connect((*address, port))
            .unwrap_or_else(|error| panic!("{address}: {error}"));
        stream.read_to_string(&mut word).expect("read");
        assert_eq!(word, "host", "outside {address} answers");
    }
    let before = n_came.load(Ordering::SeqCst);
    assert!(before >= 2, "loopback and another: {addresses:?}");
    let mut arguments = vec![port.to_string()];
    arguments.extend(addresses.iter().map(ToString::to_string));
    let text = python(
        &env,
        SCRIPT,
        &arguments.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    assert_eq!(
        text,
        "interfaces ['lo']\nlocalhost ['127.0.0.1', '::1']\nown server\n"
    );
    assert_eq!(n_came.load(Ordering::SeqCst), before);
    assert!(datagrams.recv(&mut [0; 8]).is_err(), "a datagram came out");
    env.assert_no_container();
}
