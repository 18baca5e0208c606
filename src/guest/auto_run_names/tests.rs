use std::collections::BTreeSet;

use super::*;

#[track_caller]
fn check(path: &str, expected: Option<(&str, RunTrigger)>) {
    let found = auto_run_group(&path.into()).map(|group| (group.program, group.when));
    assert_eq!(found, expected, "{path}");
}

/// The program is matched by a part of its name in the table.
#[track_caller]
fn runs(when: RunTrigger, program: &str, paths: &str) {
    for path in paths.split_whitespace() {
        let group = auto_run_group(&path.into()).unwrap_or_else(|| panic!("{path} is not known"));
        assert!(
            group.when == when && group.program.contains(program),
            "{path}: {group:?}"
        );
    }
}

#[test]
fn each_name_occurs_once_in_a_group_with_a_program() {
    assert!(
        TABLE
            .groups
            .iter()
            .all(|group| !group.program.is_empty() && group.program.trim() == group.program)
    );
    let mut seen = BTreeSet::new();
    let names = TABLE.plain.values().flatten().chain(&TABLE.globs);
    for name in names {
        let whole = format!("{:?}{:?}{}", name.folders, name.last, name.is_folder);
        assert!(seen.insert(whole.clone()), "{whole} is there twice");
        assert!(
            name.folders.iter().all(|folder| !folder.contains('*')),
            "{whole}: a `*` is for the last part"
        );
        assert!(
            name.last.1.is_none() || !name.is_folder,
            "{whole}: a folder has no `*`"
        );
    }
    assert!(seen.len() > 900, "{}", seen.len());
}

#[test]
fn files_that_run_by_themselves_are_known_in_any_folder() {
    let by_itself = |program, paths| runs(RunTrigger::ByItself, program, paths);
    by_itself("direnv", ".envrc deep/er/.ENVRC .envrc.local");
    by_itself("shell", ".flaskenv .direnv/python/x .env");
    by_itself(
        "mise",
        "mise.local.toml .mise/tasks/build .config/mise/config.toml",
    );
    by_itself(
        "VS Code",
        ".vscode/tasks.json sub/.vscode my.code-workspace",
    );
    by_itself("JetBrains", "sub/.idea/workspace.xml .run/App.run.xml");
    by_itself("Vim", ".exrc .nvim.lua");
    by_itself(
        "editor",
        ".vs/tasks.vs.json .helix/languages.toml my.sublime-project .tern-project .graphqlrc.ts",
    );
    by_itself(
        "hooks",
        ".husky/pre-commit .pre-commit-config.yaml lefthook-local.yml .overcommit.yml lint-staged.config.mjs .lefthook/x",
    );
    by_itself(
        "git",
        "sub/.git/hooks/pre-commit .gitconfig .gitattributes .commitlintrc.json",
    );
    by_itself("mercurial", ".hg/hgrc sub/.hg");
    by_itself("version control", ".jj/repo/config.toml");
    by_itself(
        "agent",
        "AGENTS.md .mcp.json .claude/settings.json opencode.jsonc .github/copilot-instructions.md skills/x/SKILL.md",
    );
    by_itself("container", ".devcontainer/devcontainer.json");
    by_itself(
        "python",
        "x/pyvenv.cfg .venv/lib/python3.12/site-packages/a.pth sitecustomize.py lib/_distutils_hack/__init__.py",
    );
    by_itself("python", ".venv/bin/python3 api/venv/bin/activate");
}

