//! `--output json` and `--output jsonl`: machines read it, so nothing else may be on that stream.

use std::io;
use std::io::Write;

use serde::Serialize;
use serde_json::Map;
use serde_json::Value;

use podbay_event::Event;
use podbay_event::json_line;

/// Writes one event as a line.
pub fn event(out: &mut impl Write, event: &Event) -> io::Result<()> {
    write_line(out, event)
}

/// Writes the result of a run as the one object of `--output json`.
pub fn result(out: &mut impl Write, result: &impl Serialize) -> io::Result<()> {
    write_line(out, result)
}

/// Writes the result of a run as the last line of `--output jsonl`, of the type `result`.
pub fn result_line(out: &mut impl Write, result: &impl Serialize) -> io::Result<()> {
    let mut object = Map::new();
    object.insert("type".to_owned(), Value::from("result"));
    if let Value::Object(fields) = serde_json::to_value(result)? {
        object.extend(fields);
    }
    write_line(out, &object)
}

// The line goes out in one piece, and at once: whoever reads along wants whole lines.
fn write_line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    let mut line = json_line(value)?;
    line.push('\n');
    out.write_all(line.as_bytes())?;
    out.flush()
}
