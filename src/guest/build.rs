//! This program's build id, and whether it can run in any image.
//!
//! Both are read from the program's own headers as the kernel mapped them: in the sandbox the file
//! itself cannot be opened, because it is executable only.

use std::ffi::c_int;
use std::ffi::c_void;
use std::fmt::Write;

/// Type of the note that holds the build id.
const NT_GNU_BUILD_ID: u32 = 3;

/// Returns the build id that the linker computed over this program.
///
/// Host and guest are the same file, so the two ids are equal unless a sandbox still runs another
/// build. Without an id from the linker only the version is compared.
pub fn build_id() -> String {
    read_headers()
        .build_id
        .unwrap_or_else(|| format!("unidentified-{}", env!("CARGO_PKG_VERSION")))
}

/// Returns whether this program needs no loader and no libraries, which an image may not have.
pub fn is_static() -> bool {
    !read_headers().has_interpreter
}

#[derive(Default)]
struct Headers {
    build_id: Option<String>,
    has_interpreter: bool,
}

#[expect(
    unsafe_code,
    reason = "the C library's list of loaded objects is only reachable through a callback"
)]
fn read_headers() -> Headers {
    let mut headers = Headers::default();
    // SAFETY: `visit` matches the callback's type, and `headers` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut headers).cast()) };
    headers
}

/// Reads the first object, which is the program itself, and stops there.
#[expect(
    unsafe_code,
    reason = "called by the C library with pointers into the program's own headers"
)]
unsafe extern "C" fn visit(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    data: *mut c_void,
) -> c_int {
    // SAFETY: the C library hands a valid `info`, and `data` is the `Headers` of `read_headers`.
    // Segments of type PT_NOTE are mapped readable for their whole memory size as long as the
    // program runs.
    unsafe {
        let headers = &mut *data.cast::<Headers>();
        let info = &*info;
        for segment in std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) {
            match segment.p_type {
                libc::PT_INTERP => headers.has_interpreter = true,
                libc::PT_NOTE => {
                    let start = info.dlpi_addr as usize + segment.p_vaddr as usize;
                    let notes =
                        std::slice::from_raw_parts(start as *const u8, segment.p_memsz as usize);
                    headers.build_id = headers.build_id.take().or_else(|| find_build_id(notes));
                }
                _ => {}
            }
        }
    }
    1
}

/// Walks a note segment: sizes of name and description, a type, then both padded to four bytes.
fn find_build_id(mut notes: &[u8]) -> Option<String> {
    loop {
        let name_size = word(notes, 0)? as usize;
        let description_size = word(notes, 4)? as usize;
        let kind = word(notes, 8)?;
        let name = notes.get(12..12 + name_size)?;
        let description_at = 12 + name_size.next_multiple_of(4);
        let description = notes.get(description_at..description_at + description_size)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            let mut text = String::new();
            for byte in description {
                let _ = write!(text, "{byte:02x}");
            }
            return Some(text);
        }
        notes = notes.get(description_at + description_size.next_multiple_of(4)..)?;
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_linker_wrote_a_build_id_and_no_interpreter() {
        let id = build_id();
        assert_eq!(id.len(), 40, "{id}");
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        assert!(is_static());
    }

    #[test]
    fn torn_notes_give_no_id() {
        assert_eq!(find_build_id(&[]), None);
        assert_eq!(
            find_build_id(&[
                4, 0, 0, 0, 20, 0, 0, 0, 3, 0, 0, 0, b'G', b'N', b'U', 0, 1, 2
            ]),
            None
        );
    }
}
