//! One file per tool: its description for the model, its aliases, and the action that its arguments
//! mean.
//!
//! A new tool is a file here, its name in [`all`], and a test. A tool that runs in the sandbox also
//! has a file in `guest/tools`.

mod apply_patch;
mod archive;
mod ask_user;
mod bash;
mod cd;
mod copy_file;
mod create_plan;
mod delete_file;
mod edit_file;
mod edit_lines;
mod enter_plan_mode;
mod env;
mod get_process_output;
mod git_branch;
mod git_checkout;
mod git_commit;
mod git_diff;
mod git_log;
mod git_stash;
mod git_status;
mod glob;
mod grep;
mod implement_plan;
pub(super) mod install_dependencies;
mod list_directory;
mod list_processes;
pub(super) mod memory_save;
mod mkdir;
pub(super) mod more_tools;
mod move_file;
mod multi_edit;
pub(super) mod network_diagnostics;
mod read_file;
pub(super) mod sandbox_run;
pub(super) mod spawn_agent;
mod start_background_process;
mod stop_process;
pub(super) mod task_list;
mod think;
mod tree;
mod update_config;
pub(super) mod use_skill;
pub(super) mod web_fetch;
pub(super) mod web_search;
mod write_file;

pub(super) use task_list::MOST as MOST_TASKS;

use super::Options;
use super::tool::Tool;

/// Returns every tool of this folder, in the order in which they are listed.
pub(super) fn all(options: &Options) -> Vec<Tool> {
    vec![
        read_file::tool(options),
        edit_file::tool(),
        write_file::tool(),
        list_directory::tool(),
        grep::tool(),
        bash::tool(options),
        glob::tool(),
        multi_edit::tool(),
        apply_patch::tool(),
        edit_lines::tool(),
        delete_file::tool(),
        copy_file::tool(),
        move_file::tool(),
        mkdir::tool(),
        tree::tool(),
        git_status::tool(),
        git_diff::tool(),
        ask_user::tool(),
        task_list::tool(),
        more_tools::tool(),
        memory_save::tool(),
        spawn_agent::tool(),
        use_skill::tool(),
        git_log::tool(),
        git_commit::tool(),
        git_branch::tool(),
        git_checkout::tool(),
        git_stash::tool(),
        enter_plan_mode::tool(),
        create_plan::tool(),
        implement_plan::tool(),
        think::tool(),
        start_background_process::tool(),
        get_process_output::tool(),
        list_processes::tool(),
        stop_process::tool(),
        cd::tool(),
        env::tool(),
        archive::tool(),
        update_config::tool(),
        install_dependencies::tool(),
        web_fetch::tool(),
        network_diagnostics::tool(),
        web_search::tool(),
        sandbox_run::tool(options),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use podbay_policy::Action;
    use podbay_policy::HOST_TOOLS;

    #[test]
    fn what_is_known_of_a_tool_by_its_name_is_where_rules_look_for_it() {
        for tool in all(&Options::default()) {
            let example = serde_json::from_str(tool.example()).expect("an example is JSON");
            let action = tool.action(example, &Options::default(), &mut Vec::new());
            let is_known = match action.expect("an example is valid") {
                Action::Box(_) => podbay_wire::tool(tool.name).is_some(),
                Action::Host(_) => HOST_TOOLS.contains(&tool.name),
            };
            assert!(is_known, "{} is in neither list", tool.name);
        }
    }

    #[test]
    fn each_file_defines_the_tool_of_its_name() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/definitions");
        let names = std::fs::read_dir(folder)
            .expect("the sources")
            .map(|entry| entry.expect("an entry").file_name());
        let mut files: Vec<String> = names
            .filter_map(|name| Some(name.to_str()?.strip_suffix(".rs")?.to_owned()))
            .collect();
        files.retain(|name| name != "mod");
        files.sort();
        let mut tools: Vec<&str> = all(&Options::default())
            .iter()
            .map(|tool| tool.name)
            .collect();
        tools.sort_unstable();
        assert_eq!(files, tools);
    }
}
