//! The throw-away project that attacks are tried in.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::path::PathBuf;

use tempfile::TempDir;

/// A folder that goes with this value.
pub(super) struct Ground {
    folder: TempDir,
}

impl Ground {
    /// Makes a project with a `.git` and a `.podbay`, owned by whoever owns `like`, where that can
    /// be given away: sandboxes there run as that user.
    pub(super) fn make(like: &Path) -> io::Result<Self> {
        let folder = tempfile::Builder::new()
            .prefix("podbay-attack-")
            .permissions(fs::Permissions::from_mode(0o755))
            .tempdir()?;
        let ground = Self { folder };
        let project = ground.project();
        let git = project.join(".git");
        for folder in [&project, &git, &git.join("hooks"), &git.join("objects")] {
            fs::create_dir(folder)?;
        }
        fs::write(
            git.join("config"),
            "[core]\n\trepositoryformatversion = 0\n",
        )?;
        fs::create_dir(project.join(".podbay"))?;
        fs::write(project.join(".podbay/config.toml"), "")?;
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n")?;
        if nix::unistd::geteuid().is_root() {
            let owner = fs::metadata(like)?;
            give(&project, owner.uid(), owner.gid())?;
        }
        Ok(ground)
    }

    pub(super) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }
}

fn give(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    std::os::unix::fs::lchown(path, Some(uid), Some(gid))?;
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid, gid)?;
        }
    }
    Ok(())
}
