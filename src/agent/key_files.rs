//! What a project is made with, and which of its files tell most, by the names at its top.
//!
//! It advises: what is not in the table is not known here.

use std::collections::BTreeSet;

/// Names, and what their presence says; nothing, where a file is only worth reading first.
const KEY_FILES: [(&str, &str); 36] = [
    ("README.md", ""),
    ("README.rst", ""),
    ("README.txt", ""),
    ("README", ""),
    ("CONTRIBUTING.md", ""),
    ("ARCHITECTURE.md", ""),
    ("Cargo.toml", "Rust"),
    ("go.mod", "Go"),
    ("package.json", "Node.js"),
    ("deno.json", "Deno"),
    ("tsconfig.json", "TypeScript"),
    ("pyproject.toml", "Python"),
    ("requirements.txt", "Python"),
    ("setup.py", "Python"),
    ("setup.cfg", "Python"),
    ("Pipfile", "Python"),
    ("pom.xml", "Java"),
    ("build.gradle", "Gradle"),
    ("build.gradle.kts", "Gradle"),
    ("build.sbt", "Scala"),
    ("composer.json", "PHP"),
    ("Gemfile", "Ruby"),
    ("mix.exs", "Elixir"),
    ("pubspec.yaml", "Dart"),
    ("Package.swift", "Swift"),
    ("CMakeLists.txt", "CMake"),
    ("meson.build", "Meson"),
    ("configure.ac", "Autotools"),
    ("Makefile", "Make"),
    ("GNUmakefile", "Make"),
    ("justfile", "just"),
    ("Dockerfile", "Docker"),
    ("compose.yaml", "Docker Compose"),
    ("compose.yml", "Docker Compose"),
    ("docker-compose.yml", "Docker Compose"),
    ("docker-compose.yaml", "Docker Compose"),
];

/// Returns what the project is made with, a line each with the files that say so.
pub(super) fn stack(names: &BTreeSet<&[u8]>) -> String {
    let mut found: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, made_with) in present(names).filter(|(_, made_with)| !made_with.is_empty()) {
        match found.iter_mut().find(|(known, _)| *known == made_with) {
            Some((_, files)) => files.push(name),
            None => found.push((made_with, vec![name])),
        }
    }
    found
        .iter()
        .map(|(made_with, files)| format!("{made_with} ({})\n", files.join(", ")))
        .collect()
}

/// Returns the files that tell most of the project, a line each.
pub(super) fn key_files(names: &BTreeSet<&[u8]>) -> String {
    present(names)
        .map(|(name, _)| format!("{name}\n"))
        .collect()
}

fn present(names: &BTreeSet<&[u8]>) -> impl Iterator<Item = (&'static str, &'static str)> {
    KEY_FILES
        .into_iter()
        .filter(|(name, _)| names.contains(name.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_top_tell_what_a_project_is_made_with() {
        let names = [
            "Cargo.toml",
            "README.md",
            "setup.py",
            "requirements.txt",
            "obey.md",
        ];
        let names: BTreeSet<&[u8]> = names.iter().map(|name| name.as_bytes()).collect();
        assert_eq!(
            stack(&names),
            "Rust (Cargo.toml)\nPython (requirements.txt, setup.py)\n"
        );
        assert_eq!(
            key_files(&names),
            "README.md\nCargo.toml\nrequirements.txt\nsetup.py\n"
        );
        let none = BTreeSet::new();
        assert_eq!(
            (stack(&none), key_files(&none)),
            (String::new(), String::new())
        );
    }
}
