//! Which known program a file is, whatever its name: by its inode, and by the build id that the
//! linker left in it.

use std::collections::HashMap;
use std::fs::File;
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::FileExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::known_programs::KnownProgram;

/// How much of a file is read first: the build id is nearly always in its first page.
const PAGE: usize = 4096;

/// Largest ELF note, and largest table of segments.
const MAX_NOTE: u64 = 64 * 1024;

/// Files whose heads are cached.
const MOST: usize = 4096;

/// Identifies a version of a file. Its ctime cannot be set by a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct FileKey {
    device: u64,
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl FileKey {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// What the head of a file says about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FileHead {
    /// The linker's build id.
    pub(super) build: Option<Vec<u8>>,
    /// The interpreter line of a script, without `#!`.
    script: Option<Vec<u8>>,
}

/// The programs that rules name, as files, with a cache of file heads.
#[derive(Debug, Default)]
pub(super) struct Identities {
    known: Vec<KnownProgram>,
    heads: HashMap<FileKey, FileHead>,
}

impl Identities {
    pub(super) fn of(known: Vec<KnownProgram>) -> Self {
        Self {
            known,
            heads: HashMap::new(),
        }
    }

    /// Returns the name by which a rule knows this file.
    pub(super) fn name_of(
        &mut self,
        metadata: &Metadata,
        open: impl FnOnce() -> io::Result<File>,
    ) -> Option<&[u8]> {
        if self.known.is_empty() {
            return None;
        }
        let key = FileKey::of(metadata);
        if let Some(at) = self
            .known
            .iter()
            .position(|known| (known.device, known.inode) == (key.device, key.inode))
        {
            return Some(self.known[at].name.as_bytes());
        }
        let build = self.head(metadata, open).build?;
        self.known
            .iter()
            .find(|known| known.build.as_ref() == Some(&build))
            .map(|known| known.name.as_bytes())
    }

    /// Returns the interpreter line of a script, without `#!`.
    pub(super) fn script_of(
        &mut self,
        metadata: &Metadata,
        open: impl FnOnce() -> io::Result<File>,
    ) -> Option<Vec<u8>> {
        self.head(metadata, open).script
    }

    fn head(&mut self, metadata: &Metadata, open: impl FnOnce() -> io::Result<File>) -> FileHead {
        let key = FileKey::of(metadata);
        if let Some(head) = self.heads.get(&key) {
            return head.clone();
        }
        let head = open().ok().map(|file| read(&file)).unwrap_or_default();
        if self.heads.len() >= MOST {
            self.heads.clear();
        }
        self.heads.insert(key, head.clone());
        head
    }
}

/// Returns the head of a file; empty where it cannot be read.
pub(super) fn head_of(path: &Path) -> FileHead {
    open(path).ok().map(|file| read(&file)).unwrap_or_default()
}

/// Opens a file for reading without blocking: a pipe cannot be executed anyway.
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::options()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(path)
}

fn read(file: &File) -> FileHead {
    let mut page = vec![0; PAGE];
    let length = file.read_at(&mut page, 0).unwrap_or(0);
    page.truncate(length);
    if let Some(line) = page.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
        return FileHead {
            script: Some(line.trim_ascii().to_vec()),
            build: None,
        };
    }
    FileHead {
        build: build_of(file, &page),
        script: None,
    }
}

/// Reads the build id of a 64-bit little-endian ELF file; others do not run here.
fn build_of(file: &File, page: &[u8]) -> Option<Vec<u8>> {
    const NOTES: u32 = 4;
    let number = |bytes: &[u8], at: usize, size: usize| -> Option<u64> {
        let mut number = [0; 8];
        number[..size].copy_from_slice(bytes.get(at..at + size)?);
        Some(u64::from_le_bytes(number))
    };
    if !page.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let (table, size, count) = (
        number(page, 32, 8)?,
        number(page, 54, 2)?,
        number(page, 56, 2)?,
    );
    if size < 56 || size * count > MAX_NOTE {
        return None;
    }
    let table = part(file, page, table, size * count)?;
    let segments = table
        .chunks_exact(size as usize)
        .filter(|segment| number(segment, 0, 4) == Some(NOTES.into()));
    for segment in segments {
        let (at, length) = (number(segment, 8, 8)?, number(segment, 32, 8)?);
        if length > MAX_NOTE {
            continue;
        }
        let Some(notes) = part(file, page, at, length) else {
            continue;
        };
        let mut rest = notes.as_slice();
        while let (Some(name), Some(content), Some(kind)) =
            (number(rest, 0, 4), number(rest, 4, 4), number(rest, 8, 4))
        {
            let padded = |length: u64| usize::try_from(length.checked_next_multiple_of(4)?).ok();
            let (name_length, content_length) = (padded(name)?, padded(content)?);
            let content_at = 12_usize.checked_add(name_length)?;
            let end = content_at.checked_add(content_length)?;
            if kind == 3 && rest.get(12..16) == Some(b"GNU\0") && content > 0 {
                return rest
                    .get(content_at..content_at.checked_add(content as usize)?)
                    .map(<[u8]>::to_vec);
            }
            rest = rest.get(end..).unwrap_or_default();
        }
    }
    None
}

