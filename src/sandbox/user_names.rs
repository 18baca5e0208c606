//! The name of the user in a sandbox.
//!
//! Commands run by the numbers of the project's owner, which an image knows nothing of: `whoami`,
//! `getpass.getuser()`, `os.userInfo()` and ssh fail without a line for them. So the image's own
//! lists of users and groups are mounted with such a line added. They are files of the guest's
//! volume, named by their content: a container needs no file of its own.

use serde::Deserialize;
use serde::Serialize;
use sha2::Digest;

use super::image_paths::TMP;
use super::spec::HOME;
use podbay_engine::Mount;
use podbay_engine::VolumeFile;

/// The lists of an image, and the names of the files in a folder of the guest's volume.
pub(super) const PASSWD: &str = "/etc/passwd";
pub(super) const GROUP: &str = "/etc/group";
const FOLDER: &str = "users";

/// The name that a user gets whom the image does not know, and another one where it is taken.
const NAMES: [&str; 3] = ["agent", "podbay", "podbay-agent"];

const BASH: &str = "/bin/bash";
const SH: &str = "/bin/sh";

/// Longest name that is taken over from an image.
const LONGEST_NAME: usize = 32;

/// What an image says about its users, and where all of them may write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImageUsers {
    /// Content of its lists of users and groups.
    pub(super) passwd: String,
    pub(super) group: String,
    /// Whether both can be replaced by lists of ours.
    pub(super) has_lists: bool,
    pub(super) has_bash: bool,
    /// Folders in which every user may write.
    pub(super) open_folders: Vec<String>,
}

impl ImageUsers {
    /// Returns those of Podbay's own workspace image, which need no look at it: Debian's lists, and
    /// the folders that its recipe opens.
    pub fn of_workspace() -> Self {
        Self {
            passwd: include_str!("debian/passwd").to_owned(),
            group: include_str!("debian/group").to_owned(),
            has_lists: true,
            has_bash: true,
            open_folders: [TMP, HOME].map(str::to_owned).to_vec(),
        }
    }
}

/// The user of a sandbox by name, with the lists that say so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UserNames {
    pub(super) name: String,
    pub(super) shell: &'static str,
    /// `None`: the image's own stay.
    lists: Option<Lists>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Lists {
    passwd: String,
    group: String,
    /// A hash of both.
    key: String,
}

impl UserNames {
    /// Names the user `uid` in an image. Its own line comes first, so that it is the one that is
    /// found; the image's lines follow.
    pub(super) fn of(image: &ImageUsers, (uid, gid): (u32, u32), home: &str) -> Self {
        let shell = if image.has_bash { BASH } else { SH };
        let name = name(&image.passwd, uid);
        let mut passwd = format!("{name}:x:{uid}:{gid}:{name}:{home}:{shell}\n");
        add_lines(&mut passwd, &image.passwd);
        let mut group = String::new();
        if !lines(&image.group).any(|line| number(line, 2) == Some(gid)) {
            group = format!("{}:x:{gid}:\n", group_name(&image.group, &name));
        }
        add_lines(&mut group, &image.group);
        let digest = sha2::Sha256::digest(format!("{passwd}\0{group}").as_bytes());
        let key = digest.iter().take(8).map(|byte| format!("{byte:02x}"));
        let lists = Lists {
            key: key.collect(),
            passwd,
            group,
        };
        Self {
            name,
            shell,
            lists: image.has_lists.then_some(lists),
        }
    }

    /// Returns the variables that name the user.
    pub(super) fn variables(&self) -> [String; 3] {
        [
            format!("USER={}", self.name),
            format!("LOGNAME={}", self.name),
            format!("SHELL={}", self.shell),
        ]
    }

    /// Returns the files that the guest's volume must have.
    pub(super) fn files(&self) -> Vec<VolumeFile> {
        let Some(Lists { passwd, group, key }) = &self.lists else {
            return Vec::new();
        };
        vec![
            VolumeFile::folder(&format!("{FOLDER}/"), 0o755, (0, 0)),
            VolumeFile::folder(&format!("{FOLDER}/{key}/"), 0o755, (0, 0)),
            VolumeFile::text(&format!("{FOLDER}/{key}/passwd"), passwd.clone()),
            VolumeFile::text(&format!("{FOLDER}/{key}/group"), group.clone()),
        ]
    }

    /// Returns the folder of these files, and how they are mounted, where the guest's volume is at
    /// this path of the engine's machine.
    pub(super) fn mounts(&self, volume: &str) -> Vec<Mount> {
        let Some(Lists { key, .. }) = &self.lists else {
            return Vec::new();
        };
        [("passwd", PASSWD), ("group", GROUP)]
            .map(|(file, target)| Mount::OfVolume {
                source: format!("{volume}/{FOLDER}/{key}/{file}"),
                target: target.to_owned(),
                read_only: true,
            })
            .into()
    }
}

/// Whether a mount is one of these lists.
pub(super) fn is_list(mount: &Mount) -> bool {
    matches!(mount, Mount::OfVolume { target, .. } if target == PASSWD || target == GROUP)
}

