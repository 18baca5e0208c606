//! Prompts as slash commands: each Markdown file in a folder of the user's, and those of MCP servers.

use std::fs;
use std::io::Read;
use std::path::Path;
use std::path::PathBuf;

use podbay_app::McpPrompt;

/// A longer file is no prompt.
const LONGEST: u64 = 64 << 10;
const MOST: usize = 200;

/// A prompt, by its file's name.
pub(super) struct Prompt {
    pub(super) name: String,
    pub(super) text: String,
}

/// Returns where they are: beside the user's settings.
pub(super) fn folder() -> Option<PathBuf> {
    podbay_config::user_folder().map(|folder| folder.join("commands"))
}

/// Reads all of them; what cannot be read is none.
pub(super) fn all(folder: Option<&Path>) -> Vec<Prompt> {
    let Some(entries) = folder.and_then(|path| fs::read_dir(path).ok()) else {
        return Vec::new();
    };
    let mut prompts: Vec<Prompt> = entries
        .filter_map(Result::ok)
        .take(MOST)
        .filter_map(|entry| read(&entry.path()))
        .collect();
    prompts.sort_by(|a, b| a.name.cmp(&b.name));
    prompts
}

fn read(path: &Path) -> Option<Prompt> {
    let name = path.file_stem()?.to_str()?;
    let is_name = !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    if !is_name || path.extension()? != "md" || !fs::metadata(path).ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    fs::File::open(path)
        .ok()?
        .take(LONGEST)
        .read_to_string(&mut text)
        .ok()?;
    Some(Prompt {
        name: name.to_owned(),
        text,
    })
}

/// Returns the message that `/name words` stands for, if there is such a prompt.
pub(super) fn message(line: &str, prompts: &[Prompt]) -> Option<String> {
    let (name, rest) = line
        .trim()
        .strip_prefix('/')?
        .split_once(char::is_whitespace)
        .unwrap_or((line.trim().strip_prefix('/')?, ""));
    let prompt = prompts.iter().find(|prompt| prompt.name == name)?;
    let rest = rest.trim();
    if prompt.text.contains("$ARGUMENTS") {
        return Some(prompt.text.replace("$ARGUMENTS", rest));
    }
    Some(
        format!("{}\n\n{rest}", prompt.text.trim_end())
            .trim_end()
            .to_owned(),
    )
}

/// Returns the prompt of an MCP server that `/name words` stands for, and the words.
pub(super) fn of_server<'a>(
    line: &'a str,
    prompts: &'a [McpPrompt],
) -> Option<(&'a McpPrompt, &'a str)> {
    let line = line.trim().strip_prefix('/')?;
    let (name, words) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let prompt = prompts.iter().find(|prompt| prompt.name == name)?;
    Some((prompt, words))
}

/// Returns each prompt of a server with what it takes, and what it is for.
pub(super) fn help_of_servers(prompts: &[McpPrompt]) -> Vec<(String, String)> {
    prompts
        .iter()
        .map(|prompt| {
            let help = format!("{}  {}", prompt.usage(), prompt.description);
            (prompt.name.clone(), help.trim().to_owned())
        })
        .collect()
}

/// Returns each with its first line.
pub(super) fn help(prompts: &[Prompt]) -> Vec<(String, String)> {
    prompts
        .iter()
        .map(|prompt| {
            let first = prompt.text.lines().next().unwrap_or_default();
            (
                prompt.name.clone(),
                first.trim_start_matches('#').trim().to_owned(),
            )
        })
        .collect()
}

pub(super) fn list(folder: Option<&Path>, of_servers: &[McpPrompt]) -> String {
    let place = folder.map_or_else(
        || "~/.config/podbay/commands".to_owned(),
        |path| path.display().to_string(),
    );
    let mut out = String::new();
    let all = help(&all(folder)).into_iter();
    for (name, help) in all.chain(help_of_servers(of_servers)) {
        out.push_str(&format!("/{name}  {help}\n"));
    }
    out.push_str(&format!(
        "A file NAME.md in {place} makes the command /NAME; $ARGUMENTS in it is what stands behind it.\n"
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_a_command_and_its_words_go_where_they_belong() {
        let temp = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("fix.md", "# Fix an issue\nFix $ARGUMENTS now.\n"),
            ("tidy.md", "Tidy up.\n"),
            ("no name.md", "x"),
            ("notes.txt", "x"),
        ] {
            fs::write(temp.path().join(name), text).expect("ours");
        }
        fs::create_dir(temp.path().join("folder.md")).expect("ours");
        let prompts = all(Some(temp.path()));
        assert_eq!(
            help(&prompts),
            [
                ("fix".to_owned(), "Fix an issue".to_owned()),
                ("tidy".to_owned(), "Tidy up.".to_owned())
            ]
        );
        let said = |line| message(line, &prompts);
        assert_eq!(
            said("/fix  issue 7 ").as_deref(),
            Some("# Fix an issue\nFix issue 7 now.\n")
        );
        assert_eq!(said("/tidy src").as_deref(), Some("Tidy up.\n\nsrc"));
        assert_eq!(said("/tidy").as_deref(), Some("Tidy up."));
        assert_eq!(said("/other"), None);
        assert_eq!(said("fix"), None);
        assert!(list(None, &[]).contains("~/.config/podbay/commands"));
    }
}
