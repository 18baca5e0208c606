//! Whether what is mounted into a container lands where it should.
//!
//! An engine follows the image's own links to the place of a mount and makes what is missing there,
//! as root. With a link that leads into `/workspace` that place lies in the project, on the host.
//! And where a file stands it mounts nothing, and says so in words of its own. So an image is
//! looked at before the first container is made from it: a sandbox, or the model server. What an
//! image says about users is read at the same time.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use tokio_util::sync::CancellationToken;

use super::guest_volume::bare;
use super::spec::HOME;
use super::user_names::GROUP;
use super::user_names::ImageUsers;
use super::user_names::PASSWD;
use super::volumes::clean;
use podbay_engine as engine;
use podbay_engine::ContainerSpec;
use podbay_engine::Engine;
use podbay_engine::EntryKind;
use podbay_engine::ImageEntry;
use podbay_engine::ImageFacts;
use podbay_engine::ImageLook;
use podbay_engine::Labels;
use podbay_engine::Owner;
use podbay_engine::Role;
use podbay_event::InstanceId;
use podbay_event::Progress;
use podbay_event::ProgressSink;
use podbay_event::Unit;

/// Places of a sandbox's own mounts and of the engine's, none of which may be a link. What lies deeper
/// is hidden by a mount on one of these.
const BOX: [&str; 9] = [
    "/dev",
    "/etc",
    "/home",
    "/home/agent",
    "/proc",
    "/run",
    "/sys",
    "/tmp",
    "/workspace",
];

/// Files that the engine mounts; images do have links for them, which may lead anywhere but to
/// where the host's disk can be written.
const FILES: [&str; 3] = ["/etc/hostname", "/etc/hosts", "/etc/resolv.conf"];

/// What is looked at besides, in an image of a sandbox: whether its lists of users can be replaced,
/// which shell it has, and which of these folders are for all users.
const USERS: [&str; 5] = [PASSWD, GROUP, BASH, "/var", VAR_TMP];
const BASH: &str = "/bin/bash";
pub(super) const TMP: &str = "/tmp";
pub(super) const VAR_TMP: &str = "/var/tmp";

/// A look that takes no longer than this is not shown.
const UNSEEN: Duration = Duration::from_secs(1);

/// Counts the changes of what is looked for here: an image that was good by older rules is looked
/// at again.
const RULES: u32 = 4;

/// Where a kind of container has its mounts, and how that is told.
#[derive(Clone, Debug)]
pub struct Places {
    /// Folders of our own mounts and of the engine's, and those on the way to them.
    pub folders: Vec<String>,
    /// Files of our own mounts.
    pub files: Vec<String>,
    /// Where the container can write the host's disk, and what that is, for a user.
    pub open: (&'static str, &'static str),
    /// Whose container it is: `what belongs to a sandbox`.
    pub owner: &'static str,
    /// Tells what was looked at here from what was looked at for other kinds of containers.
    pub mark: String,
    /// Whether what the image says about users is read, too.
    pub users: bool,
}

impl Places {
    /// Returns those of a sandbox.
    pub(super) fn of_a_box() -> Self {
        let folders = BOX.map(str::to_owned).to_vec();
        Self {
            folders,
            files: Vec::new(),
            open: ("/workspace", "your project"),
            owner: "a sandbox",
            mark: String::new(),
            users: true,
        }
    }
}

/// Looks at an image, once, and returns what it says about users, or what is wrong with it: what
/// was found good is remembered in a folder, by the image's id, which is a hash of all of it. The
/// image is looked at through a container as bare as one like `like` can be, which is never
/// started.
#[boxed]
pub async fn look(
    engine: &Engine,
    like: &ContainerSpec,
    image: &ImageFacts,
    places: &Places,
    seen: &Path,
    progress: &ProgressSink,
    cancel: &CancellationToken,
) -> Result<Result<ImageUsers, String>, engine::Error> {
    let known = seen.join(format!(
        "{}{}-{RULES}",
        image.id.replace(|c: char| !c.is_ascii_alphanumeric(), "-"),
        places.mark
    ));
    if let Some(users) = fs::read(&known)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
    {
        return Ok(Ok(users));
    }
    let mut look = bare(like);
    look.name = format!("podbay-look-{}", InstanceId::random());
    look.labels = Labels {
        owner: Some(Owner::current()),
        project: like.labels.project.clone(),
        ..Labels::new(Role::Filler)
    };
    let mut paths = paths(places, &image.volumes);
    let n_of_mounts = paths.len();
    let mut read = Vec::new();
    if places.users {
        paths.extend(USERS.map(str::to_owned));
        read.extend([PASSWD, GROUP].map(str::to_owned));
    }
    let of_mounts: BTreeSet<String> = paths.iter().take(n_of_mounts).cloned().collect();
    let shown = Shown::begin(progress, image, paths.len());
    let found = engine
        .entries(&look, &paths, &read, |n_done| shown.tell(n_done), cancel)
        .await;
    shown.end();
    let found = found?;
    if let Some(problem) = found
        .entries
        .iter()
        .filter(|entry| of_mounts.contains(&entry.path))
        .find_map(|entry| problem(places, entry))
    {
        return Ok(Err(problem));
    }
    let users = users(&found);
    let remembered = serde_json::to_vec(&users)
        .map_err(std::io::Error::from)
        .and_then(|bytes| fs::write(known, bytes));
    if let Err(error) = remembered {
        // Then it is looked at again the next time.
        tracing::debug!(%error, "that the image is good cannot be remembered");
    }
    Ok(Ok(users))
}

