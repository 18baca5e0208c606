//! Keeps the guest, and a chat that waits for its user, small: memory that is needed only at the
//! start is given back.
//!
//! Most resident memory of an idle guest is the program's own file. A static position-independent
//! program reads its relocation table at the start, more than a megabyte, and never again; each
//! touched page brings its neighbours along.

use std::ffi::c_int;
use std::ffi::c_void;
use std::ops::Range;

/// Keeps the C library from reserving a heap for each thread. Must be called before there are
/// threads.
pub(super) fn limit_arenas() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library")]
    // SAFETY: called before there are threads.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Releases all pages of the program's file that were never written to. Needed ones come back from
/// the kernel's page cache when touched, mostly without a disk read.
///
/// A failure only affects the size, so none is reported.
#[expect(
    unsafe_code,
    reason = "pages are given back to the kernel by their addresses"
)]
pub fn release_program_pages() {
    for pages in unwritten_pages() {
        // SAFETY: these pages belong to segments that are mapped from the program's file and are
        // not writable, so each has the file's contents: the kernel maps the same bytes again when
        // one is touched, even by the next instruction. What the loader has changed, also where it
        // was protected later (RELRO), is in writable segments.
        unsafe { libc::madvise(pages.start as *mut c_void, pages.len(), libc::MADV_DONTNEED) };
    }
}

/// Returns the program's segments that are not writable, in whole pages.
#[expect(
    unsafe_code,
    reason = "the C library's list of loaded objects is only reachable through a callback"
)]
fn unwritten_pages() -> Vec<Range<usize>> {
    let mut found = Vec::new();
    // SAFETY: `visit` matches the callback's type, and `found` outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut found).cast()) };
    found
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
    // SAFETY: the C library passes a valid `info`, whose headers exist as long as the program runs,
    // and `data` is the list of `unwritten_pages`.
    let (found, base, headers) = unsafe {
        let info = &*info;
        let headers = std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum));
        (
            &mut *data.cast::<Vec<Range<usize>>>(),
            info.dlpi_addr as usize,
            headers,
        )
    };
    let segments: Vec<Segment> = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD)
        .map(|header| {
            let start = base + header.p_vaddr as usize;
            Segment {
                range: start..start + header.p_memsz as usize,
                is_writable: header.p_flags & libc::PF_W != 0,
            }
        })
        .collect();
    found.extend(whole_pages(&segments, PAGE));
    1
}

/// The smallest page size. Where pages are larger, the kernel refuses other multiples, and nothing
/// is released.
const PAGE: usize = 4096;

/// A segment of the program as it is mapped.
struct Segment {
    range: Range<usize>,
    is_writable: bool,
}

/// Returns the pages that belong only to segments that are not writable.
fn whole_pages(segments: &[Segment], page: usize) -> Vec<Range<usize>> {
    let first = |at: usize| at / page * page;
    let is_shared = |start: usize| {
        let writable = segments
            .iter()
            .filter(|segment| segment.is_writable && !segment.range.is_empty());
        writable
            .map(|segment| first(segment.range.start)..segment.range.end)
            .any(|range| range.contains(&start))
    };
    let mut all = Vec::new();
    for segment in segments.iter().filter(|segment| !segment.is_writable) {
        let (mut start, mut end) = (
            first(segment.range.start),
            segment.range.end.next_multiple_of(page),
        );
        // A page that two segments share is kept.
        if is_shared(start) {
            start += page;
        }
        if end > start && is_shared(end - page) {
            end -= page;
        }
        if end > start {
            all.push(start..end);
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(segments: &[(Range<usize>, bool)], expected: &[(usize, usize)]) {
        let segments: Vec<Segment> = segments
            .iter()
            .map(|(range, is_writable)| Segment {
                range: range.clone(),
                is_writable: *is_writable,
            })
            .collect();
        let found: Vec<(usize, usize)> = whole_pages(&segments, 0x1000)
            .iter()
            .map(|range| (range.start, range.end))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_pages_that_are_not_writable_are_released() {
        check(
            &[
                (0..0x2345, false),
                (0x3345..0x5000, false),
                (0x6000..0x6100, true),
            ],
            &[(0, 0x3000), (0x3000, 0x5000)],
        );
        // Data begins in the page in which text ends, or ends in the page in which more text
        // begins.
        check(
            &[(0..0x2345, false), (0x2345..0x3000, true)],
            &[(0, 0x2000)],
        );
        check(
            &[(0x1000..0x1800, true), (0x1800..0x4000, false)],
            &[(0x2000, 0x4000)],
        );
        check(
            &[
                (0x1000..0x1200, false),
                (0x1200..0x1800, true),
                (0x1800..0x2000, false),
            ],
            &[],
        );
        check(
            &[(0x1000..0x1000, true), (0x1000..0x2000, false)],
            &[(0x1000, 0x2000)],
        );
        check(&[], &[]);
    }

    /// The program's constants read the same before and after, and its written data stays.
    #[test]
    fn the_program_runs_on_unchanged() {
        static CONSTANT: [u8; 3 * PAGE] = [7; 3 * PAGE];
        static WRITTEN: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        WRITTEN.store(5, std::sync::atomic::Ordering::Relaxed);
        let pages = unwritten_pages();
        assert!(
            pages
                .iter()
                .any(|range| range.contains(&(add_one as *const () as usize))),
            "the text is among them: {pages:x?}"
        );
        assert!(
            !pages
                .iter()
                .any(|range| range.contains(&(&raw const WRITTEN as usize))),
            "what is written is not: {pages:x?}"
        );
        release_program_pages();
        assert!(
            std::hint::black_box(&CONSTANT)
                .iter()
                .all(|&byte| byte == 7)
        );
        assert_eq!(
            (
                WRITTEN.load(std::sync::atomic::Ordering::Relaxed),
                add_one(3)
            ),
            (5, 4)
        );
    }

    #[inline(never)]
    fn add_one(n: u64) -> u64 {
        std::hint::black_box(n) + 1
    }
}
