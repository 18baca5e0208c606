//! All settings, the origin of each, and errors in them.
//!
//! Each module has its own `Options`, with defaults and docs. Here they are combined, read in
//! layers, and explained. Layers, the weakest first: defaults, the system's file, the user's file,
//! the project's file, `--config`, the environment, flags. The project's own `.podbay/config.toml`
//! comes with the code, and the agent may have written it: it may only restrict ([`Latitude`])
//! until the user trusts it ([`Trust`]).
//!
//! Start with [`Config`], then [`load`].

mod answers;
mod api_key;
mod autonomy;
mod bounds;
mod document;
mod env_vars;
mod error;
mod hooks;
mod key;
mod latitude;
mod layer;
mod load;
mod markdown_files;
mod mcp_servers;
mod origin;
mod project;
mod project_folder;
mod provider;
mod reference;
mod schema;
mod secret;
mod settings_file;
mod skill_contents;
mod skill_files;
mod sources;
mod template;
mod toml_errors;
mod trust;
mod untrusted_settings;
mod user_file;
mod user_folder;

pub use answers::Answers;
pub use api_key::KeyError;
pub use api_key::key_of_file;
pub use api_key::key_of_variable;
pub use error::Error;
pub use key::near;
pub use latitude::Latitude;
pub use latitude::Unit;
pub use load::Loaded;
pub use load::load;
pub use markdown_files::AGENTS_FOLDER;
pub use markdown_files::COMMANDS_FOLDER;
pub use markdown_files::MarkdownFile;
pub use markdown_files::MarkdownFiles;
pub use origin::Origin;
pub use origin::Origins;
pub use project::PROJECT_FILE;
pub use project::ProjectFile;
pub use reference::Explained;
pub use reference::Setting;
pub use reference::explain;
pub use reference::markdown;
pub use reference::render;
pub use reference::schema;
pub use reference::settings;
pub use reference::shown;
pub use reference::value;
pub use schema::Config;
pub use settings_file::SettingsFile;
pub use settings_file::check_key;
pub use skill_contents::SkillContent;
pub use skill_contents::SkillContents;
pub use skill_files::SKILL_FILE;
pub use skill_files::SKILLS_FOLDERS;
pub use skill_files::SkillFile;
pub use skill_files::SkillFiles;
pub use skill_files::SkillPlace;
pub use sources::Flag;
pub use sources::ProjectLayer;
pub use sources::Sources;
pub use template::template;
pub use trust::Trust;
pub use trust::TrustState;
pub use trust::Trusted;
pub use untrusted_settings::IgnoredSetting;
pub use user_folder::user_folder;
