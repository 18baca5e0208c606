//! Which files of a project programs on a person's machine run later, or obey, without being asked: what a run leaves there is named at its
//! end. `docs/security.md` has the list in words.

mod table;

use Is::End;
use Is::In;
use Is::Name;
use Is::Start;
use table::TABLE;

use super::BytesPath;

/// How a line of the table matches.
enum Is {
    /// A name, anywhere.
    Name(&'static str),
    /// All that lies in a folder of this name; of two names, in the second one right below the first.
    In(&'static str),
    /// The end of a name.
    End(&'static str),
    /// The beginning of a name.
    Start(&'static str),
}

/// Returns why a file that a run made or changed may run on the person's machine later; `None`: nobody that is known of obeys it by its name.
///
/// Names are compared without regard to case, which some file systems have none of.
pub fn may_run(path: &BytesPath) -> Option<&'static str> {
    let text = path.to_text().to_lowercase();
    let name = text.rsplit_once('/').map_or(text.as_str(), |(_, name)| name);
    let whole = format!("/{text}/");
    let fits = |is: &Is| match is {
        Name(known) => name == known.to_lowercase(),
        In(folder) => {
            let is_border = |at: usize| whole.as_bytes()[at] == b'/';
            whole.match_indices(folder).any(|(at, _)| is_border(at - 1) && is_border(at + folder.len()))
        }
        End(end) => name.ends_with(end),
        Start(start) => name.starts_with(&start.to_lowercase()),
    };
    TABLE.iter().find(|(is, _)| fits(is)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::table::AGENT;
    use super::table::BUILD;
    use super::table::BYTECODE;
    use super::table::CI;
    use super::table::CLOUD;
    use super::table::CONTAINER;
    use super::table::EDITOR;
    use super::table::GIT;
    use super::table::HG;
    use super::table::INSTALL;
    use super::table::OTHER;
    use super::table::PYTHON;
    use super::table::SHELL;
    use super::table::TEST;
    use super::table::TOOL;
    use super::*;

    #[test]
    fn what_the_host_runs_later_is_known_wherever_it_lies() {
        for (path, why) in [
            (".vscode/tasks.json", EDITOR),
            ("sub/.idea/workspace.xml", EDITOR),
            ("sub/.vscode", EDITOR),
            (".envrc", SHELL),
            (".cargo/config.toml", BUILD),
            ("crates/a/build.rs", BUILD),
            ("web/package.json", INSTALL),
            ("Makefile", BUILD),
            ("MAKEFILE", BUILD),
            ("rules/x.mk", BUILD),
            ("tests/conftest.py", TEST),
            (".npmrc", INSTALL),
            (".mcp.json", AGENT),
            ("AGENTS.md", AGENT),
            (".github/workflows/ci.yml", CI),
            (".github/copilot-instructions.md", AGENT),
            (".devcontainer/devcontainer.json", CONTAINER),
            ("my.code-workspace", EDITOR),
            ("sub/.git/hooks/pre-commit", GIT),
            (".husky/pre-commit", GIT),
            ("Dockerfile.dev", CONTAINER),
            ("compose.override.yaml", CONTAINER),
            ("venv/x.pth", PYTHON),
            (".hg/hgrc", HG),
            ("sub/.hg", HG),
            (".overcommit.yml", GIT),
            (".git-hooks/pre_commit/check.rb", GIT),
            ("tox.toml", TEST),
            (".kitchen.yml", TEST),
            ("Cartfile.resolved", INSTALL),
            ("Manifest.toml", INSTALL),
            ("app/app.pro", BUILD),
            ("common.pri", BUILD),
            (".pdbrc", TOOL),
            (".octaverc", TOOL),
            ("startup.m", TOOL),
            (".tmuxinator.yml", TOOL),
            (".venv/bin/python", TOOL),
            ("api/venv/bin/activate", TOOL),
            (".pylintrc", TOOL),
            (".rubocop.yml", TOOL),
            (".rubocop_todo.yml", TOOL),
            (".pytest.ini", TEST),
            ("pytest.toml", TEST),
            (".rspec", TEST),
            (".phpunit.xml", TEST),
            ("phpunit.xml.dist", TEST),
            ("cypress.config.ts", TEST),
            ("build.zig", BUILD),
            ("build.zig.zon", BUILD),
            ("lib/BUCK", BUILD),
            ("CMakeUserPresets.json", BUILD),
            ("Directory.Build.rsp", BUILD),
            ("Dangerfile", CI),
            ("ios/Podfile", INSTALL),
            ("Guardfile", BUILD),
            ("Capfile", BUILD),
            ("fastlane/Fastfile", BUILD),
            ("fabfile.py", BUILD),
            ("dodo.py", BUILD),
            ("tasks.py", BUILD),
            ("devenv.nix", BUILD),
            ("my.sublime-project", EDITOR),
            ("build.cake", BUILD),
            ("src/__pycache__/mod.cpython-311.pyc", BYTECODE),
            ("node_modules/.bin/jest", TOOL),
            ("env/bin/python", TOOL),
            ("vue.config.js", BUILD),
            ("lint-staged.config.mjs", GIT),
            ("mise.local.toml", SHELL),
            (".mise/tasks/build", SHELL),
            ("project/plugins.sbt", BUILD),
            ("project/Build.scala", BUILD),
            (".config/nextest.toml", TEST),
            (".bundle/config", INSTALL),
            ("infra/main.tf.json", TOOL),
            ("Pulumi.dev.yaml", CLOUD),
            ("dangerfile.ts", CI),
            (".helix/languages.toml", EDITOR),
            (".commitlintrc.json", GIT),
            (".jj/repo/config.toml", OTHER),
            ("latexmkrc", TOOL),
            ("paper/.latexmkrc", TOOL),
            ("nx.json", BUILD),
            ("apps/web/project.json", BUILD),
            ("turbo.json", BUILD),
            ("lerna.json", BUILD),
            (".pnp.cjs", INSTALL),
            (".yarn/releases/yarn-4.cjs", INSTALL),
            (".pnpmfile.cjs", INSTALL),
            ("nix/packages.nix", BUILD),
            (".vs/tasks.vs.json", EDITOR),
            (".run/App.run.xml", EDITOR),
            (".dir-locals-2.el", EDITOR),
            (".config/mise/config.toml", SHELL),
            (".gitconfig", GIT),
            ("drizzle.config.ts", BUILD),
            ("Procfile.dev", CLOUD),
            ("docs/conf.py", BUILD),
            ("ios/App.xcodeproj/project.pbxproj", BUILD),
            (".terraform/providers/x", TOOL),
            (".forgejo/workflows/ci.yml", CI),
            ("opencode.jsonc", AGENT),
            (".luacheckrc", TOOL),
            (".sbtopts", BUILD),
            (".jvmopts", BUILD),
            (".bloop/app.json", BUILD),
            (".ghcid", TOOL),
            (".yardopts", TOOL),
            (".tern-project", EDITOR),
            (".lsp/config.edn", EDITOR),
            (".graphqlrc.ts", EDITOR),
            ("graphql.config.js", EDITOR),
            (".flaskenv", SHELL),
            ("build/CMakeCache.txt", BUILD),
            ("vendor/bin/phpunit", TOOL),
            ("lighthouserc.js", TOOL),
            ("BSDmakefile", BUILD),
            ("rolldown.config.ts", BUILD),
            ("tsdown.config.ts", BUILD),
            ("codegen.ts", BUILD),
            ("cspell.config.mjs", TOOL),
            (".versionrc.js", TOOL),
            ("lingui.config.js", BUILD),
            ("openapi-ts.config.ts", BUILD),
            (".umirc.ts", BUILD),
            (".dependency-cruiser.js", TOOL),
            ("sst.config.ts", CLOUD),
            ("lakefile.lean", BUILD),
            ("site/_plugins/x.rb", BUILD),
            ("config/puma.rb", BUILD),
            ("config/puma/production.rb", BUILD),
            ("config/boot.rb", BUILD),
            ("alembic/env.py", TOOL),
            ("pavement.py", BUILD),
            ("Policyfile.rb", BUILD),
            ("Steepfile", BUILD),
        ] {
            assert_eq!(may_run(&BytesPath::from_text(path)), Some(why), "{path}");
        }
    }

    #[test]
    fn everyday_files_are_not_reported() {
        for path in [
            "src/main.rs",
            "README.md",
            "docs/gradle.md",
            "Cargo/x.rs",
            "makefile.txt",
            "src/git/mod.rs",
            "a.py",
            "github/x",
            "envrc",
            "bin/x",
            ".venv/lib/x.py",
            "src/tasks/a.py",
            "buck/x",
            "env/binary",
            "node_modules/x/index.js",
            "config/nextest.toml",
            "src/env/x.py",
            "misery.md",
            "src/mise/x",
            "src/app/app.config.ts",
            "app/conf.py",
            "src/config.ts",
            "src/app.config",
            "docs/config.js",
            "constraints.md",
            "src/angular.ts",
            "vs/x",
            "src/run/x.rs",
            "dune.rs",
            "tsconfig.json",
            "premake.md",
            "vendor/binary/x",
            "src/lsp/x.rs",
            "src/graphql.ts",
            "lighthouse.md",
            "bloop/x",
            "src/codegen.rs",
            "src/puma.rb",
            "app/env.py",
            "src/plugins/x.rb",
        ] {
            assert_eq!(may_run(&BytesPath::from_text(path)), None, "{path}");
        }
    }
}
