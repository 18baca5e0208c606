use std::time::Duration;

use nix::errno::Errno;

use super::copy::Copy;
use super::find::ON_ITS_WAY;
use super::find::find;
use super::folder::Folder;
use super::folder::Kind;
use super::folder::failed;
use super::record::check_id;
use super::repository::is_part;
use crate::guest::root::join;
use crate::guest::root::split;
use crate::wire::BytesPath;
use crate::wire::Fault;
use crate::wire::keep::Aside;
use crate::wire::keep::AsideGit;
use crate::wire::keep::FoundGit;
use crate::wire::keep::FoundRepository;
use crate::wire::keep::GitKind;

/// How many are moved in one go: each may hold another one.
const MAX_ROUNDS: usize = 8;

/// Moves every repository, and every way to one, out of the project that was not there when the session began or leads elsewhere since.
///
/// In the project it is renamed first, which takes effect at once and as a whole; where the copying after it is cut off, the next call goes on. A
/// `.git` file that another thing took the place of is written again. Of a folder with other files in it only what makes it a repository goes.
pub fn aside(project: &Folder, start: &FoundGit, (kept, id): (&Folder, &str), budget: Duration) -> Result<AsideGit, Fault> {
    check_id(id)?;
    let mut all = AsideGit { moved: Vec::new(), whole: true };
    for _ in 0..MAX_ROUNDS {
        let now = find(project, budget);
        all.whole = now.whole;
        let new: Vec<&FoundRepository> = now.repositories.iter().filter(|one| is_new(one, start)).collect();
        // What could not be moved is there again.
        if new.iter().all(|one| all.moved.iter().any(|moved| moved.problem.is_some() && moved.path == one.path)) {
            break;
        }
        for one in new {
            // It may have gone along with one that it lies in.
            let was_tried = all.moved.iter().any(|moved| moved.problem.is_some() && moved.path == one.path);
            if !was_tried && (one.path.is_empty() || project.kind(one.path.as_bytes()).is_some()) {
                let moved = move_out(project, one, start, kept, id, all.moved.len());
                // One that cannot be moved must not keep the others in.
                all.moved.push(moved.unwrap_or_else(|fault| Aside { problem: Some(fault.to_string()), ..Aside::of(one) }));
            }
        }
    }
    Ok(all)
}

/// A submodule's repository lies in one that a session could not write to, or goes along with it.
fn is_new(one: &FoundRepository, start: &FoundGit) -> bool {
    match one.kind {
        GitKind::Module => false,
        GitKind::OnItsWay => true,
        _ => !start.repositories.contains(one),
    }
}

fn move_out(project: &Folder, one: &FoundRepository, start: &FoundGit, kept: &Folder, id: &str, at: usize) -> Result<Aside, Fault> {
    let path = one.path.as_bytes();
    let parts = if one.kind == GitKind::Bare { parts_alone(project, path, start)? } else { None };
    // What is moved is renamed where it stands, and is out of the way of git then.
    let parent = if parts.is_some() { path } else { split(path).0 };
    let on_its_way = || free(project, &join(parent, format!("{ON_ITS_WAY}{id}-{at}").as_bytes()));
    let moved = |moved: Result<(), Errno>| moved.map_err(|errno| failed("move aside", path, &errno.into()));
    let waiting = match &parts {
        _ if one.kind == GitKind::OnItsWay => path.to_vec(),
        Some(parts) => {
            let waiting = on_its_way();
            let names: Vec<(Vec<u8>, Vec<u8>)> = parts.iter().map(|name| (name.clone(), disarmed(name))).collect();
            moved(project.gather(path, split(&waiting).1, &names))?;
            waiting
        }
        None => {
            let waiting = on_its_way();
            moved(project.rename_beside(path, &waiting))?;
            waiting
        }
    };
    // A folder without it is no repository, whatever its name is.
    let head = join(&waiting, b"HEAD");
    if project.kind(&waiting) == Some(Kind::Folder) {
        project.unlock(&waiting).map_err(|errno| failed("open", &waiting, &errno.into()))?;
    }
    if project.kind(&head).is_some() {
        let _ = project.rename(&head, &join(&waiting, b"HEAD.aside"));
    }
    let before = start.repositories.iter().find(|before| before.path == one.path);
    let parts = parts.unwrap_or_default().into_iter().map(BytesPath::from_bytes).collect();
    let mut aside = Aside { parts, ..Aside::of(one) };
    if let Some(FoundRepository { kind: GitKind::Pointer { to }, .. }) = before {
        project.write(path, &[b"gitdir: ", to.as_bytes(), b"\n"].concat())?;
        aside.is_restored = true;
    }
    let place = free(kept, format!("{id}-{at}").as_bytes());
    let mut copy = Copy::new(project, kept);
    if copy.copy(&waiting, &place)? {
        project.remove_from_locked(&waiting)?;
        aside.kept = Some(BytesPath::from_bytes(place));
        aside.n_passed_over = copy.n_passed_over();
    } else {
        kept.remove(&place)?;
        // Under yet another name, so that nobody tries again.
        let left = free(project, &join(parent, format!(".podbay-left-{id}-{at}").as_bytes()));
        moved(project.rename_beside(&waiting, &left))?;
        aside.left = Some(BytesPath::from_bytes(left));
    }
    Ok(aside)
}

