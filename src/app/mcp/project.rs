//! The project's `.mcp.json`, and whether the user has enabled it.

use std::path::Path;

use crate::Error;
use crate::bench::open_project;
use podbay_config::ProjectFile;
use podbay_config::Trust;
use podbay_config::TrustState;
use podbay_mcp as mcp;
use podbay_mcp::ProjectServers;
use podbay_sandbox::Project;
use podbay_session::State;

/// The file as it was read: the same bytes are shown, enabled and used.
#[derive(Clone, Debug)]
pub struct ProjectMcp {
    pub file: ProjectFile,
    pub standing: TrustState,
    /// What it names; the error says why it names nothing.
    pub servers: Result<ProjectServers, String>,
    project: Project,
}

impl ProjectMcp {
    pub(super) fn read(project: &Project, state: &State) -> Result<Option<Self>, Error> {
        let file = ProjectFile::read_top(project.path(), mcp::PROJECT_FILE);
        let Some(file) = file.map_err(Error::Config)? else {
            return Ok(None);
        };
        let standing = Trust::new(state.mcp())
            .standing(&project.key(), project.path(), &file)
            .map_err(Error::Config)?;
        Ok(Some(Self {
            standing,
            servers: mcp::project_servers(file.text()),
            file,
            project: project.clone(),
        }))
    }

    /// Returns whether the user has enabled these bytes.
    pub fn is_enabled(&self) -> bool {
        self.standing == TrustState::Trusted
    }

    /// Returns the servers and their commands in words, one line each.
    pub fn lines(&self) -> Vec<String> {
        match &self.servers {
            Ok(found) => {
                let usable = found
                    .servers
                    .iter()
                    .map(|(name, options)| format!("{name}: {}", options.whole_command_line()));
                let skipped = found
                    .skipped
                    .iter()
                    .map(|(name, why)| format!("{name}: cannot be used: {why}"));
                usable.chain(skipped).collect()
            }
            Err(problem) => vec![format!(
                "it cannot be read: {}",
                mcp::plain_line(problem, 200)
            )],
        }
    }
}

/// Reads the file of a project; `None`: there is none.
pub fn project_mcp(folder: &Path, state: &State) -> Result<Option<ProjectMcp>, Error> {
    ProjectMcp::read(&open_project(folder, state)?, state)
}

/// Enables the file as it was read.
pub fn trust_project_mcp(own: &ProjectMcp, state: &State) -> Result<(), Error> {
    Trust::new(state.mcp())
        .accept(&own.project.key(), own.project.path(), &own.file)
        .map_err(Error::Config)
}

/// Takes that back; returns whether the file was enabled.
pub fn revoke_project_mcp(folder: &Path, state: &State) -> Result<bool, Error> {
    let project = open_project(folder, state)?;
    Trust::new(state.mcp())
        .revoke(&project.key())
        .map_err(Error::Config)
}