/// Returns what was found out about users. A list that is a link or a folder stays as it is: what
/// is mounted on a link lands where that leads.
fn users(found: &ImageLook) -> ImageUsers {
    let entry = |path: &str| found.entries.iter().find(|entry| entry.path == path);
    let can_be_replaced =
        |path: &str| entry(path).is_none_or(|entry| entry.kind == EntryKind::Other);
    let text = |path: &str| -> Option<String> {
        let content = found.files.iter().find(|(name, _)| name == path);
        match content {
            Some((_, bytes)) => String::from_utf8(bytes.clone()).ok(),
            None => entry(path).is_none().then(String::new),
        }
    };
    let (passwd, group) = (text(PASSWD), text(GROUP));
    let has_lists =
        passwd.is_some() && group.is_some() && can_be_replaced(PASSWD) && can_be_replaced(GROUP);
    let is_folder = |path: &str| entry(path).is_some_and(|entry| entry.kind == EntryKind::Folder);
    let is_open = |path: &str| {
        is_folder(path)
            && entry(path).is_some_and(|entry| entry.is_open)
            && (path != VAR_TMP || is_folder("/var"))
    };
    ImageUsers {
        passwd: passwd.unwrap_or_default(),
        group: group.unwrap_or_default(),
        has_lists,
        has_bash: entry(BASH).is_some_and(|entry| entry.kind != EntryKind::Folder),
        open_folders: [TMP, VAR_TMP, HOME]
            .into_iter()
            .filter(|path| is_open(path))
            .map(ToOwned::to_owned)
            .collect(),
    }
}

/// How far a look is, told once it takes long: an image with many volumes is asked about for half a
/// minute.
struct Shown<'a> {
    progress: &'a ProgressSink,
    task: String,
    total: u64,
    begun: Instant,
    is_told: AtomicBool,
}

impl<'a> Shown<'a> {
    fn begin(progress: &'a ProgressSink, image: &ImageFacts, n_paths: usize) -> Self {
        let task = format!(
            "looking at the image {}",
            image.tags.first().unwrap_or(&image.id)
        );
        Self {
            progress,
            task,
            total: n_paths as u64,
            begun: Instant::now(),
            is_told: AtomicBool::new(false),
        }
    }

    fn tell(&self, n_done: usize) {
        if self.is_told.load(Ordering::Relaxed) || self.begun.elapsed() > UNSEEN {
            self.is_told.store(true, Ordering::Relaxed);
            self.step(n_done as u64, false);
        }
    }

    fn end(&self) {
        if self.is_told.load(Ordering::Relaxed) {
            self.step(self.total, true);
        }
    }

    fn step(&self, done: u64, finished: bool) {
        let (task, total) = (self.task.clone(), Some(self.total));
        (self.progress)(Progress {
            task,
            done,
            total,
            unit: Unit::Steps,
            detail: String::new(),
            finished,
        });
    }
}

/// Returns every path on the way to a mount: ours, the engine's, the image's volumes.
fn paths(places: &Places, volumes: &[String]) -> Vec<String> {
    let files = FILES.map(str::to_owned);
    let mut paths: Vec<String> = places
        .folders
        .iter()
        .chain(&files)
        .chain(&places.files)
        .cloned()
        .collect();
    for volume in volumes {
        let mut path = String::new();
        // As the engine reads it.
        for part in clean(volume).split('/').filter(|part| !part.is_empty()) {
            path = format!("{path}/{part}");
            if !paths.contains(&path) {
                paths.push(path.clone());
            }
        }
    }
    paths
}

