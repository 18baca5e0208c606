//! Commands that nobody wants from an agent, in whatever mode.

use super::emptied;
use super::place;
use super::place::Ground;
use super::words;
use crate::code::shell::Command;
use crate::code::shell::Word;

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
        return looks_like_removal(arguments, ground).or_else(|| split_by_expansion(program, ground));
    };
    match name {
        "sudo" | "su" | "doas" | "pkexec" | "runuser" | "sudoedit" | "gosu" | "su-exec" | "run0" => {
            Some(format!("{name} asks for the rights of another user"))
        }
        "rm" | "srm" | "unlink" => removal(arguments, ground),
        "find" | "gfind" => find(arguments, ground),
        "mv" => {
            let mut moved: Vec<&Word> = words::operands(arguments).collect();
            let named = target_folder(arguments);
            // Without an option for it the last one is where it goes.
            let to = match &named {
                Some(folder) => {
                    moved.retain(|word| word.text != *folder);
                    named.clone()
                }
                None => moved.last().map(|word| word.text.clone()),
            };
            if named.is_none() && moved.len() > 1 {
                moved.pop();
            }
            let is_meant = |word: &&&Word| !word.text.starts_with('.');
            let whole = moved.iter().filter(is_meant).find_map(|word| place::precious_by_name(&word.text, ground));
            // Within the project it only changes its place.
            let leaves = to.is_some_and(|to| place::is_beyond(&to, ground));
            let is_project = |word: &&&Word| place::precious(&word.text, ground).as_deref() == Some(place::PROJECT);
            let project = || moved.iter().find(is_project).filter(|_| leaves).map(|_| place::PROJECT.to_owned());
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
            arguments.iter().find(ends).map(|word| format!("systemctl {} ends the machine", word.text))
        }
        "kill" => kills_all(arguments).then(|| "it ends every process".to_owned()),
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

/// Returns whether a word names what lies in every folder: `**/*`.
fn goes_deep(word: &Word) -> bool {
    word.text.split('/').any(|part| part == "**")
}

/// A program whose name is not known, with what `rm` is given.
fn looks_like_removal(arguments: &[Word], ground: &Ground) -> Option<String> {
    let recursive = arguments.iter().any(|word| words::is_option(&word.text, "rR", &["--recursive"]));
    let is_meant = |word: &&Word| !word.text.starts_with('.');
    let what = words::operands(arguments).filter(is_meant).find_map(|word| place::precious_by_name(&word.text, ground))?;
    recursive.then(|| format!("it may remove {what}: which program it starts cannot be read"))
}

/// `rm$X-rf$X/`: what an expansion glues together.
fn split_by_expansion(program: &Word, ground: &Ground) -> Option<String> {
    let name = program.text.split('$').next()?;
    let is_removal = matches!(name.rsplit('/').next(), Some("rm"));
    let target = program.text.rsplit(['}', ' ']).next()?;
    (is_removal && place::precious(target, ground).is_some()).then(|| "it may remove what is precious".to_owned())
}

/// Words of `find` that choose nothing among what it comes by, besides those of what it starts.
const CHOOSE_NOTHING: [&str; 26] = [
    "-delete",
    "-newermt",
    "-user",
    "-uid",
    "-group",
    "-gid",
    "-fstype",
    "-links",
    "-daystart",
    "-readable",
    "-writable",
    "-depth",
    "-d",
    "-mindepth",
    "-maxdepth",
    "-xdev",
    "-mount",
    "-type",
    "-print",
    "-print0",
    "-true",
    "-a",
    "-and",
    "-follow",
    "-noleaf",
    "-ignore_readdir_race",
];

/// Tests of when a file was changed or read: after a fresh checkout all are younger than a day.
const TIMES: [&str; 6] = ["-mtime", "-ctime", "-atime", "-mmin", "-cmin", "-amin"];

/// `find` that removes, or starts `rm`, from a place that is precious.
fn find(arguments: &[Word], ground: &Ground) -> Option<String> {
    const REMOVE: [&str; 5] = ["rm", "shred", "/bin/rm", "unlink", "truncate"];
    let is_shell = |word: &Word| matches!(word.text.rsplit('/').next(), Some("sh" | "bash" | "dash"));
    let names_removal = |word: &Word| word.text.split([' ', ';', '\n', '\t', '&', '|']).any(|part| REMOVE.contains(&part));
    let in_a_shell = || arguments.iter().any(is_shell) && arguments.iter().any(names_removal);
    let with_nothing =
        || ["cp", "install", "ln"].iter().any(|name| arguments.iter().any(|word| word.text == *name)) && arguments.iter().any(is_nothing);
    let removes =
        arguments.iter().any(|word| word.text == "-delete" || REMOVE.contains(&word.text.as_str())) || in_a_shell() || with_nothing();
    let is_option = |word: &&Word| matches!(word.text.as_str(), "-H" | "-L" | "-P") || word.text.starts_with("-O");
    let places: Vec<&str> = arguments
        .iter()
        .skip_while(is_option)
        .map(|word| word.text.as_str())
        .take_while(|text| !text.starts_with(['-', '(', '!']))
        .collect();
    let places = if places.is_empty() { vec!["."] } else { places };
    // In the project a test may choose; of the root or of the home folder nothing is ever meant.
    let starts = |word: &&Word| !matches!(word.text.as_str(), "-exec" | "-execdir" | "-ok" | "-okdir");
    let mut tests = arguments.iter().take_while(starts).enumerate().filter(|(_, word)| word.text.starts_with('-'));
    let takes_all = |at: usize| arguments.get(at + 1).is_some_and(|word| word.text.chars().all(|c| "./*?".contains(c)));
    // What is passed by leaves all the rest.
    let is_passed_by =
        |at: usize| at.checked_sub(1).and_then(|at| arguments.get(at)).is_some_and(|word| matches!(word.text.as_str(), "!" | "-not"));
    let is_test = |(at, word): (usize, &Word)| match word.text.as_str() {
        "-H" | "-L" | "-P" | "-not" => false,
        _ if is_passed_by(at) => false,
        // A size, or a time, that nearly every file is below, or younger than.
        "-size" => !arguments.get(at + 1).is_some_and(|word| passes_most(&word.text)),
        text if TIMES.contains(&text) => !arguments.get(at + 1).is_some_and(|word| word.text.starts_with('-') || word.text == "+0"),
        _ if at.checked_sub(1).is_some_and(|at| arguments[at].text == "-size" || TIMES.contains(&arguments[at].text.as_str())) => false,
        "-name" | "-iname" | "-path" | "-ipath" | "-wholename" | "-regex" | "-iregex" => !takes_all(at),
        text => !CHOOSE_NOTHING.contains(&text),
    };
    let chooses = tests.any(is_test);
    let what = places.iter().find_map(|path| {
        // What it removes is what lies in there: of the folder for what is temporary too that is everyday.
        let found = place::precious(&format!("{path}/*"), ground)?;
        (!chooses || (!path.starts_with("..") && found != place::PROJECT)).then_some(found)
    })?;
    removes.then(|| format!("it removes files all over {what}"))
}

/// Returns whether nearly every file has this size: `-100M`, `+0`.
fn passes_most(size: &str) -> bool {
    (size.starts_with('-') && size.ends_with(['M', 'G'])) || size.strip_prefix('+').is_some_and(|size| size.starts_with('0'))
}

/// Returns whether a word is a file that is always empty.
pub(super) fn is_nothing(word: &Word) -> bool {
    word.text == "/dev/null"
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

fn owners(name: &str, arguments: &[Word], ground: &Ground) -> Option<String> {
    let mut operands = words::operands(arguments);
    // The first one says what is set.
    let set = operands.next();
    if name == "chmod"
        && set.is_some_and(|word| takes_reading(&word.text))
        && words::may_have(arguments, "R", &["--recursive"])
        && words::operands(arguments).skip(1).any(|word| place::precious(&word.text, ground).as_deref() == Some(place::PROJECT))
    {
        return Some(format!("it lets nobody read {}", place::PROJECT));
    }
    let outside = operands.find(|word| place::is_outside(&word.text, ground))?;
    Some(format!("{name} on {}, outside of the project", outside.text))
}

/// Returns whether a mode leaves a file's owner unable to read it: `000`, `a-rwx`, `u=`.
fn takes_reading(mode: &str) -> bool {
    if !mode.is_empty() && mode.bytes().all(|byte| byte.is_ascii_digit()) {
        // Leading zeros count for nothing; the owner's digit is the third from the end.
        return mode.bytes().rev().nth(2).is_none_or(|digit| digit < b'4');
    }
    mode.split(',').any(|change| {
        let Some(at) = change.find(['-', '=']) else { return false };
        let (who, what) = (&change[..at], &change[at + 1..]);
        let is_owner = who.is_empty() || who.contains(['u', 'a']);
        is_owner && if change[at..].starts_with('-') { what.contains('r') } else { !what.contains(['r', 'u', 'g', 'o']) }
    })
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
fn target_folder(arguments: &[Word]) -> Option<String> {
    arguments.iter().enumerate().take_while(|(_, word)| word.text != "--").find_map(|(at, word)| {
        let text = word.text.as_str();
        let next = || arguments.get(at + 1).map(|word| word.text.clone());
        if let Some(value) = text.strip_prefix("--target-directory") {
            return value.strip_prefix('=').map(ToOwned::to_owned).or_else(next);
        }
        let flags = text.strip_prefix('-').filter(|flags| !flags.starts_with('-'))?;
        let (_, value) = flags.split_once('t')?;
        if value.is_empty() { next() } else { Some(value.to_owned()) }
    })
}
