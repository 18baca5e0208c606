use std::fs::File;
use std::io::BufRead;
use std::io::BufReader;
use std::io::Read as _;
use std::io::Seek as _;
use std::sync::atomic::AtomicBool;

use nix::sys::stat::FileStat;

use super::MAX_OUTPUT;
use super::Workspace;
use super::detected_encoding::DetectedEncoding;
use super::edit_file::MAX_BYTES;
use super::encoded_text::EncodedText;
use super::invalid;
use super::mark::MarkingReader;
use super::mark::read_on;
use super::page;
use super::page::LineRange;
use super::page::Page;
use super::page::PageResult;
use super::seen::SeenFiles;
use super::stop::Stop;
use super::stop::Stoppable;
use podbay_wire::BytesPath;
use podbay_wire::Encoding;
use podbay_wire::Fault;
use podbay_wire::FileText;
use podbay_wire::Image;
use podbay_wire::ImageKind;
use podbay_wire::Mark;
use podbay_wire::Read;
use podbay_wire::ReadFile;
use podbay_wire::message::Data;
use podbay_wire::shown_text;

/// How far a file is searched for NUL bytes; git and ripgrep look about as far.
pub(super) const SNIFFED: usize = 8 * 1024;

/// Description of a file with zero bytes and no better known type.
pub(super) const BINARY: &str = "binary file";

/// Largest image, in bytes: models scale images down anyway, and it must fit a frame.
const MAX_IMAGE: u64 = 4 * 1024 * 1024;

/// Most files one call reads through a cursor.
const MAX_FILES: u32 = 20;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &ReadFile,
    stop: &AtomicBool,
) -> Result<Read, Fault> {
    let stop = &Stop::new(stop, None);
    let n_bytes = usize::try_from(call.max_bytes)
        .unwrap_or(MAX_OUTPUT)
        .clamp(1, MAX_OUTPUT);
    if call.limit == 0 {
        return Err(invalid("limit", "must be at least 1"));
    }
    let wanted = LineRange {
        first_line: call.offset.max(1),
        n_lines: call.limit,
        n_bytes,
    };
    match (&call.path, &call.cursor) {
        (Some(path), None) => {
            let file = read(workspace, seen, path, call.protected, wanted, stop)?;
            Ok(Read {
                files: vec![file],
                remaining: 0,
                memos: Vec::new(),
            })
        }
        (None, Some(cursor)) => several(workspace, seen, cursor, call, wanted, stop),
        (Some(_), Some(_)) => Err(invalid("from_cursor", "cannot be given together with path")),
        (None, None) => Err(invalid("path", "is missing; name a file or give a cursor")),
    }
}

/// Returns an image as it is, where images are wanted and the file is one.
pub(super) fn image(workspace: &Workspace, call: &ReadFile) -> Result<Option<Image>, Fault> {
    let (true, Some(path), None) = (call.images, &call.path, &call.cursor) else {
        return Ok(None);
    };
    let (mut file, stat) = workspace.root.open_file(path)?;
    let failed = |error: std::io::Error| Fault::Io {
        doing: format!("read {path}"),
        problem: error.to_string(),
    };
    let mut data = Vec::new();
    (&mut file)
        .take(SNIFFED as u64)
        .read_to_end(&mut data)
        .map_err(failed)?;
    let Some(kind) = image_kind(&data) else {
        return Ok(None);
    };
    workspace.root.refuse_secret(path, &file, call.protected)?;
    file.take((MAX_IMAGE + 1).saturating_sub(data.len() as u64))
        .read_to_end(&mut data)
        .map_err(failed)?;
    if data.len() as u64 > MAX_IMAGE {
        return Err(Fault::TooLarge {
            path: path.clone(),
            bytes: (stat.st_size as u64).max(data.len() as u64),
            limit: MAX_IMAGE,
        });
    }
    Ok(Some(Image {
        path: workspace.root.relative(path)?,
        kind,
        data: Data(data),
    }))
}

fn image_kind(start: &[u8]) -> Option<ImageKind> {
    match binary_kind(start)? {
        "PNG image" => Some(ImageKind::Png),
        "JPEG image" => Some(ImageKind::Jpeg),
        "GIF image" => Some(ImageKind::Gif),
        "WebP image" => Some(ImageKind::Webp),
        _ => None,
    }
}

