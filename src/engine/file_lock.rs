use std::fs;
use std::fs::File;
use std::fs::OpenOptions;
use std::fs::TryLockError;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;

/// How often a lock held by another process is retried.
const PAUSE: Duration = Duration::from_millis(200);

/// Locks a shared object while one process creates it: an image, a model file, the model server.
///
/// The lock ends with the process, however that ends. The file stays: removing it would let two
/// processes lock two files of the same name.
#[derive(Debug)]
pub struct FileLock {
    _file: File,
}

impl FileLock {
    /// Takes the lock `name` in `folder`; if another process holds it, calls `waiting` once and
    /// waits.
    pub async fn wait(
        folder: &Path,
        name: &str,
        waiting: impl FnOnce(),
        cancel: &CancellationToken,
    ) -> Result<Self, Error> {
        let path = folder.join(format!("{name}.lock"));
        let failed = |source| Error::Lock {
            path: path.clone(),
            source,
        };
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(failed)?;
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW)
            .open(&path)
            .map_err(failed)?;
        let mut waiting = Some(waiting);
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _file: file }),
                Err(TryLockError::Error(source)) => return Err(failed(source)),
                Err(TryLockError::WouldBlock) => {}
            }
            if let Some(waiting) = waiting.take() {
                waiting();
            }
            tokio::select! {
                () = cancel.cancelled() => return Err(Error::Cancelled { doing: format!("wait for `{}`", path.display()) }),
                () = tokio::time::sleep(PAUSE) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_second_lock_waits_for_the_first_and_can_be_cancelled() {
        let folder = tempfile::tempdir().expect("a folder");
        let cancel = CancellationToken::new();
        let first = FileLock::wait(folder.path(), "a", || panic!("it is free"), &cancel)
            .await
            .expect("free");
        let mut told = false;
        let second = FileLock::wait(folder.path(), "a", || told = true, &cancel);
        let release = async {
            tokio::time::sleep(PAUSE / 4).await;
            drop(first);
        };
        let (second, ()) = tokio::join!(second, release);
        let _second = second.expect("free again");
        assert!(told);
        cancel.cancel();
        let third = FileLock::wait(folder.path(), "a", || {}, &cancel).await;
        assert!(matches!(third, Err(Error::Cancelled { .. })), "{third:?}");
    }
}
