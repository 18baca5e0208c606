use std::time::Duration;
use std::time::Instant;

use super::bounded_copy::CopyAllowance;
use super::find::MAX_FOUND;
use super::find::RepositoryWalk;
use super::find::SubmoduleScan;
use super::move_out::MoveOut;
use super::session_start::check_id;
use super::untrusted_folder::UntrustedFolder;
use podbay_wire::Fault;
use podbay_wire::keep::FoundGit;
use podbay_wire::keep::MovedOutGit;

/// Most bytes of paths that wait to be copied: the rest of the project waits for them.
const MAX_WAITING: usize = 64 << 20;

/// Limits of moving repositories out of a project: size, and time.
#[derive(Clone, Copy, Debug)]
pub struct MoveOutBounds {
    pub time: Duration,
    pub room: CopyAllowance,
}

impl Default for MoveOutBounds {
    fn default() -> Self {
        Self {
            time: Duration::from_mins(2),
            room: CopyAllowance::default(),
        }
    }
}

/// Moves every repository, and every `.git` that leads to one, out of the project if it is new
/// since the session began or leads elsewhere now.
///
/// First all of them are renamed in the project, which takes effect at once; if the copying after
/// it is interrupted, the next call continues it. A `.git` file that was replaced is written again.
/// Of a folder with other files only the parts that make it a repository are moved.
pub fn move_out_new(
    project: &UntrustedFolder,
    start: &FoundGit,
    (kept, id): (&UntrustedFolder, &str),
    bounds: MoveOutBounds,
) -> Result<MovedOutGit, Fault> {
    check_id(id)?;
    let Some(mut walk) = RepositoryWalk::begin(project, SubmoduleScan::PassedOver) else {
        return Ok(MovedOutGit::default());
    };
    let begun = Instant::now();
    let (end_of_look, end) = (begun + bounds.time / 4 * 3, begun + bounds.time);
    let mut moving = MoveOut::new(project, start, (kept, id), bounds.room, end);
    let mut whole = true;
    while !walk.is_over() && Instant::now() <= end_of_look {
        let found = walk.next(MAX_FOUND, end_of_look);
        whole &= found.whole;
        for folder in found.repositories.iter().filter_map(|one| moving.take(one)) {
            walk.look_behind(folder);
        }
        if walk.is_over() || moving.n_waiting_bytes() > MAX_WAITING {
            moving
                .copy_all()
                .into_iter()
                .for_each(|folder| walk.look_into(folder));
        }
    }
    moving.copy_all();
    let is_over = walk.is_over();
    walk.end();
    Ok(moving.told(whole && is_over, is_over))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;

    use super::super::find::find;
    use super::super::sample::Sample;
    use super::super::sample::run_git;
    use super::*;
    use podbay_wire::keep::MovedOutRepository;

    const BUDGET: Duration = Duration::from_secs(20);

    const OTHER_USER: nix::unistd::Uid = nix::unistd::Uid::from_raw(1000);

    struct MoveOutCase {
        sample: Sample,
        start: FoundGit,
    }

    impl MoveOutCase {
        fn of(sample: Sample) -> Self {
            fs::create_dir(sample.beside("kept")).expect("made");
            let start = find(&open(&sample.path("")), BUDGET);
            Self { sample, start }
        }

        fn aside(&self) -> Vec<MovedOutRepository> {
            let all = self.aside_within(MoveOutBounds::default());
            assert!(all.whole && all.moved.n == all.moved.first.len() as u64);
            assert_eq!(
                self.aside_within(MoveOutBounds::default()),
                MovedOutGit {
                    whole: true,
                    ..MovedOutGit::default()
                }
            );
            all.moved.first
        }

        fn aside_within(&self, bounds: MoveOutBounds) -> MovedOutGit {
            move_out_new(
                &open(&self.sample.path("")),
                &self.start,
                (&open(&self.sample.beside("kept")), "s"),
                bounds,
            )
            .expect("moved")
        }
    }

    fn open(path: &Path) -> UntrustedFolder {
        UntrustedFolder::open(path).expect("opens")
    }

    fn paths(moved: &[MovedOutRepository]) -> Vec<String> {
        moved.iter().map(|aside| aside.path.to_text()).collect()
    }

    /// Sets up a repository of the session whose `git status` would start a program.
    fn arm(sample: &Sample, folder: &str) {
        let script = sample.beside("script");
        fs::write(
            &script,
            format!("#!/bin/sh\ntouch {}\n", sample.beside("PWN").display()),
        )
        .expect("written");
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .expect("set");
        sample.git_in(
            folder,
            &["config", "core.fsmonitor", &script.display().to_string()],
        );
    }

    #[test]
    fn a_repository_of_the_session_is_dangerous_until_it_is_moved_out() {
        let case = MoveOutCase::of(Sample::without_git());
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
        assert!(
            sample
                .beside("kept")
                .join(kept.as_path())
                .join("config")
                .exists()
        );
        assert!(!run_git(&sample.path("src"), &["status"]).1);
        assert!(!sample.beside("PWN").exists() && sample.path("src/x").exists());
    }

    #[test]
    fn existing_repositories_stay_and_new_ones_are_moved_out() {
        let sample = Sample::with_submodules();
        sample.git(&["init", "-q", "old"]);
        let case = MoveOutCase::of(sample);
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
        assert_eq!(
            paths(&moved),
            [
                "deep/.git",
                "deep/er/new/.git",
                "deep/er/new/inner/.git",
                "lead/.git",
                "lure",
                "vendor"
            ]
        );
        assert!(
            moved
                .iter()
                .all(|aside| aside.kept.is_some() && !aside.is_restored)
        );
        assert!(
            sample.path("old/.git/HEAD").exists()
                && sample.path("sub/.git").exists()
                && sample.path("deep/er/new").exists()
        );
        assert_eq!(sample.git(&["submodule", "status"]).lines().count(), 1);
    }

    #[test]
    fn a_replaced_git_file_of_a_submodule_is_restored() {
        let case = MoveOutCase::of(Sample::with_submodules());
        let sample = &case.sample;
        fs::remove_file(sample.path("sub/.git")).expect("removed");
        sample.git(&["init", "-q", "sub"]);
        arm(sample, "sub");
        sample.git(&["status"]);
        assert!(
            sample.beside("PWN").exists(),
            "it bites from the project's own folder"
        );
        fs::remove_file(sample.beside("PWN")).expect("removed");
        let moved = case.aside();
        assert_eq!(paths(&moved), ["sub/.git"]);
        assert!(moved[0].is_restored);
        assert_eq!(sample.git(&["status", "--porcelain"]), "");
        assert!(!sample.beside("PWN").exists());
        // The same for one that only leads elsewhere.
        sample.write("sub/.git", "gitdir: ../.git/modules/sub/../evil\n");
        assert_eq!(paths(&case.aside()), ["sub/.git"]);
        assert_eq!(sample.git(&["status", "--porcelain"]), "");
    }

    #[test]
    fn the_projects_own_folder_is_no_bare_repository_afterwards() {
        let sample = Sample::without_git();
        sample.write("objects/x", "1");
        let case = MoveOutCase::of(sample);
        let sample = &case.sample;
        sample.write("refs/heads/", "");
        sample.write("HEAD", "ref: refs/heads/main\n");
        sample.git(&["config", "core.bare", "false"]);
        arm(sample, "");
        run_git(&sample.path(""), &["--work-tree=.", "status"]);
        assert!(sample.beside("PWN").exists(), "it bites");
        let moved = case.aside();
        assert_eq!(
            (paths(&moved), moved[0].parts.n),
            (vec![String::new()], 3),
            "{moved:?}"
        );
        assert!(!run_git(&sample.path(""), &["status"]).1);
        assert!(sample.path("objects/x").exists() && !sample.path("config").exists());
    }

    #[test]
    fn an_interrupted_move_is_continued_and_special_files_do_not_block_it() {
        let case = MoveOutCase::of(Sample::new());
        let sample = &case.sample;
        sample.git(&["init", "-q", "--bare", "half"]);
        nix::unistd::mkfifo(
            &sample.path("half/pipe"),
            nix::sys::stat::Mode::from_bits_truncate(0o600),
        )
        .expect("made");
        // Renamed, then killed.
        fs::rename(sample.path("half"), sample.path(".podbay-aside-s-0")).expect("moved");
        let moved = case.aside();
        assert_eq!(paths(&moved), [".podbay-aside-s-0"]);
        assert_eq!(moved[0].n_passed_over, 1);
        assert_eq!(fs::read_dir(sample.path("")).expect("a folder").count(), 1);
    }

    #[test]
    fn a_repository_in_an_unreadable_folder_is_moved_out() {
        let case = MoveOutCase::of(Sample::without_git());
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
            nix::unistd::chown(&path, Some(OTHER_USER), None).expect("owned by another user");
            folders.extend(
                fs::read_dir(&path)
                    .into_iter()
                    .flatten()
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
        for path in ["locked/.git/deep/er", "locked/.git/deep", "locked/.git"] {
            mode(path, 0);
        }
        mode("locked", 0o555);
        // Modes do not keep root out.
        let before = is_root.then(|| nix::unistd::setfsuid(OTHER_USER));
        let moved = case.aside();
        before.map(nix::unistd::setfsuid);
        assert_eq!(paths(&moved), ["locked/.git", "other/.git"]);
        assert!(
            moved
                .iter()
                .all(|aside| aside.kept.is_some() && aside.problem.is_none()),
            "{moved:?}"
        );
        let kept = sample
            .beside("kept")
            .join(moved[0].kept.as_ref().expect("kept").as_path());
        assert!(kept.join("deep/er/file").exists());
        assert_eq!(
            fs::read_dir(sample.path("locked"))
                .expect("a folder")
                .count(),
            0
        );
        let mode = std::os::unix::fs::PermissionsExt::mode(
            &fs::metadata(sample.path("locked"))
                .expect("facts")
                .permissions(),
        );
        assert_eq!(mode & 0o777, 0o555);
    }

    #[test]
    fn a_renamed_and_disarmed_repository_is_still_recognized() {
        let case = MoveOutCase::of(Sample::new());
        let sample = &case.sample;
        sample.write(".podbay-aside-s-0/HEAD.aside", "x");
        sample.write("deep/.podbay-aside-s-1", "gitdir: /x");
        assert_eq!(
            paths(&case.aside()),
            [".podbay-aside-s-0", "deep/.podbay-aside-s-1"]
        );
        let project = open(&sample.path(""));
        assert_eq!(project.kind(b".podbay-aside-s-0"), None);
        assert_eq!(project.kind(b"deep/.podbay-aside-s-1"), None);
    }
}
