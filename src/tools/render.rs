use std::fmt::Write;

use super::Options;
use super::ToolSet;
use super::dispatch::CommandOutput;
use super::git_hint;
use super::limit_message::limit_message;
use super::mask_hint;
use super::omissions;
use super::render_changed::render_changed;
use super::render_changed::render_tree;
use super::render_denied;
use super::render_session::render_background;
use super::render_session::render_environment;
use super::screen;
use super::screen::ScreenText;
use super::screen::shown;
use podbay_wire::CommandEnded;
use podbay_wire::DirectoryListing;
use podbay_wire::Edited;
use podbay_wire::Encoding;
use podbay_wire::End;
use podbay_wire::EntryKind;
use podbay_wire::FileText;
use podbay_wire::FoundFiles;
use podbay_wire::GrepOutput;
use podbay_wire::LeftOut;
use podbay_wire::Matches;
use podbay_wire::MeantName;
use podbay_wire::Output;
use podbay_wire::Read;
use podbay_wire::n_bytes;
use podbay_wire::size;

/// How much of the model's context window one result may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Size of the window in tokens; assumed where the server does not tell it.
    pub tokens: u64,
    pub percent: u8,
}

/// Characters per token, as an estimate.
const CHARACTERS_PER_TOKEN: u64 = 4;
/// Most notes about lookalike names in one result.
const MOST_NAMES: usize = 20;
/// Characters that any result may have, however small the window.
const LEAST: usize = 800;

impl Window {
    /// Returns the most characters one result may have.
    pub fn characters(self) -> usize {
        let share = self
            .tokens
            .saturating_mul(CHARACTERS_PER_TOKEN)
            .saturating_mul(u64::from(self.percent))
            / 100;
        usize::try_from(share).unwrap_or(usize::MAX).max(LEAST)
    }
}

/// The note for output with escaped bytes.
pub(super) const BYTES: &str = "bytes that are not UTF-8 are shown by their numbers, such as \\xe9";

/// A result as text, before truncation.
pub(super) struct Rendered {
    /// The long part; truncated in its middle.
    pub body: String,
    /// Never truncated: how the call ended, how to continue.
    pub footer: String,
    /// Whether the call succeeded.
    pub ok: bool,
    /// Whether to store the whole body as an artifact, however much of it is shown.
    pub keep: bool,
    /// Bytes of the output that are not even in the body; a mark stands in their place.
    pub unkept: u64,
}

impl Rendered {
    /// A result of a host tool.
    pub(super) fn said(said: Result<String, String>) -> Self {
        let ok = said.is_ok();
        Self {
            body: said.unwrap_or_else(|problem| problem),
            footer: String::new(),
            ok,
            keep: false,
            unkept: 0,
        }
    }

    /// Adds a line to the footer.
    pub(super) fn note(&mut self, text: &str) {
        if !self.footer.is_empty() {
            self.footer.push('\n');
        }
        let _ = write!(self.footer, "[{text}]");
    }
}

/// Renders a call's output for the model.
pub(super) fn render(
    output: &Output,
    printed: &CommandOutput,
    options: &Options,
    most: usize,
) -> Rendered {
    let mut rendered = render_output(output, printed, options, most);
    for MeantName { given, found } in printed.meant.iter().take(MOST_NAMES) {
        rendered.note(&format!("there is no {given}: {found} was taken, whose name differs only in letters that look alike"));
    }
    rendered
}

