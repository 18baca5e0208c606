//! Reads the project's instructions for agents, and reports which of them are not followed.

use super::Options;
use super::instruction_file::InstructionFile;
use super::instruction_file::read;
use super::instruction_file::read_call;
use super::instruction_file::real;
use super::instruction_file::unreadable;
use super::instruction_imports::imported;
use super::prompt::WITHIN;
use super::unfollowed_instructions;
use podbay_sandbox as sandbox;
use podbay_tools::Pipeline;
use podbay_wire::BytesPath;
use podbay_wire::INSTRUCTIONS;
use podbay_wire::Memo;
use podbay_wire::OTHER_INSTRUCTIONS;
use podbay_wire::Output;
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
    /// The files that were read, by their paths.
    pub(super) files: Vec<String>,
    pub(super) seen: Vec<Memo>,
    pub(super) warnings: Vec<String>,
}

/// Reads `PODBAY.md` and the first of the other files, whichever agent it was written for. Together
/// they take at most `most` bytes, half of which `PODBAY.md` gets if there is another one; what they
/// import gets the rest. Files that are not followed, or only partly, cause warnings.
pub(super) async fn instructions(
    pipeline: &Pipeline,
    options: &Options,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Instructions, sandbox::Error> {
    let mut told = Instructions::default();
    let own = read_first(pipeline, options, INSTRUCTIONS, &mut told, most, cancel).await?;
    let mut other: Option<(&'static str, InstructionFile)> = None;
    for name in OTHER_INSTRUCTIONS {
        if let Some((in_force, _)) = &other {
            let why =
                format!("{in_force} is used instead, and only the first of these files is read");
            report_unused(pipeline, options, name, &mut told, &why, cancel).await?;
        } else if let Some(text) =
            read_first(pipeline, options, name, &mut told, most, cancel).await?
        {
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
    told.files = in_force.iter().map(|name| (*name).to_owned()).collect();
    let mut parts = Vec::new();
    let mut importing = Vec::new();
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
        importing.push((name.to_owned(), text));
    }
    told.text = parts.join("\n");
    let room = most.saturating_sub(importing.iter().map(|(_, text)| text.len()).sum());
    let more = imported(pipeline, options, importing, &told.seen, room, cancel).await?;
    // What is imported is followed after all.
    let is_imported = |warning: &String| {
        let name = warning.split_once(" is not followed: ");
        name.is_some_and(|(name, _)| more.files.iter().any(|file| file == name))
    };
    told.warnings.retain(|warning| !is_imported(warning));
    told.text.push_str(&more.text);
    told.files.extend(more.files);
    told.seen.extend(more.seen);
    told.warnings.extend(more.warnings);
    Ok(told)
}

/// Reads a file at the top of the project, which may get half of the room.
async fn read_first(
    pipeline: &Pipeline,
    options: &Options,
    name: &str,
    told: &mut Instructions,
    most: usize,
    cancel: &CancellationToken,
) -> Result<Option<InstructionFile>, sandbox::Error> {
    // If there are two, only half of it may be shown.
    let file = read(
        pipeline,
        options,
        name,
        most / 2,
        &mut told.warnings,
        cancel,
    )
    .await?;
    if let Some(file) = &file {
        told.seen.extend_from_slice(&file.seen);
    }
    Ok(file)
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
        .peek(
            read_call(options, name),
            Box::new(|_, _| {}),
            cancel,
            WITHIN,
        )
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
}