/// Returns whether an error of the engine is about a missing list.
pub(super) fn is_about_lists(words: &str) -> bool {
    words.contains(&format!("/{FOLDER}/"))
}

fn lines(list: &str) -> impl Iterator<Item = &str> {
    list.lines().filter(|line| !line.is_empty())
}

fn add_lines(list: &mut String, more: &str) {
    for line in lines(more) {
        list.push_str(line);
        list.push('\n');
    }
}

/// Returns a field of a line, as a number.
fn number(line: &str, field: usize) -> Option<u32> {
    line.split(':').nth(field)?.parse().ok()
}

fn first(line: &str) -> &str {
    line.split(':').next().unwrap_or_default()
}

/// Returns the image's name for a user, or one that it has not given to another.
fn name(passwd: &str, uid: u32) -> String {
    let own = lines(passwd).find(|line| number(line, 2) == Some(uid));
    if let Some(name) = own.map(first).filter(|name| is_name(name)) {
        return name.to_owned();
    }
    if uid == 0 {
        return "root".to_owned();
    }
    free_name(passwd)
}

fn group_name(group: &str, user: &str) -> String {
    if lines(group).any(|line| first(line) == user) {
        free_name(group)
    } else {
        user.to_owned()
    }
}

fn free_name(list: &str) -> String {
    NAMES
        .into_iter()
        .find(|name| !lines(list).any(|line| first(line) == *name))
        .unwrap_or(NAMES[0])
        .to_owned()
}

fn is_name(name: &str) -> bool {
    (1..=LONGEST_NAME).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(passwd: &str, group: &str) -> ImageUsers {
        ImageUsers {
            passwd: passwd.to_owned(),
            group: group.to_owned(),
            has_lists: true,
            has_bash: true,
            ..ImageUsers::default()
        }
    }

    #[track_caller]
    fn check(image: &ImageUsers, ids: (u32, u32), passwd: &str, group: &str) {
        let lists = UserNames::of(image, ids, "/h").lists.expect("lists");
        assert_eq!(
            (lists.passwd.as_str(), lists.group.as_str()),
            (passwd, group)
        );
    }

    #[test]
    fn any_user_gets_a_name_and_the_images_lines_stay() {
        let root = image(
            "root:x:0:0:root:/root:/bin/bash\n",
            "root:x:0:\nstaff:x:50:",
        );
        check(
            &root,
            (1000, 1000),
            "agent:x:1000:1000:agent:/h:/bin/bash\nroot:x:0:0:root:/root:/bin/bash\n",
            "agent:x:1000:\nroot:x:0:\nstaff:x:50:\n",
        );
        check(
            &root,
            (4_000_000, 50),
            "agent:x:4000000:50:agent:/h:/bin/bash\nroot:x:0:0:root:/root:/bin/bash\n",
            "root:x:0:\nstaff:x:50:\n",
        );
        check(
            &root,
            (0, 0),
            "root:x:0:0:root:/h:/bin/bash\nroot:x:0:0:root:/root:/bin/bash\n",
            "root:x:0:\nstaff:x:50:\n",
        );
    }

    #[test]
    fn a_name_of_the_image_is_kept_and_none_is_given_twice() {
        let node = image("node:x:1000:1000::/home/node:/bin/sh", "node:x:1000:");
        assert_eq!(UserNames::of(&node, (1000, 1000), "/h").name, "node");
        let odd = image("a b:x:1000:1000::/:/bin/sh", "");
        assert_eq!(UserNames::of(&odd, (1000, 1000), "/h").name, "agent");
        let taken = image("agent:x:7:7::/:/bin/sh", "podbay:x:7:");
        let names = UserNames::of(&taken, (1000, 1000), "/h");
        assert_eq!(names.name, "podbay");
        assert!(
            names
                .lists
                .expect("lists")
                .group
                .starts_with("agent:x:1000:\n")
        );
        let bare = ImageUsers::default();
        let names = UserNames::of(&bare, (0, 0), "/h");
        assert_eq!((names.name.as_str(), names.shell), ("root", "/bin/sh"));
        assert!(names.files().is_empty() && names.mounts("/v").is_empty());
    }

    #[test]
    fn the_workspace_image_has_debians_users() {
        let names = UserNames::of(&ImageUsers::of_workspace(), (1000, 1000), HOME);
        let lists = names.lists.expect("lists");
        assert_eq!(names.name, "agent");
        assert!(
            lists.passwd.contains("\nnobody:x:65534:"),
            "{}",
            lists.passwd
        );
        assert!(lists.group.contains("\nstaff:x:50:"), "{}", lists.group);
    }

    #[test]
    fn lists_of_the_same_content_are_one_file() {
        let image = image("", "");
        let key = |uid: u32| {
            let names = UserNames::of(&image, (uid, uid), "/h");
            names.mounts("/v")
        };
        assert_eq!(key(7), key(7));
        assert_ne!(key(7), key(8));
        assert!(key(7).iter().all(is_list));
    }
}