fn render_output(
    output: &Output,
    printed: &CommandOutput,
    options: &Options,
    most: usize,
) -> Rendered {
    let text = |body: String| Rendered {
        body,
        footer: String::new(),
        ok: true,
        keep: false,
        unkept: 0,
    };
    match output {
        Output::Read(read) => render_read(read, most),
        Output::Image(image) => text(format!(
            "{}: {}, {} bytes; it is shown in the next message",
            image.path,
            image.kind.media_type(),
            image.data.0.len()
        )),
        Output::Written(written) => {
            let verb = if written.created {
                "created"
            } else if written.appended {
                "appended to"
            } else {
                "replaced"
            };
            let notes: String = written
                .notes
                .iter()
                .map(|note| format!("; {note}"))
                .collect();
            text(format!(
                "{verb} {} ({}){notes}",
                written.path,
                n_bytes(written.bytes)
            ))
        }
        Output::Edited(edited) => text(render_edited(edited)),
        Output::Changed(changed) => text(render_changed(changed)),
        Output::Tree(listing) => render_tree(listing),
        Output::Listing(listing) => render_listing(listing),
        Output::Files(files) => render_files(files, options.set),
        Output::Matches(matches) => render_matches(matches, options.set),
        Output::Command(command) => render_command(command, printed, options),
        Output::Environment(environment) => text(render_environment(environment)),
        Output::Moved(moved) => text(format!(
            "commands run in {} from now on; other tools continue to name paths from the project's folder",
            moved.path
        )),
        Output::Placed(placed) => text(format!(
            "{} files ({}) are in {}",
            placed.n_files,
            n_bytes(placed.bytes),
            placed.path
        )),
        Output::Background(background) => render_background(background),
        Output::Fault(fault) => Rendered {
            ok: false,
            ..text(fault.to_string())
        },
        // Unpacked by the caller.
        Output::Meant { output, .. } => render_output(output, printed, options, most),
    }
}

/// Returns the mark for bytes that were not kept.
fn unkept(bytes: u64) -> String {
    format!("\n[… {} not kept …]\n", n_bytes(bytes))
}

/// Truncates the body in its middle so that it and the footer fit; says how much is missing and
/// where to read it.
pub(super) fn fit(rendered: &Rendered, most: usize, artifact: Option<&str>) -> String {
    let mark = unkept(rendered.unkept);
    let kept = artifact.map(|id| match rendered.unkept {
        0 => format!("all of it: read_file with path \"artifact:{id}\""),
        bytes => format!(
            "{} of the output were not kept, the others: read_file with path \"artifact:{id}\"",
            n_bytes(bytes)
        ),
    });
    let mut out;
    if rendered.body.len() <= most {
        out = rendered.body.clone();
    } else {
        let head = rendered.body.floor_char_boundary(most * 3 / 5);
        let tail = rendered
            .body
            .ceil_char_boundary(rendered.body.len() - most * 2 / 5);
        // Cut at line ends, where the lines are short enough.
        let head = rendered.body[..head]
            .rfind('\n')
            .filter(|&at| at > head / 2)
            .map_or(head, |at| at + 1);
        let tail = rendered.body[tail..]
            .find('\n')
            .filter(|&at| at < most / 5)
            .map_or(tail, |at| tail + at + 1);
        let cut = &rendered.body[head..tail];
        // The bytes behind the mark are missing too.
        let missing = if rendered.unkept > 0 && cut.contains(&mark) {
            rendered
                .unkept
                .saturating_add((cut.len() - mark.len()) as u64)
        } else {
            cut.len() as u64
        };
        out = rendered.body[..head].to_owned();
        if !out.ends_with('\n') {
            out.push('\n');
        }
        let remedy = kept
            .as_deref()
            .map_or_else(String::new, |kept| format!("; {kept}"));
        let _ = writeln!(out, "[… {missing} bytes cut here{remedy} …]");
        out.push_str(&rendered.body[tail..]);
    }
    if rendered.footer.is_empty() {
        return out;
    }
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    out.push_str(&rendered.footer);
    out
}

fn render_read(read: &Read, most: usize) -> Rendered {
    let mut body = String::new();
    let mut footer = Vec::new();
    let many = read.files.len() > 1;
    let mut room = most;
    for file in &read.files {
        if many {
            let _ = writeln!(body, "== {} ==", file.path);
        }
        if let Some(fault) = &file.fault {
            let _ = writeln!(body, "{fault}");
            continue;
        }
        let before = body.len();
        let shown = number_lines(&mut body, file, room);
        room = room.saturating_sub(body.len() - before);
        footer.extend(notes(file, shown, many));
    }
    if read.remaining > 0 {
        footer.push(format!(
            "{} more files; call read_file again with the same from_cursor",
            read.remaining
        ));
    }
    let footer = if footer.is_empty() {
        String::new()
    } else {
        format!("[{}]", footer.join("; "))
    };
    Rendered {
        body,
        footer,
        ok: read.files.iter().any(|file| file.fault.is_none()),
        keep: false,
        unkept: 0,
    }
}

