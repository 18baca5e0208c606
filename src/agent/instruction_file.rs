//! Reads one file of instructions through the sandbox.

use tokio_util::sync::CancellationToken;

use super::Options;
use super::invisible_characters::VisibleText;
use super::prompt::WITHIN;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_tools::memos;
use podbay_wire::BytesPath;
use podbay_wire::Call;
use podbay_wire::Fault;
use podbay_wire::Memo;
use podbay_wire::Output;
use podbay_wire::ReadFile;

/// The beginning of a file, as far as it was read.
pub(super) struct InstructionFile {
    pub(super) text: String,
    /// The file continues.
    pub(super) has_more: bool,
    /// What the model knows of it.
    pub(super) seen: Vec<Memo>,
}

impl InstructionFile {
    /// Returns the part that fits, and whether the rest is missing.
    pub(super) fn cut(&self, most: usize) -> (String, bool) {
        let text = self.text[..self.text.floor_char_boundary(most)].trim_end();
        (
            text.to_owned(),
            self.has_more || text.len() < self.text.len(),
        )
    }

    /// Returns whether one of these files is this one, by its real path.
    pub(super) fn is_among(&self, seen: &[Memo]) -> bool {
        self.seen
            .iter()
            .filter_map(real)
            .any(|path| seen.iter().filter_map(real).any(|other| other == path))
    }
}

/// Reads one of the files; `None` if it does not exist or is empty, so that another may be used.
/// `shown` is how many bytes of it the model will be shown at most.
pub(super) async fn read(
    pipeline: &Pipeline,
    options: &Options,
    name: &str,
    shown: usize,
    warnings: &mut Vec<String>,
    cancel: &CancellationToken,
) -> Result<Option<InstructionFile>, sandbox::Error> {
    let Some(output) = pipeline
        .peek(
            read_call(options, name),
            Box::new(|_, _| {}),
            cancel,
            WITHIN,
        )
        .await?
    else {
        return Ok(None);
    };
    let seen = memos(&output, shown);
    let file = match output {
        Output::Read(read) => read.files.into_iter().next(),
        Output::Fault(fault) => {
            warnings.extend(unreadable(name, &fault));
            None
        }
        _ => None,
    };
    let Some(file) = file else { return Ok(None) };
    if let Some(fault) = &file.fault {
        warnings.extend(unreadable(name, fault));
        return Ok(None);
    }
    let visible = VisibleText::of(&file.text);
    let text = visible.text.trim_end();
    if text.is_empty() {
        return Ok(None);
    }
    warnings.extend(visible.warning(name));
    Ok(Some(InstructionFile {
        text: text.to_owned(),
        has_more: file.more || file.cut_lines > 0,
        seen,
    }))
}

/// Returns the warning about an existing file that cannot be read.
pub(super) fn unreadable(name: &str, fault: &Fault) -> Option<String> {
    let is_missing = matches!(
        fault,
        Fault::NotFound { .. } | Fault::NotDirectory { .. } | Fault::IsDirectory { .. }
    );
    (!is_missing).then(|| format!("{name} is not followed: {fault}"))
}

/// Returns the real path of a file that was read.
pub(super) fn real(memo: &Memo) -> Option<&BytesPath> {
    match memo {
        Memo::Read { path, .. } => Some(path),
        _ => None,
    }
}

pub(super) fn read_call(options: &Options, name: &str) -> Call {
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
        let text = |text: &str, has_more| InstructionFile {
            text: text.to_owned(),
            has_more,
            seen: Vec::new(),
        };
        assert_eq!(text("abc", false).cut(3), ("abc".to_owned(), false));
        assert_eq!(text("abc def", false).cut(4), ("abc".to_owned(), true));
        assert_eq!(text("abc", true).cut(3), ("abc".to_owned(), true));
    }
}
