//! Commands that nobody wants from an agent, in whatever mode.

use super::place;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Word;

/// Devices that hold file systems, or memory.
const DEVICES: [&str; 16] =
    ["sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "mapper/", "disk/", "ram", "zram", "nbd", "mem", "kmem"];

/// Returns why a command is blocked, if it is.
pub(super) fn reason(command: &Command, depth: usize) -> Option<String> {
    let device =
        command.redirections.iter().filter(|redirection| redirection.writes()).filter_map(|redirection| redirection.target.as_ref());
    if let Some(device) = device.map(|word| word.text.as_str()).find(|path| is_device(path)) {
        return Some(format!("it writes onto the device {device}"));
    }
    let program = command.program()?;
    let arguments = command.arguments();
    let Some(name) = command.name() else {
        // Whatever it is called: what is given to it is what `rm` takes.
        return looks_like_removal(arguments, depth).or_else(|| split_by_expansion(program, depth));
    };
    match name {
        "sudo" | "su" | "doas" | "pkexec" | "runuser" => Some(format!("{name} asks for the rights of another user")),
        "rm" | "srm" => removal(arguments, depth),
        "find" | "gfind" => find(arguments, depth),
        "mv" => {
            let whole =
                words::operands(arguments).find_map(|word| place::precious(&word.text, depth).filter(|_| !word.text.starts_with('.')));
            whole.map(|what| format!("it moves {what}"))
        }
        "shred" | "wipefs" | "blkdiscard" | "mkswap" | "badblocks" => Some(format!("{name} destroys what is on a disk")),
        _ if name == "mkfs" || name.starts_with("mkfs.") || name == "mke2fs" => Some(format!("{name} makes a file system")),
        "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "parted" | "cfdisk" => Some(format!("{name} changes the parts of a disk")),
        "shutdown" | "reboot" | "halt" | "poweroff" | "telinit" | "kexec" => Some(format!("{name} ends the machine")),
        "init" => arguments.first().filter(|word| matches!(word.text.as_str(), "0" | "6")).map(|_| "init ends the machine".to_owned()),
        "systemctl" => {
            let ends = |word: &&Word| matches!(word.text.as_str(), "poweroff" | "reboot" | "halt" | "kexec" | "emergency" | "rescue");
            arguments.iter().find(ends).map(|word| format!("systemctl {} ends the machine", word.text))
        }
        "kill" => kills_all(arguments).then(|| "it ends every process".to_owned()),
        "killall5" => Some("it ends every process".to_owned()),
        "chmod" | "chown" | "chgrp" => owners(name, arguments, depth),
        "dd" => dd(arguments),
        "cp" | "tee" | "install" | "truncate" | "cat" | "mcopy" | "pv" => {
            // Reading from a device is held off by the box; these write to their last word, or to any.
            let words = if name == "cat" { &[] } else { arguments };
            let device = words.iter().map(|word| word.text.as_str()).find(|path| is_device(path));
            device.map(|device| format!("it writes onto the device {device}"))
        }
        _ => None,
    }
}

fn is_device(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|rest| {
        DEVICES.iter().any(|device| {
            let after = rest.strip_prefix(device);
            // `/dev/mem` is one, `/dev/memory-of-x` is none; `sda1`, `sd*` and `sd$X` are.
            after.is_some_and(|after| !matches!(*device, "mem" | "kmem") || after.is_empty())
        })
    })
}

fn removal(arguments: &[Word], depth: usize) -> Option<String> {
    if words::has(arguments, "", &["--no-preserve-root"]) {
        return Some("it removes the root folder".to_owned());
    }
    let recursive = words::may_have(arguments, "rR", &["--recursive"]);
    let what = words::operands(arguments).find_map(|word| place::precious(&word.text, depth))?;
    recursive.then(|| format!("it removes {what}"))
}

/// A program whose name is not known, with what `rm` is given.
fn looks_like_removal(arguments: &[Word], depth: usize) -> Option<String> {
    let recursive = arguments.iter().any(|word| words::is_option(&word.text, "rR", &["--recursive"]));
    let what = words::operands(arguments).find_map(|word| place::precious(&word.text, depth).filter(|_| !word.text.starts_with('.')))?;
    recursive.then(|| format!("it may remove {what}: which program it starts cannot be read"))
}

/// `rm$X-rf$X/`: what an expansion glues together.
fn split_by_expansion(program: &Word, depth: usize) -> Option<String> {
    let name = program.text.split('$').next()?;
    let is_removal = matches!(name.rsplit('/').next(), Some("rm"));
    let target = program.text.rsplit(['}', ' ']).next()?;
    (is_removal && place::precious(target, depth).is_some()).then(|| "it may remove what is precious".to_owned())
}

/// `find` that removes, or starts `rm`, from a place that is precious.
fn find(arguments: &[Word], depth: usize) -> Option<String> {
    let removes = arguments.iter().any(|word| matches!(word.text.as_str(), "-delete" | "rm" | "shred" | "/bin/rm" | "unlink"));
    let places = arguments.iter().take_while(|word| !word.text.starts_with(['-', '(', '!']));
    // Within such a place a test may choose; the whole of the root or of the home folder is never meant.
    let what = places.filter(|word| !word.text.starts_with('.')).find_map(|word| place::precious(&word.text, depth))?;
    removes.then(|| format!("it removes files all over {what}"))
}

/// `-1` as a process, not as a signal.
fn kills_all(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    match rest.first().map(|word| word.text.as_str()) {
        Some("-s" | "-n" | "--signal") => rest = rest.get(2..).unwrap_or_default(),
        Some(first) if first.starts_with('-') && first != "--" => rest = &rest[1..],
        _ => {}
    }
    rest.iter().any(|word| word.text == "-1")
}

fn owners(name: &str, arguments: &[Word], depth: usize) -> Option<String> {
    let mut operands = words::operands(arguments);
    // The first one says what is set.
    operands.next();
    let outside = operands.find(|word| place::is_outside(&word.text, depth))?;
    Some(format!("{name} on {}, outside of the project", outside.text))
}

fn dd(arguments: &[Word]) -> Option<String> {
    let value = |key: &str| arguments.iter().find_map(|word| word.text.strip_prefix(key)?.strip_prefix('='));
    if let Some(device) = value("of").filter(|path| is_device(path)) {
        return Some(format!("it writes onto the device {device}"));
    }
    let endless = value("if").is_some_and(|path| matches!(path, "/dev/zero" | "/dev/urandom" | "/dev/random"));
    (endless && value("count").is_none()).then(|| "dd without `count` fills the disk".to_owned())
}