/// Writes numbered lines until the room is used; returns how many. A page is truncated at its end,
/// never in its middle: the rest is requested by line number.
fn number_lines(body: &mut String, file: &FileText, room: usize) -> u64 {
    let mut shown = 0;
    let begin = body.len();
    for line in file.text.split_inclusive('\n') {
        let line = line.strip_suffix('\n').unwrap_or(line);
        let line = line.strip_suffix('\r').unwrap_or(line);
        // The guest's numbers are not trusted; they are only shown.
        let number = file.first_line.saturating_add(shown);
        if shown > 0 && body.len() - begin + line.len() + 8 > room {
            break;
        }
        let end = line.floor_char_boundary(room);
        let _ = writeln!(body, "{number}\t{}", &line[..end]);
        shown += 1;
    }
    shown
}

fn notes(file: &FileText, shown: u64, named: bool) -> Vec<String> {
    let mut notes = Vec::new();
    if file.bytes == 0 {
        notes.push("the file is empty".to_owned());
    }
    let next = file.first_line.saturating_add(shown);
    if shown < file.n_lines || file.more {
        let of = file.total_lines.map_or_else(
            || format!("of a file of {}", n_bytes(file.bytes)),
            |total| format!("of {total}"),
        );
        notes.push(format!(
            "lines {}-{} {of}; continue with offset {next}",
            file.first_line,
            next.saturating_sub(1)
        ));
    }
    if file.cut_lines > 0 {
        let lines = if file.cut_lines == 1 {
            "line was"
        } else {
            "lines were"
        };
        notes.push(format!("{} long {lines} cut", file.cut_lines));
    }
    match &file.encoding {
        Encoding::Utf8 => {}
        Encoding::Lossy => notes.push(BYTES.to_owned()),
        Encoding::Utf16 => notes.push("the file is UTF-16".to_owned()),
        Encoding::Guessed(encoding) => notes.push(format!(
            "the file is not UTF-8 and is shown as {encoding}, which its bytes look like"
        )),
    }
    let (n_returns, n_newlines) = (
        file.text.matches("\r\n").count(),
        file.text.matches('\n').count(),
    );
    if n_returns > 0 && n_returns == n_newlines {
        notes.push("lines end in CRLF".to_owned());
    } else if n_returns > 0 {
        notes.push(format!(
            "line ends are mixed: {n_returns} of these {n_newlines} are CRLF, the others LF"
        ));
    }
    if file.total_lines.is_some()
        && !file.more
        && shown == file.n_lines
        && !file.text.is_empty()
        && !file.text.ends_with('\n')
    {
        notes.push("no newline at the end".to_owned());
    }
    if named && !notes.is_empty() {
        notes[0] = format!("{}: {}", file.path, notes[0]);
    }
    notes
}

fn render_edited(edited: &Edited) -> String {
    let verb = if edited.created { "created" } else { "edited" };
    let places = if edited.replaced == 1 {
        "1 place".to_owned()
    } else {
        format!("{} places", edited.replaced)
    };
    let mut text = format!("{verb} {} ({places})", edited.path);
    if !edited.tolerant.is_empty() {
        text.push_str("; old_string was found only by ignoring white space: check the result");
    }
    if !edited.alike.is_empty() {
        text.push_str("; old_string was found only by letters that look alike: check the result");
    }
    if !edited.unescaped.is_empty() {
        text.push_str("; old_string was found only without its backslashes, which were one level too many: check the result");
    }
    for note in &edited.notes {
        let _ = write!(text, "; {note}");
    }
    if !edited.diff.is_empty() {
        let _ = write!(text, "\n{}", edited.diff.trim_end());
    }
    text
}

fn render_listing(listing: &DirectoryListing) -> Rendered {
    let mut body = String::new();
    for entry in &listing.entries {
        let _ = match (entry.kind, entry.bytes, &entry.target) {
            (EntryKind::Directory, ..) => writeln!(body, "{}/", entry.path),
            (EntryKind::Link, _, Some(target)) => writeln!(body, "{} -> {target}", entry.path),
            (EntryKind::Other, ..) => writeln!(body, "{} (special file)", entry.path),
            (_, Some(bytes), _) => writeln!(body, "{} ({})", entry.path, size(bytes)),
            _ => writeln!(body, "{}", entry.path),
        };
    }
    if listing.entries.is_empty() {
        body.push_str(if listing.left_out.is_empty() {
            "(nothing in this folder)"
        } else {
            "(nothing in this folder that is shown)"
        });
    }
    Rendered {
        body,
        footer: omitted(listing),
        ok: true,
        keep: false,
        unkept: 0,
    }
}

