//! Defects of the user's repository that do not concern what is imported.

use std::time::Duration;

use super::RepositoryImport;
use crate::keep::git::git_command::Git;
use crate::keep::git::refs;
use crate::keep::git::staging;
use crate::keep::git::untrusted_folder::UntrustedFolder;
use crate::keep::git::untrusted_folder::failed;
use crate::root::join;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::GitRefusal;
use podbay_wire::keep::ImportedRepository;

/// Time for finding references that lead nowhere.
const REF_CHECK_TIME: Duration = Duration::from_secs(30);
const MAX_TOLD: usize = 20;

impl RepositoryImport<'_> {
    /// Returns an error if the repository has no valid `HEAD` any more.
    pub(super) fn check_head(&self) -> Result<(), Fault> {
        let paths = [b"HEAD".to_vec(), join(&self.private, b"HEAD")];
        if paths.iter().all(|path| self.real.kind(path).is_some()) {
            return Ok(());
        }
        Err(Fault::Io {
            doing: "take it over".into(),
            problem: GitRefusal::NoHead.to_string(),
        })
    }

    /// Reports the user's references that git cannot resolve; returns a git with the same objects
    /// and without those references, if there are any.
    pub(super) fn without_broken_names(
        &self,
        done: &mut ImportedRepository,
    ) -> Result<Option<Git>, Fault> {
        let mut names = refs::read(&self.real)?;
        let mut broken: Vec<String> = names
            .odd
            .into_iter()
            .map(|(name, why)| {
                format!("your {name} {why}: git cannot resolve it; repair or remove the file")
            })
            .collect();
        let asked: String = names
            .bound
            .values()
            .map(|object| format!("{object}\n"))
            .collect();
        let answer = self.git.bounded(REF_CHECK_TIME).run(
            &["cat-file", "--batch-check=%(objecttype)"],
            asked.as_bytes(),
        )?;
        let lines = answer.stdout.split(|byte| *byte == b'\n');
        let lost = names
            .bound
            .iter()
            .zip(lines)
            .filter(|(_, line)| line.ends_with(b" missing"));
        let lost: Vec<BytesPath> = lost.map(|((name, _), _)| name.clone()).collect();
        names.bound.retain(|name, _| !lost.contains(name));
        let told = |name| {
            format!(
                "your {name} points to a missing object; restore that, or remove the reference \
                with `git update-ref -d {name}`"
            )
        };
        broken.extend(lost.into_iter().map(told));
        if broken.is_empty() {
            return Ok(None);
        }
        let n_more = broken.len().saturating_sub(MAX_TOLD);
        broken.truncate(MAX_TOLD);
        broken.extend(
            (n_more > 0).then(|| format!("{n_more} more of your references are broken like that")),
        );
        done.notes.extend(broken);
        let scratch = UntrustedFolder::open(self.scratch)
            .map_err(|error| failed("open", b"the scratch folder", &error))?;
        let place = staging::bare(&scratch, b"view.git", &self.real)?;
        scratch.replace(b"view.git/packed-refs", &refs::packed_text(&names.bound))?;
        let git = Git::new(
            &self.scratch.join(place),
            &self.scratch.join("empty"),
            self.end,
        );
        Ok(Some(git.with_objects(&self.real_path.join("objects"))))
    }
}
