//! Reads the project's instructions for agents, and reports which of them are not followed.

use super::Options;
use super::invisible_characters::VisibleText;
use super::prompt::WITHIN;
use super::unfollowed_instructions;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_tools::memos;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::INSTRUCTIONS;
use podbay_wire::Memo;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::Output;
use podbay_wire::ReadFile;
use podbay_wire::n_bytes;
use tokio_util::sync::CancellationToken;

/// Files at the top of a project that other agents follow, and that are not read here.
const NOT_READ: [&str; 5] = [
    "GEMINI.md",
    "AGENT.md",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
];

/// The project's instructions, as shown to the model.
#[derive(Default)]
pub(super) struct Instructions {
    pub(super) text: String,
    /// The files that were read, by name.
    pub(super) files: Vec<&'static str>,
    pub(super) seen: Vec<Memo>,
    pub(super) warnings: Vec<String>,
}

/// Reads `PODBAY.md` and the first of the other files, whichever agent it was written for. Together
/// they take at most `most` bytes, half of which `PODBAY.md` gets if there is another one. Files
/// that are not followed, or only partly, cause warnings.
pub(super) async fn instructions(
    pipeline: &Pipeline,
    options: &Options,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Instructions, sandbox::Error> {
    let mut told = Instructions::default();
    let own = read(pipeline, options, INSTRUCTIONS, &mut told, most, cancel).await?;
    let mut other: Option<(&'static str, Text)> = None;
    for name in OTHER_INSTRUCTIONS {
        if let Some((in_force, _)) = &other {
            let why =
                format!("{in_force} is used instead, and only the first of these files is read");
            report_unused(pipeline, options, name, &mut told, &why, cancel).await?;
        } else if let Some(text) = read(pipeline, options, name, &mut told, most, cancel).await? {
            other = Some((name, text));
        }
    }
    let in_force: Vec<&'static str> = own
        .iter()
        .map(|_| INSTRUCTIONS)
        .chain(other.iter().map(|(name, _)| *name))
        .collect();
    let why = match in_force.as_slice() {
        [] => "put instructions into AGENTS.md or PODBAY.md".to_owned(),
        names => format!("{} is used instead", names.join(" and ")),
    };
    for name in NOT_READ {
        report_unused(pipeline, options, name, &mut told, &why, cancel).await?;
    }
    let followed: Vec<&BytesPath> = told.seen.iter().filter_map(real).collect();
    let unfollowed = unfollowed_instructions::warning(pipeline, &followed, cancel).await?;
    told.warnings.extend(unfollowed);
    let room = most
        - own.as_ref().map_or(0, |text| {
            text.text
                .len()
                .min(if other.is_some() { most / 2 } else { most })
        });
    let own = own.map(|text| {
        (
            INSTRUCTIONS,
            text.cut(if other.is_some() { most / 2 } else { most }),
        )
    });
    let other = other.map(|(name, text)| (name, text.cut(room)));
    told.files = in_force;
    let mut parts = Vec::new();
    for (name, (text, is_cut)) in other.into_iter().chain(own) {
        if is_cut {
            told.warnings.push(format!(
                "{name} is too long: only the first {} of it are followed",
                n_bytes(text.len() as u64)
            ));
        }
        parts.push(format!(
            "The project's own instructions ({name}):\n{text}\n"
        ));
    }
    told.text = parts.join("\n");
    Ok(told)
}

/// The beginning of a file, as far as it was read.
struct Text {
    text: String,
    /// The file continues.
    has_more: bool,
}

impl Text {
    /// Returns the part that fits, and whether the rest is missing.
    fn cut(&self, most: usize) -> (String, bool) {
        let text = self.text[..self.text.floor_char_boundary(most)].trim_end();
        (
            text.to_owned(),
            self.has_more || text.len() < self.text.len(),
        )
    }
}

/// Reads one of the files; `None` if it does not exist or is empty, so that another may be used.
async fn read(
    pipeline: &Pipeline,
    options: &Options,
    name: &str,
    told: &mut Instructions,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Option<Text>, sandbox::Error> {
    let Some(output) = pipeline
        .peek(call(options, name), Box::new(|_, _| {}), cancel, WITHIN)
        .await?
    else {
        return Ok(None);
    };
    // If there are two, only half of it may be shown.
    let memos = memos(&output, most / 2);
    let file = match output {
        Output::Read(read) => read.files.into_iter().next(),
        Output::Fault(fault) => {
            told.warnings.extend(unreadable(name, &fault));
            None
        }
        _ => None,
    };
    let Some(file) = file else { return Ok(None) };
    if let Some(fault) = &file.fault {
        told.warnings.extend(unreadable(name, fault));
        return Ok(None);
    }
    let seen = VisibleText::of(&file.text);
    told.warnings.extend(seen.warning(name));
    let text = seen.text.trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    told.seen.extend(memos);
    Ok(Some(Text {
        text: text.to_owned(),
        has_more: file.more || file.cut_lines > 0,
    }))
}

/// Returns the warning about an existing file that cannot be read.
fn unreadable(name: &str, fault: &Fault) -> Option<String> {
    let is_missing = matches!(
        fault,
        Fault::NotFound { .. } | Fault::NotDirectory { .. } | Fault::IsDirectory { .. }
    );
    (!is_missing).then(|| format!("{name} is not followed: {fault}"))
}

/// Warns about an existing file that is not followed, unless it is a link to one that is.
async fn report_unused(
    pipeline: &Pipeline,
    options: &Options,
    name: &str,
    told: &mut Instructions,
    why: &str,
    cancel: &CancellationToken,
) -> Result<(), sandbox::Error> {
    let output = pipeline
        .peek(call(options, name), Box::new(|_, _| {}), cancel, WITHIN)
        .await?;
    told.warnings
        .extend(output.and_then(|output| unused_warning(name, &output, &told.seen, why)));
    Ok(())
}

fn unused_warning(name: &str, output: &Output, in_force: &[Memo], why: &str) -> Option<String> {
    match output {
        Output::Read(read) => {
            let is_same = output
                .memos()
                .iter()
                .filter_map(real)
                .any(|path| in_force.iter().filter_map(real).any(|other| other == path));
            let says_something = read
                .files
                .iter()
                .any(|file| file.fault.is_none() && !file.text.trim().is_empty());
            (says_something && !is_same).then(|| format!("{name} is not followed: {why}"))
        }
        Output::Fault(fault) => unreadable(name, fault),
        _ => None,
    }
}

/// Returns the real path of a file that was read.
fn real(memo: &Memo) -> Option<&BytesPath> {
    match memo {
        Memo::Read { path, .. } => Some(path),
        _ => None,
    }
}

fn call(options: &Options, name: &str) -> Call {
    Call::ReadFile(ReadFile {
        path: Some(BytesPath::from_text(name)),
        offset: 1,
        limit: u64::from(options.instruction_lines),
        max_bytes: options.instruction_bytes.bytes(),
        cursor: None,
        max_files: 1,
        images: false,
        protected: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_wire::Encoding;
    use podbay_wire::FileText;
    use podbay_wire::Mark;
    use podbay_wire::Read;

    #[test]
    fn an_unused_instruction_file_is_named_unless_empty_or_linked() {
        let memo = |real: &str| Memo::Read {
            path: real.into(),
            mark: Mark::default(),
            first_line: 1,
            n_lines: 1,
            more: false,
        };
        let file = |text: &str| FileText {
            path: "GEMINI.md".into(),
            text: text.to_owned(),
            first_line: 1,
            n_lines: 1,
            total_lines: Some(1),
            bytes: text.len() as u64,
            more: false,
            cut_lines: 0,
            encoding: Encoding::Utf8,
            fault: None,
        };
        let said = |real: &str, text: &str| {
            let read = Output::Read(Read {
                files: vec![file(text)],
                remaining: 0,
                memos: vec![memo(real)],
            });
            unused_warning(
                "GEMINI.md",
                &read,
                &[memo("AGENTS.md")],
                "AGENTS.md is used instead",
            )
        };
        assert_eq!(
            said("GEMINI.md", "Be brief.\n").as_deref(),
            Some("GEMINI.md is not followed: AGENTS.md is used instead")
        );
        assert_eq!(said("AGENTS.md", "Be brief.\n"), None, "a link to it");
        assert_eq!(said("GEMINI.md", "\n"), None);
    }

    #[test]
    fn a_missing_instruction_file_is_not_mentioned() {
        let path = || BytesPath::from("AGENTS.md");
        assert_eq!(
            unreadable(
                "AGENTS.md",
                &Fault::NotFound {
                    path: path(),
                    similar: Vec::new(),
                    beside: Vec::new()
                }
            ),
            None
        );
        let said = unreadable("AGENTS.md", &Fault::PermissionDenied { path: path() });
        assert!(said.is_some_and(|said| said.starts_with("AGENTS.md is not followed: ")));
    }

    #[test]
    fn truncated_instructions_cause_a_warning() {
        let text = |text: &str, has_more| Text {
            text: text.to_owned(),
            has_more,
        };
        assert_eq!(text("abc", false).cut(3), ("abc".to_owned(), false));
        assert_eq!(text("abc def", false).cut(4), ("abc".to_owned(), true));
        assert_eq!(text("abc", true).cut(3), ("abc".to_owned(), true));
    }
}
