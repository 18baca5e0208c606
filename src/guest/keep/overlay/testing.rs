//! An overlay for tests.

use std::fs;
use std::path::PathBuf;

use nix::mount::MntFlags;
use nix::mount::MsFlags;

use crate::keep::project::Project;
use crate::keep::testing::Scene;

/// A project with an overlay mounted by the kernel.
pub(in crate::keep) struct OverlayScene {
    pub(in crate::keep) scene: Scene,
}

impl OverlayScene {
    /// `None`, which is printed, where this process may not mount.
    pub(in crate::keep) fn over(scene: Scene) -> Option<Self> {
        Self::mount(&scene).then_some(Self { scene })
    }

    /// Mounts a new overlay.
    pub(in crate::keep) fn anew(&self) {
        nix::mount::umount2(&self.copy(""), MntFlags::MNT_DETACH).expect("unmounted");
        for name in ["upper", "work", "copy"] {
            fs::remove_dir_all(self.scene.folder().join(name)).expect("removed");
        }
        assert!(Self::mount(&self.scene));
    }

    #[expect(clippy::print_stderr, reason = "a test does not skip in silence")]
    fn mount(scene: &Scene) -> bool {
        let at = |name: &str| scene.folder().join(name);
        for name in ["upper", "work", "copy"] {
            fs::create_dir(at(name)).expect("made");
        }
        let [lower, upper, work] =
            [scene.root(), at("upper"), at("work")].map(|path| path.display().to_string());
        let options = format!(
            "lowerdir={lower},upperdir={upper},workdir={work},redirect_dir=nofollow,xino=off"
        );
        match nix::mount::mount(
            Some("overlay"),
            &at("copy"),
            Some("overlay"),
            MsFlags::empty(),
            Some(options.as_str()),
        ) {
            Ok(()) => true,
            Err(errno) => {
                eprintln!(
                    "not tried, since no file system can be mounted here: {}",
                    errno.desc()
                );
                false
            }
        }
    }

    pub(in crate::keep) fn copy(&self, path: &str) -> PathBuf {
        self.scene.folder().join("copy").join(path)
    }

    pub(in crate::keep) fn open(&self, name: &str) -> Project {
        Project::open(&self.scene.folder().join(name)).expect("opens")
    }
}

impl Drop for OverlayScene {
    fn drop(&mut self) {
        let _ = nix::mount::umount2(&self.copy(""), MntFlags::MNT_DETACH);
    }
}