/// Reads the next files of a cursor, each from its first line, until their number or the bytes are
/// used up.
fn several(
    workspace: &Workspace,
    seen: &SeenFiles,
    cursor: &str,
    call: &ReadFile,
    wanted: LineRange,
    stop: &Stop<'_>,
) -> Result<Read, Fault> {
    let mut unread = workspace
        .cursors
        .take(cursor, call.max_files.clamp(1, MAX_FILES) as usize)?;
    unread.reverse();
    let mut files = Vec::new();
    let mut n_bytes = wanted.n_bytes;
    while n_bytes > 0 {
        let Some(path) = unread.pop() else { break };
        match read(
            workspace,
            seen,
            &path,
            call.protected,
            LineRange {
                first_line: 1,
                n_bytes,
                ..wanted
            },
            stop,
        ) {
            Ok(file) => {
                n_bytes = n_bytes.saturating_sub(file.text.len());
                files.push(file);
            }
            Err(Fault::Cancelled) => {
                unread.push(path);
                unread.reverse();
                workspace.cursors.give_back(cursor, unread);
                return Err(Fault::Cancelled);
            }
            // One missing file does not spoil the others.
            Err(fault) => files.push(FileText {
                fault: Some(fault),
                ..nothing(path)
            }),
        }
    }
    unread.reverse();
    let remaining = workspace.cursors.give_back(cursor, unread);
    Ok(Read {
        files,
        remaining: remaining as u32,
        memos: Vec::new(),
    })
}

fn read(
    workspace: &Workspace,
    seen: &SeenFiles,
    path: &BytesPath,
    protected: bool,
    wanted: LineRange,
    stop: &Stop<'_>,
) -> Result<FileText, Fault> {
    let (file, stat) = workspace.root.open_file(path)?;
    let real = workspace.root.refuse_secret(path, &file, protected)?;
    let size = stat.st_size as u64;
    let (found, encoding, mark) = pages(path, &file, &stat, wanted, stop)?;
    let page = match found {
        PageResult::Page(page) => page,
        PageResult::BehindTheEnd(n_lines) => {
            let problem = format!(
                "line {} is behind the end; {path} has {n_lines} lines",
                wanted.first_line
            );
            return Err(invalid("offset", problem));
        }
    };
    let Page {
        text,
        n_lines,
        total_lines,
        more,
        cut_lines,
    } = page;
    let (text, encoding) = match String::from_utf8(text) {
        Ok(text) => (text, encoding),
        Err(error) => (shown_text(error.as_bytes()).into_owned(), Encoding::Lossy),
    };
    // A truncated line was not shown.
    let (n_shown, more_follows) = if cut_lines > 0 {
        (0, true)
    } else {
        (n_lines, more)
    };
    seen.share(real.as_bytes(), &stat);
    seen.read(real, mark, wanted.first_line, n_shown, more_follows);
    let path = workspace.root.relative(path)?;
    Ok(FileText {
        text,
        first_line: wanted.first_line,
        n_lines,
        total_lines,
        bytes: size,
        more,
        cut_lines,
        encoding,
        ..nothing(path)
    })
}

/// Detects the kind of text and reads a page of it; also returns its encoding and the mark of the
/// whole file.
fn pages(
    path: &BytesPath,
    file: &File,
    stat: &FileStat,
    wanted: LineRange,
    stop: &Stop<'_>,
) -> Result<(PageResult, Encoding, Mark), Fault> {
    let size = stat.st_size as u64;
    let failed = |error: std::io::Error| {
        if stop.is_cancelled() {
            return Fault::Cancelled;
        }
        Fault::Io {
            doing: format!("read {path}"),
            problem: error.to_string(),
        }
    };
    let mut reader = BufReader::with_capacity(
        64 * 1024,
        MarkingReader::new(Stoppable::new(file, stop), stat),
    );
    let start = reader.fill_buf().map_err(failed)?;
    let start = &start[..start.len().min(SNIFFED)];
    let has_returns_alone = start.contains(&b'\r') && !start.contains(&b'\n');
    if let Some(encoding) = DetectedEncoding::wide(start) {
        if size > MAX_BYTES {
            return Err(Fault::TooLarge {
                path: path.clone(),
                bytes: size,
                limit: MAX_BYTES,
            });
        }
        let is_marked_utf16 = matches!(encoding, DetectedEncoding::Utf16(_))
            && matches!(start, [0xff, 0xfe, ..] | [0xfe, 0xff, ..]);
        let mut bytes = Vec::new();
        (&mut reader)
            .take(MAX_BYTES)
            .read_to_end(&mut bytes)
            .map_err(failed)?;
        let found = page_of(&EncodedText::of(&bytes), wanted).map_err(failed)?;
        read_on(&mut reader).map_err(failed)?;
        let mark = reader.into_inner().finish(file).map_err(failed)?;
        let encoding = if is_marked_utf16 {
            Encoding::Utf16
        } else {
            Encoding::Guessed(encoding.name().to_owned())
        };
        return Ok((found, encoding, mark));
    }
    if let Some(kind) = binary_kind(start) {
        return Err(Fault::Binary {
            path: path.clone(),
            bytes: size,
            kind: kind.into(),
        });
    }
    let mut size = size;
    if start.starts_with(UTF8_MARK) {
        reader.consume(UTF8_MARK.len());
        size = size.saturating_sub(UTF8_MARK.len() as u64);
    }
    let found = page::read(&mut reader, size, wanted).map_err(failed)?;
    read_on(&mut reader).map_err(failed)?;
    let mark = reader.into_inner().finish(file).map_err(failed)?;
    // A file without line feeds may still have lines, also where the first wanted one is behind its
    // end.
    let is_odd =
        has_returns_alone || matches!(&found, PageResult::Page(page) if may_be_encoded(&page.text));
    let other = if is_odd && stat.st_size as u64 <= MAX_BYTES {
        in_encoding(file, wanted).map_err(failed)?
    } else {
        None
    };
    let (found, encoding) = other.unwrap_or((found, Encoding::Utf8));
    Ok((found, encoding, mark))
}

