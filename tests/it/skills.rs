//! Skills on the command line, without a sandbox.

use std::fs;

use crate::support::TestEnv;
use crate::support::test_env::run;

#[test]
fn a_project_may_switch_skills_off_and_not_on() {
    let env = TestEnv::new();
    env.write(
        ".podbay/skills/release/SKILL.md",
        "---\ndescription: Releases\n---\nDo it.\n",
    );
    let listed = |user: &str, project: &str| {
        let config = env.beside("user.toml");
        fs::write(&config, user).expect("written");
        env.write(".podbay/config.toml", project);
        let mut command = env.podbay(&["skills", "list", "--json", "-C"]);
        command.arg(env.project()).arg("--config").arg(&config);
        let json = run(&mut command).expect(0).json();
        let n_skills = json["skills"].as_array().map(Vec::len);
        (json["enabled"].as_bool(), n_skills)
    };
    let (on, off) = ("skills.enabled = true\n", "skills.enabled = false\n");
    assert_eq!(listed("", ""), (Some(true), Some(1)));
    assert_eq!(listed("", off), (Some(false), Some(1)));
    assert_eq!(listed(off, ""), (Some(false), Some(1)));
    assert_eq!(listed(off, on), (Some(false), Some(1)));
    let (on, off) = ("skills.project = true\n", "skills.project = false\n");
    assert_eq!(listed("", off), (Some(true), Some(0)));
    assert_eq!(listed(off, on), (Some(true), Some(0)));
}
