//! Call formats of other agents that models were trained on. An alias of a tool name is useless if
//! its arguments are refused. Each conversion is noted in the result.

use serde_json::Map;
use serde_json::Value;

use super::Options;
use super::argument_names::rename;
use super::tool::Tool;
use podbay_event::is_same_name;

/// Names of an edit's fields elsewhere, and ours.
const EDIT: [(&str, &str); 7] = [
    ("file_path", "path"),
    ("filename", "path"),
    ("file", "path"),
    ("old_str", "old_string"),
    ("old_text", "old_string"),
    ("new_str", "new_string"),
    ("new_text", "new_string"),
];
/// Our names of them.
const EDIT_NAMES: [&str; 4] = ["path", "old_string", "new_string", "replace_all"];

const TASK: [(&str, &str); 4] = [
    ("step", "content"),
    ("task", "content"),
    ("title", "content"),
    ("text", "content"),
];

/// File types of other agents' searches, as globs.
const TYPES: [(&str, &str); 20] = [
    ("c", "*.{c,h}"),
    ("cpp", "*.{cpp,cc,cxx,hpp,hh,hxx,h}"),
    ("css", "*.css"),
    ("go", "*.go"),
    ("html", "*.{html,htm}"),
    ("java", "*.java"),
    ("js", "*.{js,jsx,mjs,cjs}"),
    ("json", "*.json"),
    ("kotlin", "*.{kt,kts}"),
    ("md", "*.{md,markdown}"),
    ("markdown", "*.{md,markdown}"),
    ("php", "*.php"),
    ("py", "*.{py,pyi}"),
    ("python", "*.{py,pyi}"),
    ("ruby", "*.rb"),
    ("rust", "*.rs"),
    ("sh", "*.{sh,bash}"),
    ("toml", "*.toml"),
    ("ts", "*.{ts,tsx,mts,cts}"),
    ("yaml", "*.{yaml,yml}"),
];

/// Converts arguments to our format; returns an error where that is impossible.
pub(super) fn reshape(
    tool: &Tool,
    fields: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    match tool.name {
        "multi_edit" => edits_of_one_file(fields, notes),
        "edit_file" => each(
            fields,
            "edits",
            |edit, notes| rename(&EDIT_NAMES, &EDIT, edit, notes),
            notes,
        ),
        "task_list" => tasks(fields, notes),
        "grep" => search(tool, fields, notes),
        "list_directory" => listing(fields, notes),
        "bash" | "start_background_process" => background(tool, fields, notes),
        "ask_user" => return question(fields, notes),
        "more_tools" => select(fields, notes),
        _ => {}
    }
    Ok(())
}

/// Splits a tool name at the control tokens in it, if there are any: `bash<|channel|>commentary`.
pub(super) fn between_tokens(name: &str) -> Option<impl Iterator<Item = &str>> {
    let parts = name.split("<|").enumerate().filter_map(|(n, part)| {
        if n == 0 {
            Some(part)
        } else {
            Some(part.split_once("|>")?.1)
        }
    });
    (name.contains("<|") && name.contains("|>")).then(|| parts.filter(|part| !part.contains("|>")))
}

/// Converts a timeout in milliseconds, which other agents use: as seconds it would exceed any
/// limit.
///
/// Runs before argument names are normalized, since `timeout_seconds` means seconds.
pub(super) fn milliseconds(
    tool: &Tool,
    fields: &mut Map<String, Value>,
    options: &Options,
    notes: &mut Vec<String>,
) {
    let (wrong, right) = ("timeout", "timeout_seconds");
    if tool.name != "bash" || fields.contains_key(right) {
        return;
    }
    let Some(wrong) = spelled(fields, wrong) else {
        return;
    };
    let told = fields.get(&wrong).and_then(|value| {
        value
            .as_u64()
            .or_else(|| value.as_str()?.trim().parse().ok())
    });
    if let Some(told) = told.filter(|told| *told > options.bash_timeout_max.get() && *told >= 1000)
    {
        let seconds = told.div_ceil(1000);
        fields.remove(&wrong);
        fields.insert(right.to_owned(), seconds.into());
        notes.push(format!(
            "{wrong} {told} was taken as milliseconds, which is {right} {seconds}"
        ));
    }
}

/// Converts each object of an array; the same note is made once.
fn each(
    fields: &mut Map<String, Value>,
    list: &str,
    mut change: impl FnMut(&mut Map<String, Value>, &mut Vec<String>),
    notes: &mut Vec<String>,
) {
    let items = fields.get_mut(list).and_then(Value::as_array_mut);
    for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
        let mut said = Vec::new();
        change(item, &mut said);
        said.retain(|note| !notes.contains(note));
        notes.append(&mut said);
    }
}

/// Other agents name one file for all edits.
fn edits_of_one_file(fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    rename(&["path", "edits"], &EDIT, fields, notes);
    let path = fields.get("path").filter(|path| path.is_string()).cloned();
    let has_edits = fields
        .get("edits")
        .and_then(Value::as_array)
        .is_some_and(|edits| !edits.is_empty());
    each(
        fields,
        "edits",
        |edit, notes| {
            rename(&EDIT_NAMES, &EDIT, edit, notes);
            if let Some(path) = &path
                && !edit.contains_key("path")
            {
                edit.insert("path".to_owned(), path.clone());
                notes.push("path was taken as that of each edit which has none".to_owned());
            }
        },
        notes,
    );
    if path.is_some() && has_edits {
        fields.remove("path");
    }
}