/// Returns what alone is moved of a folder that is a repository; `None`: it is, with all that is in it.
///
/// Where there is anything else in the folder it may be the person's: it stays, and so does what had its name when the session began, since that
/// alone made no repository of the folder. Without the rest it makes none now.
fn parts_alone(project: &Folder, path: &[u8], start: &FoundGit) -> Result<Option<Vec<Vec<u8>>>, Fault> {
    let names = project.names(path).map_err(|errno| failed("list", path, &errno.into()))?;
    let is_theirs = |name: &[u8]| start.parts.binary_search(&BytesPath::from_bytes(join(path, name))).is_ok();
    let n_all = names.len();
    let mut parts: Vec<Vec<u8>> = names.into_iter().map(|(name, _)| name).filter(|name| is_part(name) && !is_theirs(name)).collect();
    // The project's own folder stays in any case. What git looks for first goes first.
    parts.sort_by_key(|name| (!is_head(name), !name.eq_ignore_ascii_case(b"commondir")));
    Ok((path.is_empty() || parts.len() < n_all).then_some(parts))
}

/// A folder without a file of this name is no repository.
fn is_head(name: &[u8]) -> bool {
    name.eq_ignore_ascii_case(b"HEAD")
}

/// Returns a name under which git does not look for it.
fn disarmed(name: &[u8]) -> Vec<u8> {
    if is_head(name) { [name, b".aside"].concat() } else { name.to_vec() }
}