/// Says how much of a folder is not shown.
pub(super) fn omitted(listing: &DirectoryListing) -> String {
    let more = match (listing.truncated, listing.omitted) {
        (false, _) => None,
        (true, Some(n)) => Some(format!(
            "{n} more entries; list a folder in it, or use glob"
        )),
        (true, None) => Some("more entries; list a folder in it, or use glob".to_owned()),
    };
    let is_short = listing.entries.is_empty() || listing.truncated;
    let left_out = omissions::summary(&listing.left_out).filter(|_| is_short);
    let left_out = left_out.map(|left_out| {
        format!("not shown: {left_out}; list_directory with show_hidden true shows what is hidden, and of an ignored folder what is in it")
    });
    bracketed(
        &more
            .into_iter()
            .chain(left_out)
            .chain(unreadable(listing.n_unreadable))
            .collect::<Vec<_>>(),
    )
}

/// Says how much was skipped because it could not be read.
fn unreadable(n: u32) -> Option<String> {
    (n > 0).then(|| format!("could not be read and is left out: {n} file(s) or folder(s)"))
}

fn render_files(files: &FoundFiles, set: ToolSet) -> Rendered {
    let mut body = String::new();
    for path in &files.paths {
        let _ = writeln!(body, "{path}");
    }
    let mut footer = Vec::new();
    if files.paths.is_empty() {
        body.push_str("no file matches");
    }
    footer.extend(files.notes.iter().cloned());
    if files.truncated {
        footer.push("more files match; narrow the pattern".to_owned());
    }
    if files.paths.is_empty() || files.truncated {
        footer.extend(unsearched(&files.left_out));
    }
    footer.extend(unreadable(files.n_unreadable));
    if let Some(cursor) = files
        .cursor
        .as_ref()
        .filter(|_| !files.paths.is_empty() && tells_of_cursors(set))
    {
        footer.push(format!("read them with read_file from_cursor \"{cursor}\""));
    }
    Rendered {
        body,
        footer: bracketed(&footer),
        ok: true,
        keep: false,
        unkept: 0,
    }
}

fn render_matches(matches: &Matches, set: ToolSet) -> Rendered {
    let mut body = String::new();
    for file in &matches.files {
        if file.binary {
            let _ = writeln!(body, "{}: binary file matches", file.path);
        } else if matches.output == GrepOutput::Content {
            let _ = writeln!(body, "{}", file.path);
            let mut last = None;
            for line in &file.lines {
                if last.is_some_and(|last| line.number.saturating_sub(1) > last)
                    && file.lines.iter().any(|line| !line.matched)
                {
                    body.push_str("--\n");
                }
                last = Some(line.number);
                let mark = if line.matched { ':' } else { '-' };
                let _ = writeln!(
                    body,
                    "{}{mark}{}",
                    line.number,
                    line.text.trim_end_matches(['\n', '\r'])
                );
            }
        } else if matches.output == GrepOutput::FilesOnly {
            let _ = writeln!(body, "{}", file.path);
        } else {
            let _ = writeln!(body, "{}: {}", file.path, file.count);
        }
    }
    let mut footer = Vec::new();
    if matches.files.is_empty() {
        // Files that were not searched may match.
        body.push_str(if matches.timed_out {
            "nothing was found so far"
        } else {
            "nothing matches"
        });
    }
    footer.extend(matches.hint.clone());
    if matches.files.is_empty() || matches.truncated {
        footer.extend(unsearched(&matches.left_out));
        if matches.n_binary > 0 {
            footer.push(format!(
                "binary, and not searched to the end: {} file(s); one that is named in path is",
                matches.n_binary
            ));
        }
        if matches.n_too_long > 0 {
            footer.push(format!(
                "with a line too long to be searched: {} file(s); bash has tools for such",
                matches.n_too_long
            ));
        }
    }
    if matches.timed_out {
        footer.push(
            "the search ran out of time, so there may be more; narrow the pattern or the path"
                .to_owned(),
        );
    } else if matches.truncated {
        footer.push("more matches; narrow the pattern or the path".to_owned());
    }
    if matches.n_protected > 0 {
        footer.push(format!(
            "not searched, because their names say that they hold secrets: {} file(s)",
            matches.n_protected
        ));
    }
    footer.extend(unreadable(matches.n_unreadable));
    if let Some(cursor) = matches
        .cursor
        .as_ref()
        .filter(|_| !matches.files.is_empty() && tells_of_cursors(set))
    {
        footer.push(format!(
            "read these files with read_file from_cursor \"{cursor}\""
        ));
    }
    Rendered {
        body,
        footer: bracketed(&footer),
        ok: true,
        keep: false,
        unkept: 0,
    }
}

