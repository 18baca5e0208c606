//! Prompts as slash commands: Markdown files of the user's and of the project, and those of MCP
//! servers. A prompt is text that becomes the user's message; nothing in it is executed.

use std::path::Path;
use std::path::PathBuf;

use podbay_app::McpPrompt;
use podbay_config::COMMANDS_FOLDER;
use podbay_config::MarkdownFile;
use podbay_config::MarkdownFiles;
use podbay_event::is_hidden;
use podbay_ui::slash;
use podbay_ui::text;

/// A longer file is no prompt.
const LONGEST: u64 = 64 << 10;
const LONGEST_NAME: usize = 40;
/// Characters of a prompt's first line that its help shows.
const MOST_HELP: usize = 100;

/// A prompt, by its file's name.
#[derive(Debug)]
pub(super) struct Prompt {
    name: String,
    text: String,
    /// It is a file of the project, which is untrusted.
    is_of_project: bool,
}

/// The prompts of a chat.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    all: Vec<Prompt>,
    /// Why files are none.
    problems: Vec<String>,
}

/// What a prompt stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) text: String,
    /// The user did not write it, and is shown it.
    pub(super) is_of_project: bool,
}

/// Returns where the user's are: beside their settings.
fn user_folder() -> Option<PathBuf> {
    podbay_config::user_folder().map(|folder| folder.join("commands"))
}

impl Prompts {
    /// Reads those of the user and of a project.
    pub(super) fn of(project: &Path) -> Self {
        Self::read(user_folder().as_deref(), project)
    }

    fn read(user: Option<&Path>, project: &Path) -> Self {
        let mut prompts = Self::default();
        if let Some(folder) = user {
            prompts.add(MarkdownFiles::of_user(folder, LONGEST), false);
        }
        let files = MarkdownFiles::of_project(project, COMMANDS_FOLDER, LONGEST);
        prompts.add(files, true);
        prompts.all.sort_by(|a, b| a.name.cmp(&b.name));
        prompts
    }

    fn add(&mut self, files: MarkdownFiles, is_of_project: bool) {
        self.problems.extend(files.problem);
        for file in files.files {
            let path = file.path.display().to_string();
            match self.prompt(file, is_of_project) {
                Ok(prompt) => self.all.push(prompt),
                Err(problem) => self
                    .problems
                    .push(format!("{path} is no command: {problem}")),
            }
        }
    }

    /// A prompt replaces no command, and one of the project none of the user's.
    fn prompt(&self, file: MarkdownFile, is_of_project: bool) -> Result<Prompt, String> {
        let (name, text) = (file.stem, file.text?);
        let is_name = name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if !is_name || name.len() > LONGEST_NAME {
            return Err(format!(
                "its name is not letters, digits, - and _, at most {LONGEST_NAME}"
            ));
        }
        if slash::is_command(&name) {
            return Err(format!("/{name} is a command of Podbay's own"));
        }
        if self.find(&name).is_some() {
            return Err(format!("/{name} is a command of the user's already"));
        }
        // What the user is shown is what the model reads.
        if is_of_project && text.chars().any(is_unseen) {
            return Err("it has invisible characters".to_owned());
        }
        Ok(Prompt {
            name,
            text,
            is_of_project,
        })
    }

    fn find(&self, name: &str) -> Option<&Prompt> {
        self.all.iter().find(|prompt| prompt.name == name)
    }

    /// Returns the message that `/name words` stands for, if there is such a prompt.
    pub(super) fn message(&self, line: &str) -> Option<Message> {
        let line = line.trim().strip_prefix('/')?;
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let prompt = self.find(name)?;
        let rest = rest.trim();
        let text = if prompt.text.contains("$ARGUMENTS") {
            prompt.text.replace("$ARGUMENTS", rest)
        } else {
            format!("{}\n\n{rest}", prompt.text.trim_end())
                .trim_end()
                .to_owned()
        };
        Some(Message {
            text,
            is_of_project: prompt.is_of_project,
        })
    }

    /// Returns each with whose it is and its first line, those of MCP servers behind them.
    pub(super) fn help(&self, of_servers: &[McpPrompt]) -> Vec<(String, String)> {
        let own = self.all.iter().map(|prompt| {
            let first = prompt.text.lines().next().unwrap_or_default();
            let first = first.trim_start_matches('#').trim();
            let help: String = text::line(first).chars().take(MOST_HELP).collect();
            let whose = if prompt.is_of_project {
                "the project's: "
            } else {
                ""
            };
            (prompt.name.clone(), format!("{whose}{help}"))
        });
        let of_servers = of_servers.iter().map(|prompt| {
            let help = format!("{}  {}", prompt.usage(), prompt.description);
            (prompt.name.clone(), help.trim().to_owned())
        });
        own.chain(of_servers).collect()
    }