/// Returns a name that nothing has.
fn free(folder: &Folder, wanted: &[u8]) -> Vec<u8> {
    let mut name = wanted.to_vec();
    let mut n_tried = 0;
    while folder.kind(&name).is_some() {
        n_tried += 1;
        name = [wanted, format!("-{n_tried}").as_bytes()].concat();
    }
    name
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::copy::MAX_BYTES;
    use super::super::sample::Sample;
    use super::super::sample::run_git;
    use super::*;

    const BUDGET: Duration = Duration::from_secs(20);

    const SOMEBODY: nix::unistd::Uid = nix::unistd::Uid::from_raw(1000);

    struct Case {
        sample: Sample,
        start: FoundGit,
    }

    impl Case {
        fn of(sample: Sample) -> Self {
            fs::create_dir(sample.beside("kept")).expect("made");
            let start = find(&open(&sample.path("")), BUDGET);
            Self { sample, start }
        }

        fn aside(&self) -> Vec<Aside> {
            let all = aside(&open(&self.sample.path("")), &self.start, (&open(&self.sample.beside("kept")), "s"), BUDGET).expect("moved");
            assert!(all.whole);
            let again = aside(&open(&self.sample.path("")), &self.start, (&open(&self.sample.beside("kept")), "s"), BUDGET).expect("moved");
            assert_eq!(again.moved, []);
            all.moved
        }
    }

    fn open(path: &Path) -> Folder {
        Folder::open(path).expect("opens")
    }

    fn paths(moved: &[Aside]) -> Vec<String> {
        moved.iter().map(|aside| aside.path.to_text()).collect()
    }

    /// Has git's question for what changed start a program, in a repository that the session made.
    fn arm(sample: &Sample, folder: &str) {
        let script = sample.beside("script");
        fs::write(&script, format!("#!/bin/sh\ntouch {}\n", sample.beside("PWN").display())).expect("written");
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("set");
        sample.git_in(folder, &["config", "core.fsmonitor", &script.display().to_string()]);
    }

    #[test]
    fn a_repository_of_the_session_bites_until_it_is_moved_aside() {
        let case = Case::of(Sample::without_git());
        let sample = &case.sample;
        sample.write("src/x", "1");
        sample.git(&["init", "-q"]);
        arm(sample, "");
        run_git(&sample.path("src"), &["status"]);
        assert!(sample.beside("PWN").exists(), "it bites");
        fs::remove_file(sample.beside("PWN")).expect("removed");
        let moved = case.aside();
        assert_eq!(paths(&moved), [".git"]);
        let kept = moved[0].kept.clone().expect("kept");
        assert!(sample.beside("kept").join(kept.as_path()).join("config").exists());
        assert!(!run_git(&sample.path("src"), &["status"]).1);
        assert!(!sample.beside("PWN").exists() && sample.path("src/x").exists());
    }

    #[test]
    fn what_was_there_stays_and_all_that_is_new_goes() {
        let sample = Sample::with_submodules();
        sample.git(&["init", "-q", "old"]);
        let case = Case::of(sample);
        let sample = &case.sample;
        sample.git(&["init", "-q", "deep/er/new"]);
        sample.git(&["init", "-q", "deep/er/new/inner"]);
        sample.git(&["init", "-q", "--bare", "vendor"]);
        symlink("/etc", sample.path("vendor/link")).expect("linked");
        sample.write("lure/HEAD", "ref: refs/heads/main\n");
        sample.write("lure/commondir", "../vendor");
        symlink("../vendor", sample.path("deep/.git")).expect("linked");
        sample.write("lead/.git", "gitdir: ../vendor\n");
        let moved = case.aside();
        assert_eq!(paths(&moved), ["deep/.git", "deep/er/new/.git", "deep/er/new/inner/.git", "lead/.git", "lure", "vendor"]);
        assert!(moved.iter().all(|aside| aside.kept.is_some() && !aside.is_restored));
        assert!(sample.path("old/.git/HEAD").exists() && sample.path("sub/.git").exists() && sample.path("deep/er/new").exists());
        assert_eq!(sample.git(&["submodule", "status"]).lines().count(), 1);
    }

    #[test]
    fn a_submodule_gets_its_own_way_back() {
        let case = Case::of(Sample::with_submodules());
        let sample = &case.sample;
        fs::remove_file(sample.path("sub/.git")).expect("removed");
        sample.git(&["init", "-q", "sub"]);
        arm(sample, "sub");
        sample.git(&["status"]);
        assert!(sample.beside("PWN").exists(), "it bites from the project's own folder");
        fs::remove_file(sample.beside("PWN")).expect("removed");
        let moved = case.aside();
        assert_eq!(paths(&moved), ["sub/.git"]);
        assert!(moved[0].is_restored);
        assert_eq!(sample.git(&["status", "--porcelain"]), "");
        assert!(!sample.beside("PWN").exists());
        // The same where it leads elsewhere only.
        sample.write("sub/.git", "gitdir: ../.git/modules/sub/../evil\n");
        assert_eq!(paths(&case.aside()), ["sub/.git"]);
        assert_eq!(sample.git(&["status", "--porcelain"]), "");
    }

    #[test]
    fn the_projects_own_folder_is_no_repository_afterwards() {
        let sample = Sample::without_git();
        sample.write("objects/x", "1");
        let case = Case::of(sample);
        let sample = &case.sample;
        sample.write("refs/heads/", "");
        sample.write("HEAD", "ref: refs/heads/main\n");
        sample.git(&["config", "core.bare", "false"]);
        arm(sample, "");
        run_git(&sample.path(""), &["--work-tree=.", "status"]);
        assert!(sample.beside("PWN").exists(), "it bites");
        let moved = case.aside();
        assert_eq!((paths(&moved), moved[0].parts.len()), (vec![String::new()], 3), "{moved:?}");
        assert!(!run_git(&sample.path(""), &["status"]).1);
        assert!(sample.path("objects/x").exists() && !sample.path("config").exists());
    }

    #[test]
    fn what_was_cut_off_goes_on_and_odd_files_hold_nothing_up() {
        let case = Case::of(Sample::new());
        let sample = &case.sample;
        sample.git(&["init", "-q", "--bare", "half"]);
        nix::unistd::mkfifo(&sample.path("half/pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).expect("made");
        // Renamed, and killed before the rest.
        fs::rename(sample.path("half"), sample.path(".podbay-aside-s-0")).expect("moved");
        let moved = case.aside();
        assert_eq!(paths(&moved), [".podbay-aside-s-0"]);
        assert_eq!(moved[0].n_passed_over, 1);
        assert_eq!(fs::read_dir(sample.path("")).expect("a folder").count(), 1);
    }

    #[test]
    fn what_is_too_large_stays_without_being_a_repository() {
        let case = Case::of(Sample::without_git());
        let sample = &case.sample;
        sample.git(&["init", "-q", "new"]);
        let large = fs::File::create(sample.path("new/.git/large")).expect("made");
        large.set_len(MAX_BYTES + 1).expect("a file that takes no room");
        let moved = case.aside();
        assert_eq!(moved[0].left.as_ref().map(BytesPath::to_text).as_deref(), Some("new/.podbay-left-s-0"));
        assert_eq!(fs::read_dir(sample.beside("kept")).expect("a folder").count(), 0);
        assert!(sample.path("new/.podbay-left-s-0/config").exists());
        assert!(!run_git(&sample.path("new"), &["status"]).1 && !run_git(&sample.path("new/.podbay-left-s-0"), &["status"]).1);
    }

    #[test]
    fn a_folder_that_lets_nobody_in_keeps_nothing_in() {
        let case = Case::of(Sample::without_git());
        let sample = &case.sample;
        sample.git(&["init", "-q", "locked"]);
        sample.write("locked/.git/deep/er/file", "x");
        sample.git(&["init", "-q", "other"]);
        let mode = |path: &str, mode: u32| {
            let mode = std::os::unix::fs::PermissionsExt::from_mode(mode);
            fs::set_permissions(sample.path(path), mode).expect("set");
        };
        let is_root = nix::unistd::geteuid().is_root();
        let mut folders = vec![sample.beside("")];
        while let Some(path) = folders.pop()
            && is_root
        {
            nix::unistd::chown(&path, Some(SOMEBODY), None).expect("owned by somebody");
            folders.extend(fs::read_dir(&path).into_iter().flatten().map(|entry| entry.expect("an entry").path()));
        }
        for path in ["locked/.git/deep/er", "locked/.git/deep", "locked/.git"] {
            mode(path, 0);
        }
        mode("locked", 0o555);
        // Nothing is locked for root.
        let before = is_root.then(|| nix::unistd::setfsuid(SOMEBODY));
        let moved = case.aside();
        before.map(nix::unistd::setfsuid);
        assert_eq!(paths(&moved), ["locked/.git", "other/.git"]);
        assert!(moved.iter().all(|aside| aside.kept.is_some() && aside.problem.is_none()), "{moved:?}");
        let kept = sample.beside("kept").join(moved[0].kept.as_ref().expect("kept").as_path());
        assert!(kept.join("deep/er/file").exists());
        assert_eq!(fs::read_dir(sample.path("locked")).expect("a folder").count(), 0);
        let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(sample.path("locked")).expect("facts").permissions());
        assert_eq!(mode & 0o777, 0o555);
    }

    #[test]
    fn what_was_renamed_and_disarmed_is_still_known() {
        let case = Case::of(Sample::new());
        let sample = &case.sample;
        sample.write(".podbay-aside-s-0/HEAD.aside", "x");
        sample.write("deep/.podbay-aside-s-1", "gitdir: /x");
        assert_eq!(paths(&case.aside()), [".podbay-aside-s-0", "deep/.podbay-aside-s-1"]);
        let project = open(&sample.path(""));
        assert_eq!(project.kind(b".podbay-aside-s-0"), None);
        assert_eq!(project.kind(b"deep/.podbay-aside-s-1"), None);
    }
}