#[test]
fn files_that_run_on_request_are_known_as_such() {
    let when_run = |program, paths| runs(RunTrigger::WhenYouRunIt, program, paths);
    when_run(
        "CI",
        ".github/workflows/ci.yml .gitlab-ci.yml Jenkinsfile .forgejo/workflows/ci.yml dangerfile.ts .circleci/config.yml",
    );
    when_run(
        "npm",
        "web/package.json .npmrc .pnp.cjs .yarn/releases/yarn-4.cjs",
    );
    when_run(
        "pip",
        "pyproject.toml setup.py requirements-dev.txt uv.toml",
    );
    when_run("cargo", "crates/a/build.rs .cargo/config.toml Cargo.toml");
    when_run("make", "Makefile MAKEFILE rules/x.mk BSDmakefile");
    when_run(
        "cmake",
        "build/CMakeCache.txt build/CMakeFiles/foo.dir/link.txt",
    );
    when_run("container", "Dockerfile.dev compose.override.yaml");
    when_run(
        "test runner",
        "tests/conftest.py tox.toml .rspec phpunit.xml.dist cypress.config.ts .config/nextest.toml",
    );
    when_run(
        "java",
        "project/plugins.sbt project/Build.scala app/build.gradle.kts",
    );
    when_run(
        "Xcode",
        "ios/App.xcodeproj/project.pbxproj Package@swift-5.5.swift",
    );
    when_run(
        "ruby",
        "site/_plugins/x.rb config/puma.rb config/puma/production.rb Capfile",
    );
    when_run(
        "build tool",
        "lib/BUCK build.zig.zon nix/packages.nix app/app.pro lakefile.lean",
    );
    when_run("documentation", "docs/conf.py paper/.latexmkrc");
    when_run(
        "bundler",
        "vue.config.js nx.json apps/web/project.json drizzle.config.ts tsconfig.json tsconfig.build.json",
    );
    when_run(
        "linter",
        ".rubocop_todo.yml .pylintrc .versionrc.js .luacheckrc",
    );
    when_run("starts", ".pdbrc .tmuxinator.yml alembic/env.py startup.m");
    when_run(
        "deploys",
        "infra/main.tf.json Pulumi.dev.yaml Procfile.dev .terraform/providers/x sst.config.ts",
    );
    when_run(
        "environment",
        ".venv/bin/black node_modules/.bin/jest vendor/bin/phpunit",
    );
    when_run(
        "source beside it",
        "src/__pycache__/mod.cpython-311.pyc src/a.so src/a.cpython-311-x86_64-linux-gnu.so lisp/foo.elc",
    );
}

#[test]
fn files_that_name_others_are_told_from_those_that_run_alone() {
    for path in [
        ".envrc",
        ".vscode/tasks.json",
        ".claude/settings.json",
        ".husky/pre-commit",
        ".pre-commit-config.yaml",
        ".devcontainer/devcontainer.json",
    ] {
        assert!(naming_group(&path.into()).is_some(), "{path}");
    }
    for path in [
        "AGENTS.md",
        ".vscode/settings.json",
        "Makefile",
        ".github/workflows/ci.yml",
        "package.json",
    ] {
        assert_eq!(naming_group(&path.into()), None, "{path}");
    }
}

#[test]
fn everyday_files_are_in_no_group() {
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
        "build/x",
        "env/binary",
        "node_modules/x/index.js",
        "config/nextest.toml",
        "src/env/x.py",
        "misery.md",
        "src/mise/x",
        "src/app/app.config.ts",
        "app/conf.py",
        "src/config.ts",
        "docs/config.js",
        "constraints.md",
        "vs/x",
        "src/run/x.rs",
        "dune.rs",
        "premake.md",
        "vendor/binary/x",
        "src/lsp/x.rs",
        "src/graphql.ts",
        "bloop/x",
        "src/codegen.rs",
        "src/puma.rb",
        "app/env.py",
        "src/plugins/x.rb",
        "venv.md",
        "",
    ] {
        check(path, None);
    }
}

#[test]
fn whole_folders_are_known_by_their_name_or_by_a_file_in_them() {
    for (path, is_folder) in [
        ("node_modules", true),
        ("web/node_modules", true),
        (".venv", true),
        ("any/pyvenv.cfg", false),
        ("vendor/bundle", true),
    ] {
        assert!(
            whole_folder_group(&path.into(), is_folder).is_some_and(|group| group.is_whole),
            "{path}"
        );
        assert_eq!(whole_folder_group(&path.into(), !is_folder), None, "{path}");
    }
    for path in ["src", "node_modules/x", ".venv/bin", "bundle", ".vscode"] {
        assert_eq!(whole_folder_group(&path.into(), true), None, "{path}");
    }
    // A link of that name leads elsewhere.
    check(".venv", Some(("python at its start", RunTrigger::ByItself)));
    check(
        "x/pyvenv.cfg",
        Some(("python at its start", RunTrigger::ByItself)),
    );
}
