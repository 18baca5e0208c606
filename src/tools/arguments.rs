use serde::Deserialize;
use serde_json::Value;

use super::Options;
use super::patch;
use crate::policy::Action;
use crate::policy::HostCall;
use crate::wire::ApplyPatch;
use crate::wire::Bash;
use crate::wire::BytesPath;
use crate::wire::Call;
use crate::wire::CopyFile;
use crate::wire::DeleteFile;
use crate::wire::EditFile;
use crate::wire::EditLines;
use crate::wire::FileEdit;
use crate::wire::Glob;
use crate::wire::Grep;
use crate::wire::GrepOutput;
use crate::wire::LineOperation;
use crate::wire::ListDirectory;
use crate::wire::Mkdir;
use crate::wire::MoveFile;
use crate::wire::MultiEdit;
use crate::wire::ReadFile;
use crate::wire::Replacement;
use crate::wire::Tree;
use crate::wire::WriteFile;

/// How a path names an artifact instead of a file.
const ARTIFACT: &str = "artifact:";

#[derive(Deserialize)]
struct ReadArguments {
    path: Option<String>,
    offset: Option<i64>,
    limit: Option<i64>,
    from_cursor: Option<String>,
    max_files: Option<i64>,
}

#[derive(Deserialize)]
struct WriteArguments {
    path: String,
    content: String,
    #[serde(default)]
    append: bool,
}

#[derive(Deserialize)]
struct EditArguments {
    path: String,
    old_string: Option<String>,
    new_string: Option<String>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    create_if_missing: bool,
    edits: Option<Vec<OneEdit>>,
}

#[derive(Deserialize)]
struct OneEdit {
    old_string: String,
    new_string: String,
    #[serde(default)]
    replace_all: bool,
}

#[derive(Deserialize)]
struct MultiArguments {
    edits: Vec<EditOfFile>,
}

#[derive(Deserialize)]
struct EditOfFile {
    path: String,
    #[serde(flatten)]
    edit: OneEdit,
}

#[derive(Deserialize)]
struct PatchArguments {
    patch: String,
    #[serde(default)]
    dry_run: bool,
}

#[derive(Deserialize)]
struct LinesArguments {
    path: String,
    operation: LineOperation,
    start_line: Option<i64>,
    end_line: Option<i64>,
    new_content: Option<String>,
}

#[derive(Deserialize)]
struct DeleteArguments {
    path: String,
    #[serde(default)]
    recursive: bool,
}