fn tasks(fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    if fields.contains_key("todos") {
        leave_out(fields, "explanation", notes);
    }
    each(
        fields,
        "todos",
        |task, notes| rename(&["content"], &TASK, task, notes),
        notes,
    );
}

fn listing(fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    if fields.remove("ignore").is_some() {
        notes.push(
            "ignore was left out: what it names is listed too; glob takes exclude".to_owned(),
        );
    }
}

fn search(tool: &Tool, fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    leave_out(fields, "-n", notes);
    if fields
        .get("multiline")
        .is_some_and(|wanted| *wanted == Value::Bool(true) || *wanted == "true")
    {
        fields.remove("multiline");
        notes.push(r"multiline was left out: a match goes over several lines where the pattern has \n, and `.` matches none".to_owned());
    }
    leave_out(fields, "multiline", notes);
    let mut names = vec![
        ("-i", "case_insensitive"),
        ("head_limit", "max_results"),
        ("-C", "context"),
    ];
    // Ours takes one number for both sides.
    let (before, behind) = (
        fields.get("-B").and_then(Value::as_u64),
        fields.get("-A").and_then(Value::as_u64),
    );
    match before.max(behind) {
        Some(lines)
            if !fields.contains_key("-C")
                && !fields.contains_key("context")
                && tool.has("context") =>
        {
            fields.retain(|name, _| name != "-A" && name != "-B");
            fields.insert("context".to_owned(), lines.into());
            notes.push(format!(
                "-A and -B were taken as context {lines}, on both sides"
            ));
        }
        _ => {}
    }
    names.retain(|(_, right)| tool.has(right));
    let known: Vec<&str> = names.iter().map(|(_, right)| *right).collect();
    rename(&known, &names, fields, notes);
    if fields
        .get("output_mode")
        .is_some_and(|mode| mode == "files_with_matches")
    {
        fields.insert("output_mode".to_owned(), "files_only".into());
        notes.push("output_mode files_with_matches was taken as files_only".to_owned());
    }
    let known = fields
        .get("type")
        .and_then(Value::as_str)
        .and_then(|word| TYPES.iter().find(|(name, _)| *name == word));
    if let Some((word, glob)) = known
        && !fields.contains_key("glob")
    {
        fields.remove("type");
        fields.insert("glob".to_owned(), (*glob).into());
        notes.push(format!("type {word} was taken as glob {glob}"));
    }
}

fn background(tool: &Tool, fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let Some(name) = spelled(fields, "run_in_background") else {
        return;
    };
    let name = name.as_str();
    // Commands run in the foreground unless told otherwise, and this tool starts only background
    // processes, so the argument can be ignored.
    let is_so_anyway = fields.get(name) == Some(&Value::Bool(tool.name != "bash"));
    if is_so_anyway {
        leave_out(fields, name, notes);
    } else if tool.has("background") {
        rename(&["background"], &[(name, "background")], fields, notes);
    }
}

/// Other agents ask several questions at once.
fn question(fields: &mut Map<String, Value>, notes: &mut Vec<String>) -> Result<(), String> {
    let Some(asked) = fields
        .get("questions")
        .and_then(Value::as_array)
        .filter(|_| !fields.contains_key("question"))
    else {
        return Ok(());
    };
    let [Value::Object(only)] = asked.as_slice() else {
        return Err(format!(
            "`questions` has {}, and the user is asked one at a time: give one, as `question` and `options`",
            asked.len()
        ));
    };
    let mut only = only.clone();
    fields.remove("questions");
    leave_out(&mut only, "header", notes);
    leave_out(&mut only, "multiSelect", notes);
    fields.append(&mut only);
    notes.push("questions was taken as the one question in it".to_owned());
    Ok(())
}

/// `select:NAME,OTHER` asks for tools by name.
fn select(fields: &mut Map<String, Value>, notes: &mut Vec<String>) {
    let Some(names) = fields
        .get("query")
        .and_then(Value::as_str)
        .and_then(|query| query.trim().strip_prefix("select:"))
    else {
        return;
    };
    let names: Vec<Value> = names
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(Value::from)
        .collect();
    if names.is_empty()
        || fields.contains_key("tools")
        || fields.contains_key("tool")
        || fields.contains_key("arguments")
    {
        return;
    }
    fields.remove("query");
    fields.insert("tools".to_owned(), names.into());
    notes.push("query select: was taken as the names of the tools".to_owned());
}

/// Removes an argument that has no meaning here.
fn leave_out(fields: &mut Map<String, Value>, name: &str, notes: &mut Vec<String>) {
    if let Some(name) = spelled(fields, name) {
        fields.remove(&name);
        let note = format!("{name} says nothing here and was left out");
        if !notes.contains(&note) {
            notes.push(note);
        }
    }
}

/// Returns the spelling in which an argument of this name was given.
fn spelled(fields: &Map<String, Value>, name: &str) -> Option<String> {
    fields.keys().find(|key| is_same_name(key, name)).cloned()
}
