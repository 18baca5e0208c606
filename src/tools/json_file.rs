//! File content that came as JSON instead of a string.

use serde_json::Map;
use serde_json::Value;

/// Most digits that a floating-point number keeps exactly.
const EXACT_DIGITS: usize = 15;

/// Serializes `content` that came as an object, array or the like for a `.json` file; returns an
/// error where that is impossible.
pub(super) fn write(
    tool: &str,
    fields: &mut Map<String, Value>,
    notes: &mut Vec<String>,
) -> Result<(), String> {
    let Some(content) = fields
        .get("content")
        .filter(|content| tool == "write_file" && !content.is_string() && !content.is_null())
    else {
        return Ok(());
    };
    let Some(path) = fields.get("path").and_then(Value::as_str) else {
        return Ok(());
    };
    let what = match content {
        Value::Object(_) => "an object",
        Value::Array(_) => "a list",
        _ => "no text",
    };
    let is_json = path
        .rsplit_once('.')
        .is_some_and(|(_, end)| end.eq_ignore_ascii_case("json"));
    if !is_json {
        return Err(format!(
            "`content` is {what} and `path` names no .json file: give the text of the file as one string"
        ));
    }
    if !is_exact(content) {
        return Err(format!(
            "`content` is {what} with a number that may lose digits: give the text of the file as one string"
        ));
    }
    let text = serde_json::to_string_pretty(content).expect("a value of JSON can be written");
    notes.push(format!("content was {what} and is written as JSON"));
    fields.insert("content".to_owned(), text.into());
    Ok(())
}

/// Returns whether all numbers keep the digits that were written.
fn is_exact(value: &Value) -> bool {
    match value {
        Value::Number(number) if number.is_f64() => {
            number
                .to_string()
                .bytes()
                .filter(u8::is_ascii_digit)
                .count()
                <= EXACT_DIGITS
        }
        Value::Array(items) => items.iter().all(is_exact),
        Value::Object(fields) => fields.values().all(is_exact),
        Value::Number(_) | Value::Null | Value::Bool(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn written(path: &str, content: &Value) -> Result<Value, String> {
        let mut fields = Map::from_iter([
            ("path".to_owned(), path.into()),
            ("content".to_owned(), content.clone()),
        ]);
        write("write_file", &mut fields, &mut Vec::new()).map(|()| fields["content"].clone())
    }

    #[test]
    fn json_content_is_serialized_for_json_files_only() {
        for (content, text) in [
            (
                json!({ "b": 1, "a": [true, null] }),
                "{\n  \"b\": 1,\n  \"a\": [\n    true,\n    null\n  ]\n}",
            ),
            (json!(["one", "two"]), "[\n  \"one\",\n  \"two\"\n]"),
            (json!([]), "[]"),
            (json!(1.5), "1.5"),
            (json!(-3), "-3"),
            (json!(false), "false"),
        ] {
            for path in ["a.json", "b/package.JSON"] {
                assert_eq!(written(path, &content), Ok(text.into()), "{path}");
            }
            for path in ["a.txt", "json", "a.json.txt", "a.yaml"] {
                let problem = written(path, &content).expect_err("no JSON file");
                assert!(
                    problem.contains("names no .json file") && problem.contains("one string"),
                    "{problem}"
                );
            }
        }
        assert_eq!(
            written("a.json", &json!("{}")),
            Ok("{}".into()),
            "a text is a text"
        );
        assert!(
            written("a.json", &json!([1.234_567_890_123_456_7]))
                .expect_err("too long")
                .contains("lose digits")
        );
    }
}
