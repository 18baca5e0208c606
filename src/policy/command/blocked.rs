//! Commands that nobody wants from an agent, in whatever mode.

use super::emptied;
use super::ending;
use super::finding;
use super::ground::Ground;
use super::mode;
use super::place;
use super::words;
use podbay_code::shell::Command;
use podbay_code::shell::Word;

/// Devices that hold file systems, or memory.
const DEVICES: [&str; 21] = [
    "block/", "zvol/", "pmem", "sg", "port", "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "loop", "dm-", "md", "mapper/", "disk/", "ram",
    "zram", "nbd", "mem", "kmem",
];

/// Returns why a command is blocked, if it is.
pub(super) fn reason(command: &Command, ground: &Ground) -> Option<String> {
    let targets =
        command.redirections.iter().filter(|redirection| redirection.writes()).filter_map(|redirection| redirection.target.as_ref());
    let writes: Vec<&str> = targets.map(|word| word.text.as_str()).collect();
    if let Some(device) = writes.iter().find(|path| is_device(path)) {
        return Some(format!("it writes onto the device {device}"));
    }
    if writes.contains(&"/proc/sysrq-trigger") {
        return Some("it ends the machine".to_owned());
    }
    if let Some(reason) = emptied::reason(command, ground) {
        return Some(reason);
    }
    let program = command.program()?;
    let arguments = command.arguments();
    let Some(name) = command.name() else {
        // Whatever it is called: what is given to it is what `rm` takes.
        return looks_like_removal(program, arguments, ground).or_else(|| split_by_expansion(program, ground));
    };
    // What only says how it is used, or which version it is.
    if let [one] = arguments
        && matches!(one.known(), Some("--help" | "--version"))
    {
        return None;
    }
    match name {
        "sudo" | "su" | "doas" | "pkexec" | "runuser" | "sudoedit" | "gosu" | "su-exec" | "run0" => {
            Some(format!("{name} asks for the rights of another user"))
        }
        "rm" | "srm" | "unlink" => removal(arguments, ground),
        "find" | "gfind" => finding::reason(arguments, ground),
        "mv" => {
            // What `xargs` may add comes last, and then is where all goes; but the folder for passing things is never what is moved.
            let is_added = |word: &&Word| matches!(word.text.as_str(), "…" | "./…");
            let (added, mut moved): (Vec<&Word>, Vec<&Word>) = words::operands(arguments).partition(is_added);
            let goes_to_last = added.is_empty() || moved.last().is_some_and(|word| matches!(word.text.as_str(), "/tmp" | "/tmp/"));
            let named = target_folder(arguments);
            // Without an option for it the last one is where it goes.
            let to = match &named {
                Some(folder) => {
                    moved.retain(|word| word.text != *folder);
                    named.clone()
                }
                None => moved.last().map(|word| word.text.clone()),
            };
            if named.is_none() && moved.len() > 1 && goes_to_last {
                moved.pop();
            }
            let is = |word: &Word, what: &str| place::precious(&word.text, ground).as_deref() == Some(what);
            let is_meant = |word: &&&Word| !word.text.starts_with('.') || is(word, place::COMMITS);
            let whole = moved.iter().filter(is_meant).find_map(|word| place::precious_by_name(&word.text, ground));
            // Within the project it only changes its place.
            let leaves = to.is_some_and(|to| place::is_beyond(&to, ground));
            let project = || moved.iter().find(|word| is(word, place::PROJECT)).filter(|_| leaves).map(|_| place::PROJECT.to_owned());
            whole.or_else(project).map(|what| format!("it moves {what}"))
        }
        "shred" | "wipefs" | "blkdiscard" | "mkswap" | "badblocks" => Some(format!("{name} destroys what is on a disk")),
        _ if name == "mkfs" || name.starts_with("mkfs.") || matches!(name, "mke2fs" | "mkdosfs" | "mkntfs") => {
            Some(format!("{name} makes a file system"))
        }
        "fdisk" | "sfdisk" | "gdisk" | "sgdisk" | "parted" | "cfdisk" => Some(format!("{name} changes the parts of a disk")),
        "shutdown" | "reboot" | "halt" | "poweroff" | "telinit" | "kexec" => Some(format!("{name} ends the machine")),
        "init" => arguments.first().filter(|word| matches!(word.text.as_str(), "0" | "6")).map(|_| "init ends the machine".to_owned()),
        "systemctl" => {
            let ends = |word: &&Word| matches!(word.text.as_str(), "poweroff" | "reboot" | "halt" | "kexec" | "emergency" | "rescue");
            let asks = |word: &Word| matches!(word.known(), Some("cat" | "is-active" | "is-enabled" | "show" | "status"));
            let ending = arguments.iter().find(ends).filter(|_| !arguments.first().is_some_and(asks));
            ending.map(|word| format!("systemctl {} ends the machine", word.text))
        }
        "kill" if ending::by_number(arguments) => Some("it ends every process".to_owned()),
        "pkill" if ending::by_pattern(arguments) => Some("it ends every process".to_owned()),
        "killall" if ending::by_name(arguments) => Some("it ends every process".to_owned()),
        "killall5" => Some("it ends every process".to_owned()),
        "chmod" | "chown" | "chgrp" => owners(name, arguments, ground),
        "dd" => dd(arguments),
        "cp" | "tee" | "install" | "truncate" | "cat" | "mcopy" | "pv" => {
            if name == "tee" && arguments.iter().any(|word| word.text == "/proc/sysrq-trigger") {
                return Some("it ends the machine".to_owned());
            }
            // Reading from a device is held off by the box; these write to their last word, or to any.
            let words = if name == "cat" { &[] } else { arguments };
            let device = words.iter().map(|word| word.text.as_str()).find(|path| is_device(path));
            device.map(|device| format!("it writes onto the device {device}"))
        }
        _ => None,
    }
}

