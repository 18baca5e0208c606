use std::io;
use std::process::Command;

/// Has the user edit a text in an editor of their own, `$VISUAL` or `$EDITOR`; `suffix` ends the
/// name of the file that it sees. An error is a line for the user.
pub fn edit_text(text: &str, suffix: &str) -> Result<String, String> {
    let editor = ["VISUAL", "EDITOR"]
        .iter()
        .find_map(|name| {
            std::env::var(name)
                .ok()
                .filter(|value| !value.trim().is_empty())
        })
        .unwrap_or_else(|| "vi".to_owned());
    let problem = |what: &str, error: io::Error| format!("{what}: {error}");
    let file = tempfile::Builder::new()
        .prefix("podbay-")
        .suffix(suffix)
        .tempfile()
        .map_err(|error| problem("cannot make a file for the editor", error))?;
    std::fs::write(file.path(), text)
        .map_err(|error| problem("cannot write the file for the editor", error))?;
    // What stands in the variable may have arguments, as git and others take it.
    #[expect(
        clippy::disallowed_methods,
        reason = "the user's own editor, on their own text"
    )]
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(file.path())
        .status()
        .map_err(|error| problem("cannot start the editor", error))?;
    if !status.success() {
        return Err(format!(
            "`{editor}` ended with {status}: the text is as it was"
        ));
    }
    std::fs::read_to_string(file.path())
        .map_err(|error| problem("cannot read what the editor wrote", error))
}
