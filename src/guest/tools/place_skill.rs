//! `place_skill`: files of a skill in the home folder of commands.
//!
//! A command may have put anything there. Each folder is opened by its name in the one above, no
//! link is followed, and a file that is there is removed and made anew.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::fcntl::openat;
use nix::sys::stat::Mode;
use nix::sys::stat::mkdirat;
use nix::unistd::UnlinkatFlags;
use nix::unistd::unlinkat;

use super::invalid;
use crate::beneath::open_anywhere;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::PlaceSkill;
use podbay_wire::Placed;
use podbay_wire::PlacedFile;

/// Where skills are in the home folder.
const FOLDERS: [&str; 2] = [".podbay", "skills"];

/// Writes the files, and returns the folder in which they are.
pub(crate) fn run(environment: &[Vec<u8>], call: &PlaceSkill) -> Result<Placed, Fault> {
    let home = environment
        .iter()
        .find_map(|pair| pair.strip_prefix(b"HOME="))
        .ok_or_else(|| failed("home folder", "commands have none"))?;
    if !is_name(&call.name) {
        return Err(invalid("name", "is no name of a folder"));
    }
    let mut folder = open_anywhere(home).map_err(|errno| failed("home folder", errno.desc()))?;
    for name in FOLDERS.into_iter().chain([call.name.as_str()]) {
        folder = descend(folder.as_fd(), name).map_err(|errno| failed(name, errno.desc()))?;
    }
    for file in &call.files {
        write(&folder, file)?;
    }
    let mut path = home.to_vec();
    for name in FOLDERS.into_iter().chain([call.name.as_str()]) {
        path.push(b'/');
        path.extend_from_slice(name.as_bytes());
    }
    let n_bytes = call.files.iter().map(|file| file.data.0.len() as u64).sum();
    Ok(Placed {
        path: BytesPath::from_bytes(path),
        n_files: u32::try_from(call.files.len()).unwrap_or(u32::MAX),
        bytes: n_bytes,
    })
}

fn write(skill: &OwnedFd, file: &PlacedFile) -> Result<(), Fault> {
    let wrong = |errno: Errno| failed(&file.path, errno.desc());
    let mut names: Vec<&str> = file.path.split('/').collect();
    if !names.iter().all(|name| is_name(name)) {
        return Err(invalid("path", format!("`{}` leads elsewhere", file.path)));
    }
    let last = names.pop().unwrap_or_default();
    let mut above = None;
    for name in names {
        let folder = above.as_ref().unwrap_or(skill);
        above = Some(descend(folder.as_fd(), name).map_err(wrong)?);
    }
    let folder = above.as_ref().unwrap_or(skill);
    match unlinkat(folder, last, UnlinkatFlags::NoRemoveDir) {
        Ok(()) | Err(Errno::ENOENT) => {}
        Err(errno) => return Err(wrong(errno)),
    }
    let mode = if file.executable { 0o755 } else { 0o644 };
    let flags =
        OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let opened = openat(folder, last, flags, Mode::from_bits_truncate(mode)).map_err(wrong)?;
    File::from(opened)
        .write_all(&file.data.0)
        .map_err(|error| failed(&file.path, &error.to_string()))
}

/// Opens a folder in another one, and makes it where it is missing.
fn descend(above: impl AsFd, name: &str) -> Result<OwnedFd, Errno> {
    match mkdirat(&above, OsStr::from_bytes(name.as_bytes()), Mode::S_IRWXU) {
        Ok(()) | Err(Errno::EEXIST) => {}
        Err(errno) => return Err(errno),
    }
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    openat(&above, name, flags, Mode::empty())
}

fn is_name(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\0'])
}

fn failed(what: &str, problem: &str) -> Fault {
    Fault::Io {
        doing: format!("place the files of the skill ({what})"),
        problem: problem.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::*;
    use podbay_wire::message::Data;

    fn place(home: &Path, name: &str, files: &[(&str, bool)]) -> Result<Placed, Fault> {
        let environment = vec![[b"HOME=", home.as_os_str().as_bytes()].concat()];
        let file = |(path, executable): &(&str, bool)| PlacedFile {
            path: (*path).to_owned(),
            data: Data(b"echo hello\n".to_vec()),
            executable: *executable,
        };
        let call = PlaceSkill {
            name: name.to_owned(),
            files: files.iter().map(file).collect(),
        };
        run(&environment, &call)
    }

    #[test]
    fn files_lie_in_the_home_folder_and_can_be_placed_again() {
        let home = tempfile::tempdir().expect("a folder");
        for _ in 0..2 {
            let files = [("scripts/deep/run.sh", true), ("data.txt", false)];
            let placed = place(home.path(), "greet", &files).expect("placed");
            assert_eq!((placed.n_files, placed.bytes), (2, 22));
            let folder = home.path().join(".podbay/skills/greet");
            assert_eq!(placed.path.as_path(), folder);
            let script = folder.join("scripts/deep/run.sh");
            let mode = fs::metadata(&script).expect("there").permissions().mode();
            assert_eq!(mode & 0o111, 0o111);
            assert_eq!(fs::read(&script).expect("there"), b"echo hello\n");
            // What a command made of it is replaced.
            fs::write(&script, "changed").expect("ours");
        }
    }

    #[test]
    fn no_path_and_no_link_leads_out_of_the_skills_folder() {
        let temp = tempfile::tempdir().expect("a folder");
        let (home, outside) = (temp.path().join("home"), temp.path().join("outside"));
        fs::create_dir_all(home.join(".podbay/skills/greet")).expect("made");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("kept"), "kept").expect("written");
        for path in ["../x", "/x", "a//b", "", "a/../../x", "."] {
            place(&home, "greet", &[(path, false)]).expect_err(path);
        }
        for name in ["", "..", "a/b"] {
            place(&home, name, &[("x", false)]).expect_err(name);
        }
        let greet = home.join(".podbay/skills/greet");
        symlink(&outside, greet.join("scripts")).expect("linked");
        place(&home, "greet", &[("scripts/x", false)]).expect_err("a link");
        symlink(outside.join("kept"), greet.join("kept")).expect("linked");
        place(&home, "greet", &[("kept", false)]).expect("replaces the link itself");
        fs::remove_dir_all(home.join(".podbay")).expect("removed");
        symlink(&outside, home.join(".podbay")).expect("linked");
        place(&home, "greet", &[("x", false)]).expect_err("a link");
        let left: Vec<_> = fs::read_dir(&outside).expect("there").flatten().collect();
        assert_eq!(left.len(), 1, "{left:?}");
        assert_eq!(fs::read(outside.join("kept")).expect("there"), b"kept");
    }
}