/// Says what a search skipped, and how to include it.
fn unsearched(left_out: &LeftOut) -> Option<String> {
    omissions::summary(left_out).map(|left_out| {
        format!("not looked at: {left_out}; include_ignored true looks at them, too")
    })
}

/// Returns whether the set lists an argument for a cursor; the small set does not.
fn tells_of_cursors(set: ToolSet) -> bool {
    set != ToolSet::Small
}

fn bracketed(notes: &[String]) -> String {
    if notes.is_empty() {
        String::new()
    } else {
        format!("[{}]", notes.join("; "))
    }
}

/// Returns the output of a command, of which the middle may be missing. If the middle is part of
/// one line that is redrawn, only the line's last state is kept.
fn shown_in_parts(command: &CommandEnded, printed: &CommandOutput) -> ScreenText {
    let CommandOutput { head, tail, .. } = printed;
    if command.omitted_bytes == 0 {
        return if tail.is_empty() {
            shown(head)
        } else {
            shown(&[head.as_slice(), tail].concat())
        };
    }
    if let Some(at) = screen::redrawn_at(tail).filter(|_| command.omitted_in_line) {
        return shown(&[head.as_slice(), &tail[at..]].concat());
    }
    let (head, tail) = (shown(head), shown(tail));
    let text = head.text + &unkept(command.omitted_bytes) + &tail.text;
    ScreenText {
        text,
        has_bytes: head.has_bytes || tail.has_bytes,
    }
}

fn render_command(command: &CommandEnded, printed: &CommandOutput, options: &Options) -> Rendered {
    let ScreenText {
        text: mut body,
        has_bytes,
    } = shown_in_parts(command, printed);
    let mut notes = Vec::new();
    notes.extend(
        command
            .limit
            .map(|limit| limit_message(limit, command.culprit.as_ref())),
    );
    let ok = match command.end {
        End::Exited { code } => {
            if code != 0 || body.trim().is_empty() || !notes.is_empty() {
                notes.push(format!("exit code {code}"));
            }
            let hints = [mask_hint::hint(&body), git_hint::hint(&body)];
            notes.extend(
                hints
                    .into_iter()
                    .flatten()
                    .filter(|_| code != 0)
                    .map(str::to_owned),
            );
            code == 0
        }
        End::Signaled { signal } => {
            if command.limit.is_none() {
                notes.push(format!("killed by signal {signal}"));
            }
            false
        }
        End::Running { pid } => {
            notes.push(format!("it runs in the background as process {pid}"));
            true
        }
        End::Cancelled => {
            notes.push("cancelled".to_owned());
            false
        }
    };
    if command.n_survivors > 0 {
        let ended = match command.n_survivors {
            1 => "a process it had left running was killed".to_owned(),
            n => format!("{n} processes it had left running were killed"),
        };
        let remedy = match options.set {
            ToolSet::Small => "more_tools has start_background_process, which keeps one",
            ToolSet::Standard | ToolSet::Full => "use background to keep one",
        };
        notes.push(format!("{ended}; {remedy}"));
    }
    notes.extend(has_bytes.then(|| BYTES.to_owned()));
    notes.extend(command.denied.iter().map(render_denied::sentence));
    // On one line, so that the guest's text cannot imitate the lines about how the command ended.
    notes.extend(
        command
            .note
            .as_ref()
            .map(|note| note.replace(['\r', '\n'], " ")),
    );
    if body.trim().is_empty() {
        let said = if body.is_empty() {
            "(no output)"
        } else {
            "(no output but white space)"
        };
        said.clone_into(&mut body);
    }
    let keep = command.output_bytes > options.artifact_threshold.bytes();
    Rendered {
        body,
        footer: bracketed(&notes),
        ok: ok && command.limit.is_none(),
        keep,
        unkept: command.omitted_bytes,
    }
}

#[cfg(test)]
mod tests;
