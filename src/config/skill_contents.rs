//! What a skill of the user's has beside its `SKILL.md`, such as scripts.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::skill_files::SKILL_FILE;

/// Most files of a skill, most bytes of all of them together, and most folders in folders.
const MOST: usize = 64;
const MOST_BYTES: usize = 1 << 20;
const DEEPEST: usize = 4;
/// Most entries of a folder that are looked at.
const MOST_ENTRIES: usize = 1000;

/// A file of a skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillContent {
    /// Its path in the skill's folder.
    pub path: String,
    pub bytes: Vec<u8>,
    pub executable: bool,
}

/// The files of a skill, in the order of their paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkillContents {
    pub files: Vec<SkillContent>,
    /// What is not among them, and why.
    pub left_out: Vec<String>,
    n_bytes: usize,
}

impl SkillContents {
    /// Reads the files in a skill's folder. Links and hidden files are no part of a skill.
    pub fn of(folder: &Path) -> Self {
        let mut contents = Self::default();
        contents.add(folder, "", 0);
        contents
    }

    fn add(&mut self, folder: &Path, above: &str, depth: usize) {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let entries = entries.take(MOST_ENTRIES).flatten();
        let mut names: Vec<String> = entries
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.') && !name.chars().any(podbay_event::is_hidden))
            .collect();
        names.sort_unstable();
        for name in names {
            let (path, place) = (format!("{above}{name}"), folder.join(&name));
            if path == SKILL_FILE {
                continue;
            }
            let Ok(facts) = place.symlink_metadata() else {
                continue;
            };
            if facts.is_dir() {
                if depth == DEEPEST {
                    self.left_out.push(format!("{path} lies too deep"));
                } else {
                    self.add(&place, &format!("{path}/"), depth + 1);
                }
            } else if !facts.is_file() {
                self.left_out.push(format!("{path} is a link or no file"));
            } else if self.files.len() == MOST {
                self.left_out.push(format!("more than {MOST} files"));
                return;
            } else {
                self.read(&place, path);
            }
        }
    }

    fn read(&mut self, place: &Path, path: String) {
        let left = MOST_BYTES - self.n_bytes;
        let opened = File::options()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW)
            .open(place);
        let read = opened.and_then(|file| {
            let executable = file.metadata()?.permissions().mode() & 0o111 != 0;
            let mut bytes = Vec::new();
            file.take(left as u64 + 1).read_to_end(&mut bytes)?;
            Ok((bytes, executable))
        });
        match read {
            Ok((bytes, _)) if bytes.len() > left => {
                let most = MOST_BYTES >> 20;
                self.left_out
                    .push(format!("{path} would make more than {most} MiB"));
            }
            Ok((bytes, executable)) => {
                self.n_bytes += bytes.len();
                self.files.push(SkillContent {
                    path,
                    bytes,
                    executable,
                });
            }
            Err(error) => self.left_out.push(format!("{path}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::fs::Permissions;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_skills_files_are_read_without_links_and_hidden_ones() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = temp.path().join("skill");
        fs::create_dir_all(folder.join("scripts/.git")).expect("made");
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("written");
        write(SKILL_FILE, "steps");
        write("scripts/run.sh", "#!/bin/sh\n");
        write("scripts/.git/config", "secret");
        write(".env", "secret");
        write("data.txt", "x");
        fs::set_permissions(folder.join("scripts/run.sh"), Permissions::from_mode(0o755))
            .expect("ours");
        fs::write(temp.path().join("secret"), "secret").expect("written");
        symlink(temp.path().join("secret"), folder.join("link")).expect("linked");
        symlink(temp.path(), folder.join("up")).expect("linked");
        let contents = SkillContents::of(&folder);
        let files: Vec<(&str, &[u8], bool)> = contents
            .files
            .iter()
            .map(|file| (file.path.as_str(), file.bytes.as_slice(), file.executable))
            .collect();
        assert_eq!(
            files,
            [
                ("data.txt", b"x".as_slice(), false),
                ("scripts/run.sh", b"#!/bin/sh\n".as_slice(), true)
            ]
        );
        assert_eq!(
            contents.left_out,
            ["link is a link or no file", "up is a link or no file"]
        );
    }

    #[test]
    fn number_size_and_depth_are_bounded() {
        let temp = tempfile::tempdir().expect("a folder");
        for n in 0..70 {
            fs::write(temp.path().join(format!("{n:03}")), "x").expect("written");
        }
        let contents = SkillContents::of(temp.path());
        assert_eq!(contents.files.len(), MOST);
        assert_eq!(contents.left_out, ["more than 64 files"]);
        let temp = tempfile::tempdir().expect("a folder");
        fs::write(temp.path().join("a"), "x".repeat(800 << 10)).expect("written");
        fs::write(temp.path().join("b"), "x".repeat(800 << 10)).expect("written");
        let deep = temp.path().join("c/c/c/c/c");
        fs::create_dir_all(&deep).expect("made");
        fs::write(deep.join("d"), "x").expect("written");
        let contents = SkillContents::of(temp.path());
        assert_eq!(contents.files.len(), 1);
        assert_eq!(
            contents.left_out,
            ["b would make more than 1 MiB", "c/c/c/c/c lies too deep"]
        );
    }
}
