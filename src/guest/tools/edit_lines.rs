use nix::errno::Errno;

use super::Workspace;
use super::edit_report::diff;
use super::encoded_text::EncodedText;
use super::invalid;
use super::save::Parents;
use super::save::TargetFile;
use super::seen::SeenFiles;
use super::transaction::read;
use podbay_wire::EditLines;
use podbay_wire::Edited;
use podbay_wire::Fault;
use podbay_wire::LineOperation;

/// Changes lines by number; each new line gets the line end of the one that it replaces, or of its
/// neighbours.
pub(super) fn run(
    workspace: &Workspace,
    seen: &SeenFiles,
    call: &EditLines,
) -> Result<Edited, Fault> {
    let path = &call.path;
    let _changing = workspace.changing();
    let place = TargetFile::find(&workspace.root, path, call.protected, Parents::MustExist)?;
    if !place.exists() {
        return Err(workspace.root.fault(path, Errno::ENOENT));
    }
    let (before, stat) = read(&place, path, true)?;
    let real = seen.real(&workspace.root, &place)?;
    let is_stale = seen.is_stale(&real, &before);
    seen.settle()?;
    if is_stale {
        return Err(Fault::Stale { path: path.clone() });
    }
    let encoded_text = EncodedText::of(&before);
    let text = change(encoded_text.text.as_bytes(), call)?;
    let after = encoded_text.edited(path, &text)?;
    if after == before {
        return Err(invalid("new_content", "is identical to the current text"));
    }
    place.save(&after, Some(&stat))?;
    seen.changed(&real, &before, &after);
    let shown = workspace.root.relative(path)?;
    let diff = diff(&shown.to_string(), encoded_text.text.as_bytes(), &text);
    Ok(Edited {
        path: shown,
        replaced: 1,
        created: false,
        tolerant: Vec::new(),
        unescaped: Vec::new(),
        alike: Vec::new(),
        notes: encoded_text.notes(),
        diff,
        memos: Vec::new(),
    })
}

/// Byte order mark at the start of a file: it belongs to no line and stays there.
const MARK: &str = "\u{feff}";

fn change(text: &[u8], call: &EditLines) -> Result<Vec<u8>, Fault> {
    let (mark, text) = match text.strip_prefix(MARK.as_bytes()) {
        Some(rest) => (MARK.as_bytes(), rest),
        None => (&b""[..], text),
    };
    let new = if mark.is_empty() {
        &call.new_content
    } else {
        call.new_content
            .strip_prefix(MARK)
            .unwrap_or(&call.new_content)
    };
    Ok([mark, &changed(text, new, call)?].concat())
}

fn changed(text: &[u8], content: &str, call: &EditLines) -> Result<Vec<u8>, Fault> {
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let n = lines.len();
    let is_insert = call.operation == LineOperation::Insert;
    let last = n + usize::from(is_insert);
    let number = |field: &str, line: u64| match usize::try_from(line) {
        Ok(0) => Err(invalid(field, "is 0; lines are counted from 1")),
        Ok(line) if line <= last => Ok(line),
        _ => Err(invalid(
            field,
            format!("is {line}, but the file has {n} lines; read it again"),
        )),
    };
    let start = number("start_line", call.start_line)? - 1;
    let end = if is_insert {
        start
    } else {
        number("end_line", call.end_line)?
    };
    if end < start {
        return Err(invalid("end_line", "comes before start_line"));
    }
    let end_of_line = |line: &&&[u8]| line.ends_with(b"\n");
    let near = lines[..start]
        .iter()
        .rev()
        .chain(&lines[start..])
        .find(end_of_line);
    let newline = near.map_or(&b"\n"[..], |line| line_end(line));
    let mut out: Vec<u8> = lines[..start].concat();
    let mut new: Vec<&str> = content.split('\n').collect();
    // The newline at the end belongs to the last line.
    if new.last() == Some(&"") {
        new.pop();
    }
    if !new.is_empty() && !out.is_empty() && !out.ends_with(b"\n") {
        out.extend_from_slice(newline);
    }
    // Each line has the end of the one that it replaces; additional ones that of the line before.
    let mut newline = newline;
    let mut replaced = lines[start..end].iter().filter(end_of_line);
    for line in &new {
        newline = replaced.next().map_or(newline, |line| line_end(line));
        out.extend_from_slice(line.strip_suffix('\r').unwrap_or(line).as_bytes());
        out.extend_from_slice(newline);
    }
    out.extend(lines[end..].concat());
    // A file without a final newline stays so where its end was replaced.
    let was_unended = !text.is_empty() && !text.ends_with(b"\n");
    if was_unended && end == n && !new.is_empty() && !content.ends_with('\n') {
        out.truncate(out.len() - newline.len());
    }
    Ok(out)
}

fn line_end(line: &[u8]) -> &'static [u8] {
    if line.ends_with(b"\r\n") {
        b"\r\n"
    } else {
        b"\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(text: &str, operation: LineOperation, line: u64, content: &str) -> String {
        let path = "a".into();
        let call = EditLines {
            path,
            operation,
            start_line: line,
            end_line: line,
            new_content: content.to_owned(),
            protected: false,
            known: None,
        };
        String::from_utf8(change(text.as_bytes(), &call).expect("changed")).expect("text")
    }

    #[test]
    fn the_byte_order_mark_is_kept() {
        for (text, operation, content, expected) in [
            (
                "\u{feff}one\ntwo\n",
                LineOperation::Insert,
                "top\n",
                "\u{feff}top\none\ntwo\n",
            ),
            (
                "\u{feff}one\ntwo\n",
                LineOperation::Replace,
                "1\n",
                "\u{feff}1\ntwo\n",
            ),
            (
                "\u{feff}one\n",
                LineOperation::Replace,
                "\u{feff}1\n",
                "\u{feff}1\n",
            ),
            (
                "\u{feff}one\ntwo\n",
                LineOperation::Delete,
                "",
                "\u{feff}two\n",
            ),
            (
                "one\n",
                LineOperation::Insert,
                "\u{feff}top\n",
                "\u{feff}top\none\n",
            ),
        ] {
            assert_eq!(changed(text, operation, 1, content), expected);
        }
    }

    #[test]
    fn a_line_takes_the_line_end_of_the_one_it_replaces() {
        for (text, operation, content, expected) in [
            (
                "a\r\nb\nc\r\n",
                LineOperation::Replace,
                "B\n",
                "a\r\nB\nc\r\n",
            ),
            ("a\nb\r\nc\n", LineOperation::Replace, "B\n", "a\nB\r\nc\n"),
            (
                "a\nb\r\nc\n",
                LineOperation::Replace,
                "B\n2",
                "a\nB\r\n2\r\nc\n",
            ),
            ("a\r\nb", LineOperation::Replace, "B", "a\r\nB"),
            ("a\r\nb", LineOperation::Replace, "B\n", "a\r\nB\r\n"),
            ("a\r\nb\n", LineOperation::Insert, "x\n", "a\r\nx\r\nb\n"),
        ] {
            assert_eq!(changed(text, operation, 2, content), expected, "{text:?}");
        }
    }
}
