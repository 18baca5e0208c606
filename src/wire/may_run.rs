//! Which files of a project programs on a person's machine run later, or obey, without being asked: what a run leaves there is named at its
//! end. `docs/security.md` has the list in words.

use super::BytesPath;

/// Who obeys a file.
const EDITOR: &str = "an editor runs what it says";
const SHELL: &str = "a shell runs it when it comes into the folder";
const GIT: &str = "git runs or obeys it";
const BUILD: &str = "a build runs what it says";
const INSTALL: &str = "a package manager runs what it says";
const TEST: &str = "a test runner runs it";
const CI: &str = "a CI server runs what it says";
const AGENT: &str = "coding agents obey it";
const CONTAINER: &str = "a container is built or started from it";
const PYTHON: &str = "python runs it at its start";
const TOOL: &str = "programs of that name obey it when they start in the folder";

/// How a line of the table matches.
enum Is {
    /// A name, anywhere.
    Name(&'static str),
    /// All that lies in a folder of this name.
    In(&'static str),
    /// The end of a name.
    End(&'static str),
    /// The beginning of a name.
    Start(&'static str),
}

use Is::End;
use Is::In;
use Is::Name;
use Is::Start;

/// The first line that fits says why.
const TABLE: &[(Is, &str)] = &[
    (Name("copilot-instructions.md"), AGENT),
    (In(".github"), CI),
    (In(".gitlab"), CI),
    (In(".circleci"), CI),
    (In(".buildkite"), CI),
    (In(".woodpecker"), CI),
    (Name(".gitlab-ci.yml"), CI),
    (Name(".travis.yml"), CI),
    (Name(".drone.yml"), CI),
    (Name(".cirrus.yml"), CI),
    (Name("azure-pipelines.yml"), CI),
    (Name("bitbucket-pipelines.yml"), CI),
    (Name("appveyor.yml"), CI),
    (Start("Jenkinsfile"), CI),
    (In(".vscode"), EDITOR),
    (In(".idea"), EDITOR),
    (In(".fleet"), EDITOR),
    (In(".zed"), EDITOR),
    (End(".code-workspace"), EDITOR),
    (Name(".dir-locals.el"), EDITOR),
    (Name(".exrc"), EDITOR),
    (Name(".vimrc"), EDITOR),
    (Name(".nvimrc"), EDITOR),
    (Name(".nvim.lua"), EDITOR),
    (Name(".lvimrc"), EDITOR),
    (In(".devcontainer"), CONTAINER),
    (Name(".devcontainer.json"), CONTAINER),
    (Start("Dockerfile"), CONTAINER),
    (End(".dockerfile"), CONTAINER),
    (Start("Containerfile"), CONTAINER),
    (Start("docker-compose"), CONTAINER),
    (Start("compose."), CONTAINER),
    (Name("Vagrantfile"), CONTAINER),
    (Name(".envrc"), SHELL),
    (Name(".env"), SHELL),
    (Name("mise.toml"), SHELL),
    (Name(".mise.toml"), SHELL),
    (Name(".tool-versions"), SHELL),
    (Name(".autoenv"), SHELL),
    (In(".git"), GIT),
    (In(".husky"), GIT),
    (In(".githooks"), GIT),
    (Name(".gitattributes"), GIT),
    (Name(".gitmodules"), GIT),
    (Name(".pre-commit-config.yaml"), GIT),
    (Name(".pre-commit-hooks.yaml"), GIT),
    (Start("lefthook."), GIT),
    (Start(".lefthook."), GIT),
    (Start(".lintstagedrc"), GIT),
    (Start(".huskyrc"), GIT),
    (In(".claude"), AGENT),
    (In(".cursor"), AGENT),
    (In(".codex"), AGENT),
    (In(".gemini"), AGENT),
    (In(".continue"), AGENT),
    (In(".roo"), AGENT),
    (In(".podbay"), AGENT),
    (Name(".mcp.json"), AGENT),
    (Name(".cursorrules"), AGENT),
    (Name(".windsurfrules"), AGENT),
    (Name(".clinerules"), AGENT),
    (In(".clinerules"), AGENT),
    (Start(".aider"), AGENT),
    (Name("AGENTS.md"), AGENT),
    (Name("AGENT.md"), AGENT),
    (Name("CLAUDE.md"), AGENT),
    (Name("CLAUDE.local.md"), AGENT),
    (Name("GEMINI.md"), AGENT),
    (Name("PODBAY.md"), AGENT),
    (Name("ORCA.md"), AGENT),
    (Name("OPENMONO.md"), AGENT),
    (In(".orangutan-config"), AGENT),
    (Name("conftest.py"), TEST),
    (Name("tox.ini"), TEST),
    (Name("noxfile.py"), TEST),
    (Name("pytest.ini"), TEST),
    (Start("jest.config."), TEST),
    (Start("vitest.config."), TEST),
    (Start("playwright.config."), TEST),
    (Start("karma.conf."), TEST),
    (Start(".mocharc"), TEST),
    (Name("sitecustomize.py"), PYTHON),
    (Name("usercustomize.py"), PYTHON),
    (End(".pth"), PYTHON),
    (Name("package.json"), INSTALL),
    (Name("package-lock.json"), INSTALL),
    (Name("npm-shrinkwrap.json"), INSTALL),
    (Name("yarn.lock"), INSTALL),
    (Name("pnpm-lock.yaml"), INSTALL),
    (Name("bun.lock"), INSTALL),
    (Name("bun.lockb"), INSTALL),
    (Name(".npmrc"), INSTALL),
    (Start(".yarnrc"), INSTALL),
    (In(".yarn"), INSTALL),
    (Start(".pnpmfile."), INSTALL),
    (Name("pnpm-workspace.yaml"), INSTALL),
    (Name("bunfig.toml"), INSTALL),
    (Name("deno.json"), INSTALL),
    (Name("deno.jsonc"), INSTALL),
    (Name("setup.py"), INSTALL),
    (Name("setup.cfg"), INSTALL),
    (Name("pyproject.toml"), INSTALL),
    (Name("pip.conf"), INSTALL),
    (Start("requirements"), INSTALL),
    (Name("poetry.lock"), INSTALL),
    (Name("uv.lock"), INSTALL),
    (Name("Pipfile"), INSTALL),
    (Name("Pipfile.lock"), INSTALL),
    (Name("composer.json"), INSTALL),
    (Name("composer.lock"), INSTALL),
    (Name("Gemfile"), INSTALL),
    (Name("Gemfile.lock"), INSTALL),
    (End(".gemspec"), INSTALL),
    (Name("Brewfile"), INSTALL),
    (In(".cargo"), BUILD),
    (Name("Cargo.toml"), BUILD),
    (Name("Cargo.lock"), BUILD),
    (Name("build.rs"), BUILD),
    (Start("rust-toolchain"), BUILD),
    (Name("go.mod"), BUILD),
    (Name("go.sum"), BUILD),
    (Name("go.work"), BUILD),
    (Name("Makefile"), BUILD),
    (Name("makefile"), BUILD),
    (Name("GNUmakefile"), BUILD),
    (End(".mk"), BUILD),
    (End(".mak"), BUILD),
    (Name("configure"), BUILD),
    (Name("configure.ac"), BUILD),
    (Name("autogen.sh"), BUILD),
    (Name("CMakeLists.txt"), BUILD),
    (Start("CMakePresets"), BUILD),
    (End(".cmake"), BUILD),
    (Name("meson.build"), BUILD),
    (Name("SConstruct"), BUILD),
    (Name("SConscript"), BUILD),
    (Name("wscript"), BUILD),
    (End(".gradle"), BUILD),
    (End(".gradle.kts"), BUILD),
    (Name("gradlew"), BUILD),
    (Name("gradle.properties"), BUILD),
    (In("gradle"), BUILD),
    (Name("pom.xml"), BUILD),
    (Name("mvnw"), BUILD),
    (In(".mvn"), BUILD),
    (Name("build.xml"), BUILD),
    (Name("build.sbt"), BUILD),
    (End(".csproj"), BUILD),
    (End(".fsproj"), BUILD),
    (End(".vbproj"), BUILD),
    (End(".vcxproj"), BUILD),
    (End(".props"), BUILD),
    (End(".targets"), BUILD),
    (Name("Rakefile"), BUILD),
    (End(".rake"), BUILD),
    (Name("Justfile"), BUILD),
    (Name("justfile"), BUILD),
    (Name(".justfile"), BUILD),
    (Start("Taskfile."), BUILD),
    (Name("Earthfile"), BUILD),
    (Name("Tiltfile"), BUILD),
    (Start(".bazel"), BUILD),
    (Name("BUILD"), BUILD),
    (Name("BUILD.bazel"), BUILD),
    (Name("WORKSPACE"), BUILD),
    (Name("MODULE.bazel"), BUILD),
    (End(".bzl"), BUILD),
    (Name("flake.nix"), BUILD),
    (Name("default.nix"), BUILD),
    (Name("shell.nix"), BUILD),
    (Name("Package.swift"), BUILD),
    (Name("mix.exs"), BUILD),
    (Name("rebar.config"), BUILD),
    (Name("dune-project"), BUILD),
    (Name("stack.yaml"), BUILD),
    (End(".cabal"), BUILD),
    (Start("webpack.config."), BUILD),
    (Start("vite.config."), BUILD),
    (Start("rollup.config."), BUILD),
    (Start("babel.config."), BUILD),
    (Start(".babelrc"), BUILD),
    (Start("postcss.config."), BUILD),
    (Start("tailwind.config."), BUILD),
    (Start("next.config."), BUILD),
    (Start("nuxt.config."), BUILD),
    (Start("svelte.config."), BUILD),
    (Start("astro.config."), BUILD),
    (Start("Gruntfile."), BUILD),
    (Start("gulpfile."), BUILD),
    (Start("eslint.config."), TOOL),
    (Start(".eslintrc"), TOOL),
    (Start(".prettierrc"), TOOL),
    (Start("prettier.config."), TOOL),
    (Start(".stylelintrc"), TOOL),
    (Start("ansible.cfg"), TOOL),
    (Name(".gdbinit"), TOOL),
    (Name(".lldbinit"), TOOL),
    (Name(".irbrc"), TOOL),
    (Name(".pryrc"), TOOL),
    (Name(".Rprofile"), TOOL),
    (Name(".psqlrc"), TOOL),
    (Name(".terraformrc"), TOOL),
    (End(".tf"), TOOL),
    (Name("Procfile"), TOOL),
    (End(".desktop"), TOOL),
];

/// Returns why a file that a run made or changed may run on the person's machine later; `None`: nobody that is known of obeys it by its name.
///
/// Names are compared without regard to case, which some file systems have none of.
pub fn may_run(path: &BytesPath) -> Option<&'static str> {
    let text = path.to_text().to_lowercase();
    let (folders, name) = text.rsplit_once('/').unwrap_or(("", &text));
    let fits = |is: &Is| match is {
        Name(known) => name == known.to_lowercase(),
        In(folder) => folders.split('/').chain((name == *folder).then_some(name)).any(|part| part == *folder),
        End(end) => name.ends_with(end),
        Start(start) => name.starts_with(&start.to_lowercase()),
    };
    TABLE.iter().find(|(is, _)| fits(is)).map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
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
        ] {
            assert_eq!(may_run(&BytesPath::from_text(path)), Some(why), "{path}");
        }
    }

    #[test]
    fn everyday_files_are_not_reported() {
        for path in
            ["src/main.rs", "README.md", "docs/gradle.md", "Cargo/x.rs", "makefile.txt", "src/git/mod.rs", "a.py", "github/x", "envrc"]
        {
            assert_eq!(may_run(&BytesPath::from_text(path)), None, "{path}");
        }
    }
}