    /// Returns a line of help for each.
    pub(super) fn lines(&self, of_servers: &[McpPrompt]) -> String {
        self.help(of_servers)
            .into_iter()
            .map(|(name, help)| format!("{:<28} {help}\n", format!("/{name}")))
            .collect()
    }

    /// Returns what `/prompt` says.
    pub(super) fn list(&self, of_servers: &[McpPrompt]) -> String {
        let mut out = self.lines(of_servers);
        for problem in &self.problems {
            out.push_str(&format!("careful: {}\n", text::line(problem)));
        }
        let place = user_folder().map_or_else(
            || "~/.config/podbay/commands".to_owned(),
            |path| path.display().to_string(),
        );
        out.push_str(&format!(
            "A file NAME.md in {place}, or in {COMMANDS_FOLDER} of the project, makes the command /NAME; $ARGUMENTS in it is what stands behind it.\n"
        ));
        out
    }
}

fn is_unseen(c: char) -> bool {
    is_hidden(c) && !matches!(c, '\n' | '\t' | '\r')
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

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(folder: &Path, files: &[(&str, &str)]) {
        fs::create_dir_all(folder).expect("ours");
        for (name, text) in files {
            fs::write(folder.join(name), text).expect("ours");
        }
    }

    #[test]
    fn a_file_is_a_command_and_its_words_go_where_they_belong() {
        let temp = tempfile::tempdir().expect("a folder");
        let user = temp.path().join("commands");
        write(
            &user,
            &[
                ("fix.md", "# Fix an issue\nFix $ARGUMENTS now.\n"),
                ("tidy.md", "Tidy up.\n"),
                ("no name.md", "x"),
                ("notes.txt", "x"),
            ],
        );
        fs::create_dir(user.join("folder.md")).expect("ours");
        let prompts = Prompts::read(Some(&user), temp.path());
        assert_eq!(
            prompts.help(&[]),
            [
                ("fix".to_owned(), "Fix an issue".to_owned()),
                ("tidy".to_owned(), "Tidy up.".to_owned())
            ]
        );
        let said = |line| prompts.message(line).map(|message| message.text);
        assert_eq!(
            said("/fix  issue 7 ").as_deref(),
            Some("# Fix an issue\nFix issue 7 now.\n")
        );
        assert_eq!(said("/tidy src").as_deref(), Some("Tidy up.\n\nsrc"));
        assert_eq!(said("/tidy").as_deref(), Some("Tidy up."));
        assert_eq!(said("/other"), None);
        assert_eq!(said("fix"), None);
        assert!(Prompts::default().list(&[]).contains(".podbay/commands"));
    }

    #[test]
    fn a_command_of_the_project_says_so_and_replaces_none() {
        let temp = tempfile::tempdir().expect("a folder");
        let (user, project) = (temp.path().join("user"), temp.path().join("project"));
        let folder = project.join(COMMANDS_FOLDER);
        write(&user, &[("fix.md", "Mine.")]);
        write(
            &folder,
            &[
                ("fix.md", "Theirs."),
                ("diff.md", "Obey."),
                ("q.md", "Obey."),
                ("ship.md", "# Ship \u{1b}[2Jit\n!rm -rf $ARGUMENTS"),
                ("plain.md", "!rm -rf $ARGUMENTS"),
                ("seen.md", "Tag\u{e0041}s"),
                ("huge.md", &"x".repeat(70 << 10)),
            ],
        );
        fs::write(temp.path().join("secret.md"), "secret").expect("ours");
        symlink(temp.path().join("secret.md"), folder.join("link.md")).expect("ours");
        let prompts = Prompts::read(Some(&user), &project);
        assert_eq!(
            prompts.help(&[]),
            [
                ("fix".to_owned(), "Mine.".to_owned()),
                (
                    "plain".to_owned(),
                    "the project's: !rm -rf $ARGUMENTS".to_owned()
                ),
            ]
        );
        assert_eq!(
            prompts.message("/plain /"),
            Some(Message {
                text: "!rm -rf /".to_owned(),
                is_of_project: true
            })
        );
        let list = prompts.list(&[]);
        for problem in [
            "fix.md is no command: /fix is a command of the user's already",
            "diff.md is no command: /diff is a command of Podbay's own",
            "q.md is no command: /q is a command of Podbay's own",
            "ship.md is no command: it has invisible characters",
            "seen.md is no command: it has invisible characters",
            "huge.md is no command: it has more than 65536 bytes",
            "link.md is no command: it is a symbolic link",
        ] {
            assert!(list.contains(problem), "{problem}: {list}");
        }
        // A folder that leads out of the project is none.
        fs::remove_dir_all(&folder).expect("ours");
        symlink(&user, &folder).expect("ours");
        assert_eq!(Prompts::read(None, &project).help(&[]), []);
    }
}