fn problem(places: &Places, entry: &ImageEntry) -> Option<String> {
    let path = entry.path.as_str();
    let (open, what_is_open) = places.open;
    let is_engines = FILES.contains(&path);
    let is_file = is_engines || places.files.iter().any(|file| file == path);
    let target = match &entry.kind {
        EntryKind::Link(target) => target,
        EntryKind::Circle => {
            return Some(format!(
                "the symbolic links at its `{path}` lead in a circle, so that nothing can be mounted there"
            ));
        }
        EntryKind::Folder if is_file => {
            return Some(format!(
                "its `{path}` is a folder, and the file of {} cannot be mounted there",
                places.owner
            ));
        }
        EntryKind::Other if !is_file => {
            let what = if path == "/workspace" {
                "the project".to_owned()
            } else {
                format!("what belongs to {}", places.owner)
            };
            return Some(format!(
                "its `{path}` is a file and no folder, so that {what} cannot be mounted there"
            ));
        }
        EntryKind::Folder | EntryKind::Other => return None,
    };
    // Without `/proc` mounted nobody can tell where a link into it leads, and in a sandbox it may lead
    // anywhere.
    let is_at = |place: &str| Path::new(target).starts_with(place);
    // On the way to one of the engine's files links are usual; on the way to a volume nobody needs
    // one.
    let is_allowed = is_engines && !is_at(open) && !is_at("/proc");
    (!is_allowed).then(|| {
        format!(
            "its `{path}` is a symbolic link to `{target}`, and the engine would follow it and make folders there, in {what_is_open} too, as root"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(path: &str, target: &str, is_refused: bool) {
        let link = ImageEntry {
            path: path.to_owned(),
            kind: EntryKind::Link(target.to_owned()),
            is_open: false,
        };
        assert_eq!(
            problem(&Places::of_a_box(), &link).is_some(),
            is_refused,
            "{link:?}"
        );
    }

    #[test]
    fn a_circle_is_said_to_be_one() {
        let link = ImageEntry {
            path: "/etc/hosts".to_owned(),
            kind: EntryKind::Circle,
            is_open: false,
        };
        assert!(
            problem(&Places::of_a_box(), &link)
                .expect("of no use")
                .contains("`/etc/hosts` lead in a circle")
        );
    }

    #[test]
    fn what_cannot_be_mounted_on_is_refused_by_its_name() {
        let problem = |path: &str, kind| {
            problem(
                &Places::of_a_box(),
                &ImageEntry {
                    path: path.to_owned(),
                    kind,
                    is_open: false,
                },
            )
        };
        let said = problem("/workspace", EntryKind::Other).expect("of no use");
        assert_eq!(
            said,
            "its `/workspace` is a file and no folder, so that the project cannot be mounted there"
        );
        assert!(
            problem("/srv/data", EntryKind::Other)
                .is_some_and(|said| said.contains("`/srv/data` is a file"))
        );
        assert!(
            problem("/etc/hosts", EntryKind::Folder)
                .is_some_and(|said| said.contains("`/etc/hosts` is a folder"))
        );
        for (path, kind) in [
            ("/workspace", EntryKind::Folder),
            ("/tmp", EntryKind::Folder),
            ("/etc/hosts", EntryKind::Other),
        ] {
            assert_eq!(problem(path, kind), None, "{path}");
        }
    }

    #[test]
    fn links_at_our_places_and_into_the_project_are_refused() {
        check("/home/agent", "/workspace/home", true);
        check("/run", "/var/run", true);
        check("/workspace", "/srv", true);
        check("/srv/data", "/workspace", true);
        check("/srv/data", "/workspaces", true);
        check("/srv/data", "/proc/self/root/workspace/made", true);
        check("/etc/resolv.conf", "/proc/self/root/workspace/made", true);
        check(
            "/etc/resolv.conf",
            "/run/systemd/resolve/stub-resolv.conf",
            false,
        );
        check("/etc/resolv.conf", "/workspace/resolv.conf", true);
        let volumes = [
            "/var/lib/data/".to_owned(),
            "/var/lib/more".to_owned(),
            "/a/../srv/data".to_owned(),
        ];
        assert_eq!(
            paths(&Places::of_a_box(), &volumes)[BOX.len() + FILES.len()..],
            [
                "/var",
                "/var/lib",
                "/var/lib/data",
                "/var/lib/more",
                "/srv",
                "/srv/data"
            ]
        );
    }

    #[test]
    fn what_an_image_says_about_users_is_read_unless_links_lead_away() {
        let entry = |path: &str, kind: EntryKind| ImageEntry {
            path: path.to_owned(),
            kind,
            is_open: true,
        };
        let files = [(PASSWD, "root:x:0:0::/root:/bin/sh"), (GROUP, "root:x:0:")];
        let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
        let found = |entries: Vec<ImageEntry>| {
            users(&ImageLook {
                entries,
                files: files.to_vec(),
            })
        };
        let usual = found(vec![
            entry(PASSWD, EntryKind::Other),
            entry(GROUP, EntryKind::Other),
            entry(TMP, EntryKind::Folder),
            entry("/var", EntryKind::Folder),
            entry(VAR_TMP, EntryKind::Folder),
            entry(BASH, EntryKind::Other),
        ]);
        assert!(usual.has_lists && usual.has_bash && usual.passwd.starts_with("root:"));
        assert_eq!(usual.open_folders, [TMP, VAR_TMP]);
        let linked = found(vec![
            entry(PASSWD, EntryKind::Link("/workspace/passwd".to_owned())),
            entry("/var", EntryKind::Link("/workspace/var".to_owned())),
            entry(VAR_TMP, EntryKind::Folder),
            entry(TMP, EntryKind::Link("/workspace".to_owned())),
        ]);
        assert!(!linked.has_lists && linked.open_folders.is_empty());
        let closed = ImageEntry {
            is_open: false,
            ..entry(TMP, EntryKind::Folder)
        };
        assert_eq!(found(vec![closed]).open_folders, Vec::<String>::new());
        let nothing = users(&ImageLook::default());
        assert!(
            nothing.has_lists && !nothing.has_bash,
            "an image without a list gets one"
        );
    }
}
