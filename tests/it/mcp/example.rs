//! The settings of `examples/mcp`, as a user would name them.

use std::path::Path;

use crate::support::TestEnv;
use crate::support::test_env::run;

#[test]
fn the_settings_of_the_example_name_its_three_servers() {
    let env = TestEnv::new();
    let settings = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/mcp/settings.toml");
    let mut command = env.podbay(&["mcp", "list", "--config"]);
    command.arg(settings).arg("-C").arg(env.project());
    let listed = run(&mut command).expect(0);
    for words in [
        "git  (settings)",
        "mcp-server-git --repository /workspace",
        "time  (settings)",
        "mcp-server-time --local-timezone UTC",
        "fetch  (settings)",
        "mcp-server-fetch --allow-private-ips",
    ] {
        assert!(listed.text().contains(words), "{words}: {}", listed.text());
    }
    assert_eq!(listed.stderr, "");
}