fn is_device(path: &str) -> bool {
    let Some(path) = place::absolute(path) else { return false };
    path.strip_prefix("/dev/").is_some_and(|rest| {
        DEVICES.iter().any(|device| {
            let after = rest.strip_prefix(device);
            // `/dev/mem` is one, `/dev/memory-of-x` is none; `sda1`, `sd*` and `sd$X` are.
            after.is_some_and(|after| !matches!(*device, "mem" | "kmem" | "port") || after.is_empty())
        })
    })
}

fn removal(arguments: &[Word], ground: &Ground) -> Option<String> {
    if words::has(arguments, "", &["--no-preserve-root"]) {
        return Some("it removes the root folder".to_owned());
    }
    let (letters, long) = ("rR", &["--recursive"]);
    let (recursive, may_be) = (words::has(arguments, letters, long), words::may_have(arguments, letters, long));
    let what = words::operands(arguments).find_map(|word| {
        // The star of `rm *` may stand for an option, too, but that is not what it is for.
        let is_certain = recursive || place::precious_by_name(&word.text, ground).is_some();
        // What `find` finds is taken file by file.
        let is_meant = (is_certain && may_be) || takes_all(word) || goes_deep(word);
        place::precious(&word.text, ground).filter(|_| is_meant)
    })?;
    Some(format!("it removes {what}"))
}

/// Returns whether a word stands for all that lies in a place, and deeper.
pub(super) fn takes_all(word: &Word) -> bool {
    word.text.ends_with("/**")
}

/// Returns whether a word names what lies in every folder: `**/*`, `*/*`.
fn goes_deep(word: &Word) -> bool {
    let parts = || word.text.split('/');
    parts().any(|part| part == "**") || parts().filter(|part| place::takes_any(part)).count() > 1
}

/// A program whose name is not known, with what `rm` is given.
///
/// One that a substitution computes is hidden, and counts as `rm` for all of the project, too; one in a variable, such as `$CC`, is often given
/// that for something else.
fn looks_like_removal(program: &Word, arguments: &[Word], ground: &Ground) -> Option<String> {
    let recursive = arguments.iter().any(|word| words::is_option(&word.text, "rR", &["--recursive"]));
    let forced = arguments.iter().any(|word| words::is_option(&word.text, "f", &["--force"]));
    let is_computed = program.text.contains("$(") || program.text.contains('`');
    let precious = |word: &Word| match word.text.starts_with('.') {
        _ if is_computed && forced => place::precious(&word.text, ground),
        true => None,
        false => place::precious_by_name(&word.text, ground),
    };
    let what = words::operands(arguments).find_map(precious)?;
    // To look through what lies there is everyday: `$GREP -r x /usr/include`.
    let is_meant = forced || !place::is_within_system(&what);
    (recursive && is_meant).then(|| format!("it may remove {what}: which program it starts cannot be read"))
}

/// `rm$X-rf$X/`: what an expansion glues together.
fn split_by_expansion(program: &Word, ground: &Ground) -> Option<String> {
    let name = program.text.split(['$', '`']).next()?;
    let is_removal = matches!(name.rsplit('/').next(), Some("rm"));
    let target = program.text.rsplit(['}', ' ']).next()?;
    (is_removal && place::precious(target, ground).is_some()).then(|| "it may remove what is precious".to_owned())
}

/// Returns whether a word is a file that is always empty.
pub(super) fn is_nothing(word: &Word) -> bool {
    word.text == "/dev/null"
}

fn owners(name: &str, arguments: &[Word], ground: &Ground) -> Option<String> {
    let locks = if name == "chmod" { mode::reason(arguments, ground) } else { None };
    if locks.is_some() {
        return locks;
    }
    // The first one says what is set.
    let mut operands = words::operands(arguments).skip(1);
    let outside = operands.find(|word| place::is_outside(&word.text, ground))?;
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

/// Returns the folder that `-t` names: behind it, or with it in one word.
pub(super) fn target_folder(arguments: &[Word]) -> Option<String> {
    arguments.iter().enumerate().take_while(|(_, word)| word.text != "--").find_map(|(at, word)| {
        let text = word.text.as_str();
        let next = || arguments.get(at + 1).map(|word| word.text.clone());
        let (option, value) = text.split_once('=').map_or((text, None), |(option, value)| (option, Some(value)));
        if option.len() > 2 && "--target-directory".starts_with(option) {
            return value.map(ToOwned::to_owned).or_else(next);
        }
        let flags = text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
        let (_, value) = flags.split_once('t')?;
        if value.is_empty() { next() } else { Some(value.to_owned()) }
    })
}
