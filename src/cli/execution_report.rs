//! The execution report of a session, in the form and at the place that are asked for.

use std::fs::File;
use std::fs::OpenOptions;
use std::io;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::path::PathBuf;

use clap::ValueEnum;

use podbay_app as app;
use podbay_event::ExecutionReport;
use podbay_ui as ui;
use podbay_ui::Paint;
use podbay_ui::text;

/// The forms of an execution report.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum ReportFormat {
    /// For a terminal
    #[default]
    Text,
    /// For people
    Markdown,
    /// A page for a browser
    Html,
    /// One object
    Json,
}

impl ReportFormat {
    /// Returns the form that the name of a file means, by its end.
    fn of_file(path: &Path) -> Result<Self, app::Error> {
        match path.extension().and_then(|end| end.to_str()) {
            Some("md" | "markdown") => Ok(Self::Markdown),
            Some("html" | "htm") => Ok(Self::Html),
            Some("json") => Ok(Self::Json),
            Some("txt") => Ok(Self::Text),
            _ => Err(app::Error::usage(
                format!(
                    "the report `{}` has no form: its name ends with none that is known",
                    path.display()
                ),
                "let it end with .md, .html, .json or .txt",
            )),
        }
    }

    pub(super) fn render(self, report: &ExecutionReport, paint: Paint) -> String {
        match self {
            Self::Text => ui::report_text(report, paint),
            Self::Markdown => ui::report_markdown(report),
            Self::Html => ui::html_page("Execution report", &ui::report_markdown(report)),
            Self::Json => podbay_event::json_line(report).unwrap_or_default() + "\n",
        }
    }
}

/// Returns the report of this session.
pub(super) fn of_session(state: &app::State, id: &str) -> Result<ExecutionReport, app::Error> {
    app::execution_report(state, id, &text::clean)
}

/// Where the report of a run goes: on the terminal, or into a file that its name tells the form of.
///
/// The file is opened before the agent does anything, so that no link of its own making leads the
/// report to another place.
pub(super) enum ReportPlace {
    Terminal,
    File {
        path: PathBuf,
        file: File,
        format: ReportFormat,
    },
}

impl ReportPlace {
    /// Reads `--report[=FILE]`; the setting asks for it on the terminal.
    pub(super) fn open(
        flag: Option<&Path>,
        setting: bool,
        project: &Path,
    ) -> Result<Option<Self>, app::Error> {
        let Some(path) = flag else {
            return Ok(setting.then_some(Self::Terminal));
        };
        if path == Path::new("-") {
            return Ok(Some(Self::Terminal));
        }
        let format = ReportFormat::of_file(path)?;
        check_place(path, project)?;
        let file = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .map_err(writing(path))?;
        Ok(Some(Self::File {
            path: path.to_owned(),
            file,
            format,
        }))
    }

    /// Writes the report of a session there.
    pub(super) fn write(
        &mut self,
        state: &app::State,
        id: &str,
        paint: Paint,
    ) -> Result<(), app::Error> {
        let report = of_session(state, id)?;
        match self {
            Self::Terminal => {
                super::say(&ReportFormat::Text.render(&report, paint));
                Ok(())
            }
            Self::File { path, file, format } => {
                let text = format.render(&report, Paint::NONE);
                file.set_len(0)
                    .and_then(|()| file.write_all(text.as_bytes()))
                    .map_err(writing(path))
            }
        }
    }
}

/// Writes a file that is not there yet, for a user in a chat.
pub(super) fn write_new(path: &str, text: &str, project: &Path) -> Result<(), app::Error> {
    let path = Path::new(path);
    check_place(path, project)?;
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(writing(path))
}

/// Refuses a place in the project that a link of the project leads out of it: the agent may have
/// made the link.
fn check_place(path: &Path, project: &Path) -> Result<(), app::Error> {
    let project = project.canonicalize().map_err(writing(path))?;
    let named = std::path::absolute(path).map_err(writing(path))?;
    let named = named.parent().unwrap_or(&named);
    let real = named.canonicalize().map_err(writing(path))?;
    if named.starts_with(&project) && !real.starts_with(&project) {
        return Err(app::Error::usage(
            format!(
                "a link in the project leads `{}` to {}",
                path.display(),
                real.display()
            ),
            "name a folder that is no link",
        ));
    }
    Ok(())
}

fn writing(path: &Path) -> impl FnOnce(io::Error) -> app::Error {
    let doing = format!("write the file `{}`", path.display());
    |source| app::Error::Io { doing, source }
}
