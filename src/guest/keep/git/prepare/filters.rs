//! Why git can only read where files go through a filter.
//!
//! A filter is a program that the box may lack, and that hostile files must not reach on the
//! person's machine: what a commit would hold without it is what it encrypts or strips. What LFS
//! takes out of a repository lies in a folder that nothing brings back, too.

use super::All;
use super::Place;
use super::join_both;
use super::look::MAX_CONFIG;
use crate::keep::git::folder::Kind;
use crate::keep::git::index::Index;
use crate::keep::git::settings::Settings;
use crate::keep::git::settings::filters_named;
use crate::root::split;
use podbay_wire::BytesPath;
use podbay_wire::Fault;
use podbay_wire::keep::GitRefusal;

/// How many files of attributes are looked through for filters, of which LFS is one.
pub(in crate::keep::git) const MAX_ATTRIBUTES: usize = 10_000;

impl All<'_> {
    pub(super) fn check_filters(
        &self,
        place: &Place<'_>,
        settings: &Settings,
        work_tree: &[u8],
        index: Option<&Index>,
    ) -> Result<(), GitRefusal> {
        if place.kind(&place.common(b"lfs")) == Some(Kind::Folder) {
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
                    format!("there are more than {MAX_ATTRIBUTES} such files"),
                ));
            }
            self.check_file(settings, name, &join_both(work_tree, name))?;
        }
        Ok(())
    }

    /// Checks what attributes say that lie in none of the repository's folders: those of the
    /// machine, and those that its own settings name, else the person's.
    fn check_for_all(&self, settings: &Settings, work_tree: &[u8]) -> Result<(), GitRefusal> {
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
            // What a repository's settings name elsewhere is read by nobody: they may have come
            // with it.
            None if self.may_have_filter(settings) => {
                Err(unknown(said, "it is not in the project".to_owned()))
            }
            None => Ok(()),
        }
    }

    fn check_file(&self, settings: &Settings, name: &[u8], path: &[u8]) -> Result<(), GitRefusal> {
        match self.project.read(path, MAX_CONFIG) {
            Ok(Some(text)) => self.check_named(settings, name, filters_named(&text)),
            // Git reads none that is a link either.
            Ok(None) | Err(Fault::NotRegular { .. }) => Ok(()),
            Err(fault) => Err(unknown(name, fault.to_string())),
        }
    }

    /// Checks that attributes name no filter that git has a program for.
    fn check_named<'n>(
        &self,
        settings: &Settings,
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

    /// Where settings include others, which nobody reads, any may have one.
    fn has_program(&self, settings: &Settings, name: &[u8]) -> bool {
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

    fn may_have_filter(&self, settings: &Settings) -> bool {
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