fn part(file: &File, page: &[u8], at: u64, length: u64) -> Option<Vec<u8>> {
    let (from, to) = (
        usize::try_from(at).ok()?,
        usize::try_from(at.checked_add(length)?).ok()?,
    );
    if let Some(part) = page.get(from..to) {
        return Some(part.to_vec());
    }
    let mut part = vec![0; length as usize];
    file.read_exact_at(&mut part, at).ok()?;
    Some(part)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;

    use podbay_wire::ExecEffect;
    use podbay_wire::ExecRule;
    use podbay_wire::ExecScope;

    use super::super::known_programs::KnownPrograms;
    use super::*;

    fn rule(name: &str) -> ExecRule {
        let words = vec![vec![name.to_owned()]];
        let (effect, scope) = (ExecEffect::Deny, ExecScope::Own);
        ExecRule {
            effect,
            words,
            more: true,
            options_between: false,
            unless: Vec::new(),
            scope,
            rule: name.to_owned(),
            justification: String::new(),
        }
    }

    fn name_of(identities: &mut Identities, path: &Path) -> Option<String> {
        let metadata = fs::metadata(path).expect("there");
        identities
            .name_of(&metadata, || open(path))
            .map(|name| String::from_utf8_lossy(name).into_owned())
    }

    /// A 64-bit ELF file with nothing but a build id.
    fn program(mark: &[u8], before: usize) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 + before];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        (bytes[54], bytes[56]) = (56, 1);
        let note = [
            &4_u32.to_le_bytes()[..],
            &(mark.len() as u32).to_le_bytes(),
            &3_u32.to_le_bytes(),
            b"GNU\0",
            mark,
        ]
        .concat();
        bytes[64] = 4;
        let at = bytes.len() as u64;
        bytes[72..80].copy_from_slice(&at.to_le_bytes());
        bytes[96..104].copy_from_slice(&(note.len() as u64).to_le_bytes());
        [bytes, note].concat()
    }

    #[test]
    fn a_copy_of_a_program_is_recognized_by_its_build_id() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        fs::write(at("tool"), program(b"12345678", 0)).expect("written");
        fs::write(
            at("copy"),
            [program(b"12345678", 0), b"x".to_vec()].concat(),
        )
        .expect("written");
        fs::write(at("far"), program(b"12345678", 9000)).expect("written");
        fs::write(at("other"), program(b"12345679", 0)).expect("written");
        fs::write(at("script"), "#! /usr/bin/env -S tool x \nx\n").expect("written");
        symlink("tool", at("link")).expect("linked");
        let known = KnownPrograms::default().of(
            &[rule("tool"), rule("not-there"), rule("to*")],
            folder.path().as_os_str().as_bytes(),
        );
        let mut identities = Identities::of(known.to_vec());
        for (name, expected) in [
            ("tool", Some("tool")),
            ("link", Some("tool")),
            ("copy", Some("tool")),
            ("far", Some("tool")),
            ("other", None),
            ("script", None),
        ] {
            assert_eq!(
                name_of(&mut identities, &at(name)).as_deref(),
                expected,
                "{name}"
            );
        }
        let metadata = fs::metadata(at("script")).expect("there");
        assert_eq!(
            identities.script_of(&metadata, || open(&at("script"))),
            Some(b"/usr/bin/env -S tool x".to_vec())
        );
        // A later write to the file counts.
        fs::write(at("other"), program(b"12345678", 0)).expect("written");
        assert_eq!(
            name_of(&mut identities, &at("other")).as_deref(),
            Some("tool")
        );
    }

    #[test]
    fn malformed_elf_files_have_no_build_id() {
        let folder = tempfile::tempdir().expect("a folder");
        let whole = program(b"12345678", 0);
        let path = folder.path().join("x");
        for cut in 0..whole.len() {
            fs::write(&path, &whole[..cut]).expect("written");
            assert_eq!(
                read(&File::open(&path).expect("there")).build,
                None,
                "{cut}"
            );
        }
        for at in 0..whole.len() {
            let mut odd = whole.clone();
            odd[at] ^= 0xff;
            fs::write(&path, odd).expect("written");
            let _ = read(&File::open(&path).expect("there"));
        }
    }
}