/// Returns whether the bytes may not be the text.
fn may_be_encoded(text: &[u8]) -> bool {
    !text.is_ascii()
        || DetectedEncoding::may_switch(text)
        || memchr::memmem::find(text, b"~~").is_some()
}

/// Reads a page of a file in another encoding, detected from the whole file as for an edit. `None`:
/// it is UTF-8.
fn in_encoding(
    mut file: &File,
    wanted: LineRange,
) -> std::io::Result<Option<(PageResult, Encoding)>> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.take(MAX_BYTES).read_to_end(&mut bytes)?;
    let encoded_text = EncodedText::of(&bytes);
    if encoded_text.is_plain() {
        return Ok(None);
    }
    let utf8 = if encoded_text.is_broken() {
        Encoding::Lossy
    } else {
        Encoding::Utf8
    };
    Ok(Some((
        page_of(&encoded_text, wanted)?,
        encoded_text.name().map_or(utf8, Encoding::Guessed),
    )))
}

fn page_of(encoded_text: &EncodedText<'_>, wanted: LineRange) -> std::io::Result<PageResult> {
    let text = encoded_text.text.as_bytes();
    let text = text.strip_prefix(UTF8_MARK).unwrap_or(text);
    page::read(text, text.len() as u64, wanted)
}

/// Names the type of a file that should not be read as text.
pub(super) fn binary_kind(start: &[u8]) -> Option<&'static str> {
    let kind = match start {
        [0x89, b'P', b'N', b'G', ..] if is_png(start) => "PNG image",
        [0x89, b'P', b'N', b'G', ..] => "PNG image with a broken header",
        [0xff, 0xd8, 0xff, ..] => "JPEG image",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] if is_text(start) => return None,
        [
            b'G',
            b'I',
            b'F',
            b'8',
            b'7' | b'9',
            b'a',
            low_x,
            high_x,
            low_y,
            high_y,
            _,
            _,
            _,
            ..,
        ] if (low_x | high_x) != 0 && (low_y | high_y) != 0 => "GIF image",
        [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => "GIF image with a broken header",
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'E',
            b'B',
            b'P',
            ..,
        ] => "WebP image",
        [b'%', b'P', b'D', b'F', b'-', ..] => "PDF document",
        [b'P', b'K', 3, 4, ..] => "ZIP archive (or a format based on it)",
        [0x1f, 0x8b, ..] => "gzip archive",
        [0x7f, b'E', b'L', b'F', ..] => "program or library",
        _ if start.starts_with(b"SQLite format 3\0") => "SQLite database",
        _ if start.contains(&0) && DetectedEncoding::wide(start).is_none() => BINARY,
        _ => return None,
    };
    Some(kind)
}

/// Returns whether the signature and the whole first chunk of a PNG are present, with a valid size.
fn is_png(start: &[u8]) -> bool {
    start.starts_with(b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR")
        && start.len() >= 33
        && start[16..24]
            .chunks_exact(4)
            .all(|side| side.iter().any(|byte| *byte != 0))
}

/// Returns whether a file begins like text; its last character may be incomplete.
fn is_text(start: &[u8]) -> bool {
    !start.contains(&0)
        && std::str::from_utf8(start).map_or_else(|error| error.error_len().is_none(), |_| true)
}

fn nothing(path: BytesPath) -> FileText {
    FileText {
        path,
        text: String::new(),
        first_line: 1,
        n_lines: 0,
        total_lines: None,
        bytes: 0,
        more: false,
        cut_lines: 0,
        encoding: Encoding::Utf8,
        fault: None,
    }
}