#[derive(Deserialize)]
struct CopyArguments {
    source: String,
    destination: String,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
struct MoveArguments {
    source: String,
    destination: String,
    #[serde(default)]
    overwrite: bool,
}

#[derive(Deserialize)]
struct MkdirArguments {
    path: String,
}

#[derive(Deserialize)]
struct TreeArguments {
    path: Option<String>,
    depth: Option<i64>,
}

#[derive(Deserialize)]
struct ListArguments {
    path: Option<String>,
    #[serde(default)]
    recursive: bool,
    #[serde(default)]
    show_hidden: bool,
    show_size: Option<bool>,
    max_entries: Option<i64>,
}

#[derive(Deserialize)]
struct GlobArguments {
    pattern: String,
    path: Option<String>,
    exclude: Option<String>,
    max_results: Option<i64>,
}

#[derive(Deserialize)]
struct GrepArguments {
    pattern: String,
    path: Option<String>,
    glob: Option<String>,
    context: Option<i64>,
    #[serde(default)]
    case_insensitive: bool,
    output_mode: Option<GrepOutput>,
    max_results: Option<i64>,
}

#[derive(Deserialize)]
struct BashArguments {
    command: String,
    working_directory: Option<String>,
    timeout_seconds: Option<i64>,
    #[serde(default)]
    background: bool,
}

/// Makes the action of one tool from arguments that fit its schema; says what is wrong with their values.
///
/// A number that is too large is not worth a turn: the largest one is taken, and `notes` gets a line on that for the result.
pub(super) fn action(tool: &str, arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let mut bounded = |field: &str, given, default, most| bounded(field, given, default, most, notes);
    let call = match tool {
        "read_file" => return read(arguments, options, notes),
        "write_file" => {
            let WriteArguments { path, content, append } = parse(arguments)?;
            Call::WriteFile(WriteFile { path: named(path)?, content, append, protected: false })
        }
        "edit_file" => edit(arguments)?,
        "multi_edit" => {
            let MultiArguments { edits } = parse(arguments)?;
            if edits.is_empty() {
                return Err("`edits` is empty".to_owned());
            }
            let edits = edits.into_iter().map(|EditOfFile { path: of, edit }| {
                let OneEdit { old_string, new_string, replace_all } = edit;
                Ok(FileEdit { path: named(of)?, edit: Replacement { old_string, new_string, replace_all } })
            });
            Call::MultiEdit(MultiEdit { edits: edits.collect::<Result<_, String>>()?, protected: false })
        }
        "apply_patch" => {
            let PatchArguments { patch, dry_run } = parse(arguments)?;
            let files = patch::parse(&filled("patch", patch)?).map_err(|problem| format!("`patch` {problem}"))?;
            Call::ApplyPatch(ApplyPatch { files, dry_run, protected: false })
        }
        "edit_lines" => edit_lines(arguments)?,
        "delete_file" => {
            let DeleteArguments { path, recursive } = parse(arguments)?;
            Call::DeleteFile(DeleteFile { path: named(path)?, recursive, protected: false })
        }
        "copy_file" => {
            let CopyArguments { source, destination, recursive, overwrite } = parse(arguments)?;
            let (source, destination) = (path("source", source)?, path("destination", destination)?);
            Call::CopyFile(CopyFile { source, destination, recursive, overwrite, protected: false })
        }
        "move_file" => {
            let MoveArguments { source, destination, overwrite } = parse(arguments)?;
            let (source, destination) = (path("source", source)?, path("destination", destination)?);
            Call::MoveFile(MoveFile { source, destination, overwrite, protected: false })
        }
        "mkdir" => {
            let MkdirArguments { path } = parse(arguments)?;
            Call::Mkdir(Mkdir { path: named(path)?, protected: false })
        }
        "tree" => {
            let TreeArguments { path, depth } = parse(arguments)?;
            let depth = bounded("depth", depth, 4, 20)?;
            Call::Tree(Tree { path: folder(path.as_deref()), depth, max_entries: options.list_entries.max(1) })
        }
        "list_directory" => {
            let ListArguments { path, recursive, show_hidden, show_size, max_entries } = parse(arguments)?;
            let max_entries = bounded("max_entries", max_entries, options.list_entries, options.list_entries.max(1))?;
            Call::ListDirectory(ListDirectory {
                path: folder(path.as_deref()),
                recursive,
                show_hidden,
                show_size: show_size.unwrap_or(true),
                max_entries,
            })
        }
        "glob" => {
            let GlobArguments { pattern, path, exclude, max_results } = parse(arguments)?;
            let max_results = bounded("max_results", max_results, options.search_results, options.search_results_max)?;
            Call::Glob(Glob { pattern: filled("pattern", pattern)?, path: folder(path.as_deref()), exclude, max_results })
        }
        "grep" => {
            let GrepArguments { pattern, path, glob, context, case_insensitive, output_mode, max_results } = parse(arguments)?;
            Call::Grep(Grep {
                pattern: filled("pattern", pattern)?,
                path: folder(path.as_deref()),
                glob,
                context: bounded("context", context, 0, 50)?,
                case_insensitive,
                output: output_mode.unwrap_or(GrepOutput::Content),
                max_results: bounded("max_results", max_results, options.search_results, options.search_results_max)?,
                timeout_ms: options.search_timeout.get().saturating_mul(1000),
                protected: false,
            })
        }
        "bash" => {
            let BashArguments { command, working_directory, timeout_seconds, background } = parse(arguments)?;
            let default = u32::try_from(options.bash_timeout.get()).unwrap_or(u32::MAX);
            let most = u32::try_from(options.bash_timeout_max.get()).unwrap_or(u32::MAX);
            Call::Bash(Bash {
                command: filled("command", command)?,
                working_directory: working_directory.filter(|path| !path.is_empty()).map(|path| BytesPath::from_text(&path)),
                timeout_ms: u64::from(bounded("timeout_seconds", timeout_seconds, default, most)?) * 1000,
                grace_ms: options.bash_grace.get().saturating_mul(1000),
                stream_bytes: options.bash_stream.bytes(),
                tail_bytes: options.bash_tail.bytes(),
                background,
            })
        }
        other => return Err(format!("the tool `{other}` is in the catalogue and has no meaning")),
    };
    Ok(Action::Box(call))
}

fn read(arguments: Value, options: &Options, notes: &mut Vec<String>) -> Result<Action, String> {
    let mut bounded = |field: &str, given, default, most| bounded(field, given, default, most, notes);
    let ReadArguments { path, offset, limit, from_cursor, max_files } = parse(arguments)?;
    let offset = u64::from(bounded("offset", offset, 1, u32::MAX)?);
    let most = u32::try_from(options.read_lines).unwrap_or(u32::MAX);
    let limit = u64::from(bounded("limit", limit, most, most)?);
    if let Some(id) = path.as_deref().and_then(|path| path.strip_prefix(ARTIFACT)) {
        return Ok(Action::Host(HostCall::ReadArtifact { id: id.to_owned(), offset, limit }));
    }
    if path.is_none() && from_cursor.is_none() {
        return Err("`path` is missing".to_owned());
    }
    Ok(Action::Box(Call::ReadFile(ReadFile {
        path: path.map(named).transpose()?,
        offset,
        limit,
        max_bytes: options.read_bytes.bytes(),
        cursor: from_cursor,
        max_files: bounded("max_files", max_files, 5, 20)?,
        images: false,
        protected: false,
    })))
}

fn edit(arguments: Value) -> Result<Call, String> {
    let EditArguments { path, old_string, new_string, replace_all, create_if_missing, edits } = parse(arguments)?;
    let edits = match (edits, old_string, new_string) {
        (Some(edits), None, None) if !edits.is_empty() => edits
            .into_iter()
            .map(|OneEdit { old_string, new_string, replace_all }| Replacement { old_string, new_string, replace_all })
            .collect(),
        (Some(_), _, _) => return Err("give either `edits` or `old_string` and `new_string`, not both and not an empty list".to_owned()),
        (None, Some(old_string), Some(new_string)) => vec![Replacement { old_string, new_string, replace_all }],
        (None, None, Some(new_string)) if create_if_missing => {
            vec![Replacement { old_string: String::new(), new_string, replace_all: false }]
        }
        (None, None, _) => return Err("`old_string` is missing".to_owned()),
        (None, Some(_), None) => return Err("`new_string` is missing".to_owned()),
    };
    Ok(Call::EditFile(EditFile { path: named(path)?, edits, create_if_missing, protected: false }))
}

fn edit_lines(arguments: Value) -> Result<Call, String> {
    let LinesArguments { path, operation, start_line, end_line, new_content } = parse(arguments)?;
    let line = |field: &str, line: i64| {
        u64::try_from(line).ok().filter(|line| *line > 0).ok_or_else(|| format!("`{field}` is {line}; lines are counted from 1"))
    };
    let start_line = line("start_line", start_line.ok_or("`start_line` is missing")?)?;
    let last = end_line.map(|last| line("end_line", last)).transpose()?;
    if last.is_some_and(|last| last < start_line) {
        return Err("`end_line` comes before `start_line`".to_owned());
    }
    let new_content = new_content.filter(|content| !content.is_empty());
    match (operation, last, &new_content) {
        (LineOperation::Delete, _, Some(_)) => return Err("`new_content` is not for delete; use replace".to_owned()),
        (LineOperation::Insert | LineOperation::Replace, _, None) => {
            return Err("`new_content` is missing; to take lines away use delete".to_owned());
        }
        (LineOperation::Insert, Some(last), _) if last != start_line => {
            return Err("`end_line` is not for insert, which goes before `start_line`; use replace".to_owned());
        }
        _ => {}
    }
    let new_content = new_content.unwrap_or_default();
    let end_line = last.unwrap_or(start_line);
    Ok(Call::EditLines(EditLines { path: named(path)?, operation, start_line, end_line, new_content, protected: false }))
}

fn parse<T: serde::de::DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| error.to_string())
}

fn named(name: String) -> Result<BytesPath, String> {
    path("path", name)
}

fn path(field: &str, path: String) -> Result<BytesPath, String> {
    filled(field, path).map(|path| BytesPath::from_text(&path))
}

fn folder(path: Option<&str>) -> BytesPath {
    BytesPath::from_text(path.filter(|path| !path.is_empty()).unwrap_or("."))
}

fn filled(field: &str, value: String) -> Result<String, String> {
    if value.trim().is_empty() { Err(format!("`{field}` is empty")) } else { Ok(value) }
}

/// Takes the default where nothing is given and the bound where more is asked for, and says the latter.
pub(super) fn bounded(field: &str, given: Option<i64>, default: u32, most: u32, notes: &mut Vec<String>) -> Result<u32, String> {
    match given {
        // Some models count from 0, or mean "all" by it.
        None | Some(0) => Ok(default.min(most)),
        Some(value) if value < 0 => Err(format!("`{field}` cannot be negative, as {value} is")),
        Some(value) => Ok(u32::try_from(value).ok().filter(|&value| value <= most).unwrap_or_else(|| {
            notes.push(format!("{field} {value} was taken as {most}, the most there is"));
            most
        })),
    }
}
