//! Why git can only read where files pass a filter.
//!
//! A filter is a program that the sandbox may lack, and that hostile files must not reach on the
//! user's machine: a commit without it would hold what it encrypts or strips. LFS also keeps
//! contents in a folder that is not imported.

use super::Preparation;
use super::PreparePlace;
use super::contents::MAX_CONFIG;
use super::join_both;
use crate::keep::git::index::Index;
use crate::keep::git::session_config::SessionConfig;
use crate::keep::git::session_config::filters_named;
use crate::keep::git::untrusted_folder::FileKind;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::GitRefusal;

/// Most attributes files that are searched for filters, LFS included.
pub(in crate::keep::git) const MAX_ATTRIBUTES: usize = 10_000;

impl Preparation<'_> {
    pub(super) fn check_filters(
        &self,
        place: &PreparePlace<'_>,
        settings: &SessionConfig,
        work_tree: &[u8],
        index: Option<&Index>,
    ) -> Result<(), GitRefusal> {
        if place.kind(&place.common(b"lfs")) == Some(FileKind::Folder) {
            return Err(GitRefusal::LargeFiles);
        }
        let own = place.common(b"info/attributes");
        if let Some(text) = place.read(&own, MAX_CONFIG)? {
            self.check_named(settings, &own, filters_named(&text))?;
        }
        self.check_for_all(settings, work_tree)?;
        let names = index
            .iter()
            .flat_map(|index| &index.entries)
            .map(|entry| entry.name.as_slice());
        let attributes = names.filter(|name| split(name).1 == b".gitattributes");
        for (n, name) in [&b".gitattributes"[..]]
            .into_iter()
            .chain(attributes)
            .enumerate()
        {
            if n > MAX_ATTRIBUTES {
                return Err(unknown(
                    name,
                    format!("there are more than {MAX_ATTRIBUTES} attributes files"),
                ));
            }
            self.check_file(settings, name, &join_both(work_tree, name))?;
        }
        Ok(())
    }

    /// Checks attributes that lie in none of the repository's folders: the machine's, and those
    /// that its own config names, else the user's.
    fn check_for_all(&self, settings: &SessionConfig, work_tree: &[u8]) -> Result<(), GitRefusal> {
        for theirs in self
            .person
            .attributes
            .iter()
            .filter(|theirs| theirs.is_of_machine || settings.attributes.is_none())
        {
            let path = theirs.path.as_bytes();
            self.check_named(
                settings,
                path,
                theirs.filters.iter().map(BytesPath::as_bytes),
            )?;
            if !path.starts_with(b"/") {
                self.check_file(settings, path, &join_both(work_tree, path))?;
            }
        }
        let Some(said) = settings
            .attributes
            .as_deref()
            .filter(|said| !said.is_empty())
        else {
            return Ok(());
        };
        match self.in_project(said, work_tree) {
            Some(path) => self.check_file(settings, said, &path),
            // Files outside that a repository's config names are not read: the config may have come
            // with the repository.
            None if self.may_have_filter(settings) => {
                Err(unknown(said, "it is not in the project".to_owned()))
            }
            None => Ok(()),
        }
    }

    fn check_file(
        &self,
        settings: &SessionConfig,
        name: &[u8],
        path: &[u8],
    ) -> Result<(), GitRefusal> {
        match self.project.read(path, MAX_CONFIG) {
            Ok(Some(text)) => self.check_named(settings, name, filters_named(&text)),
            // Git does not read links here either.
            Ok(None) | Err(Fault::NotRegular { .. }) => Ok(()),
            Err(fault) => Err(unknown(name, fault.to_string())),
        }
    }

    /// Checks that attributes name no filter with a configured program.
    fn check_named<'n>(
        &self,
        settings: &SessionConfig,
        path: &[u8],
        filters: impl Iterator<Item = &'n [u8]>,
    ) -> Result<(), GitRefusal> {
        for name in filters {
            if name == b"lfs" {
                return Err(GitRefusal::LargeFiles);
            }
            if self.has_program(settings, name) {
                return Err(GitRefusal::Filtered {
                    name: BytesPath::from_bytes(name),
                    path: BytesPath::from_bytes(path),
                });
            }
        }
        Ok(())
    }

    /// With includes, which are not read, any filter may have one.
    fn has_program(&self, settings: &SessionConfig, name: &[u8]) -> bool {
        let in_person = self
            .person
            .filters
            .iter()
            .any(|filter| filter.as_bytes() == name);
        settings.has_include
            || self.person.has_more
            || in_person
            || settings.filters.iter().any(|filter| filter == name)
    }

    fn may_have_filter(&self, settings: &SessionConfig) -> bool {
        settings.has_include
            || self.person.has_more
            || !self.person.filters.is_empty()
            || !settings.filters.is_empty()
    }
}

fn unknown(path: &[u8], problem: String) -> GitRefusal {
    GitRefusal::LargeFilesUnknown {
        path: BytesPath::from_bytes(path),
        problem,
    }
}
