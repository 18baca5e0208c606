//! How many files a new thing touches: `docs/architecture.md` has a recipe for each kind, and what
//! was added last of that kind must be in the recipe's files and in no others.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::path::PathBuf;

/// What was added last of its kind.
struct Recipe {
    heading: &'static str,
    /// Its name, which stands as `NAME` in the recipe.
    name: &'static str,
    /// How sources mention it; a file named after it counts too.
    words: &'static [&'static str],
    /// Folders of `src` where the words mean nothing else; empty: all.
    within: &'static [&'static str],
    most: usize,
}

const RECIPES: [Recipe; 5] = [
    Recipe {
        heading: "### A tool in the sandbox",
        name: "update_config",
        words: &["UpdateConfig", "update_config"],
        within: &[],
        most: 6,
    },
    Recipe {
        heading: "### A tool on the host",
        name: "think",
        words: &["Think {", "mod think", "think::tool", "\"think\""],
        within: &[
            "agent", "app", "event", "policy", "sandbox", "session", "tools", "wire",
        ],
        most: 4,
    },
    Recipe {
        heading: "### An API of a model server",
        name: "ollama",
        words: &["Ollama", "mod ollama"],
        // A first start names the program that answers at its usual port.
        within: &["llm", "config"],
        most: 2,
    },
    Recipe {
        heading: "### A command of the command line",
        name: "init",
        words: &["InitArgs", "mod init", "\"init\","],
        within: &["cli", "app"],
        most: 7,
    },
    Recipe {
        heading: "### A setting",
        name: "debian_mirror",
        words: &["debian_mirror"],
        within: &[],
        most: 3,
    },
];

#[test]
fn what_was_added_last_is_in_the_files_of_its_recipe_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/architecture.md")).expect("the page");
    for recipe in &RECIPES {
        let found = mentions(root, recipe);
        assert!(found.len() <= recipe.most, "{}: {found:#?}", recipe.heading);
        let section = section(&page, recipe.heading);
        let told: BTreeSet<String> = section
            .split('`')
            .skip(1)
            .step_by(2)
            .filter(|path| path.starts_with("src/"))
            .map(|path| path.replace("NAME", recipe.name))
            .collect();
        assert_eq!(told, found, "{}", recipe.heading);
    }
}

#[test]
fn tests_and_comments_do_not_count_for_a_recipe() {
    let source =
        "//! Think.\nuse a::Think; // Thinking\n#[cfg(test)]\nmod tests {\n    Only::InTests\n}\n";
    let code = code(source);
    assert!(has(&code, "Think") && !has(&code, "Only"), "{code}");
    assert!(!has("Thinking rethink", "Think") && !has("x_think", "think"));
    assert!(has("a \"think\" b", "\"think\"") && has("(GcArgs)", "GcArgs"));
}

/// Returns the sources that mention the recipe's thing.
fn mentions(root: &Path, recipe: &Recipe) -> BTreeSet<String> {
    let mut all = Vec::new();
    sources(&root.join("src"), &mut all);
    let is_meant = |path: &str| {
        let module = path.split('/').nth(1).unwrap_or_default();
        recipe.within.is_empty() || recipe.within.contains(&module)
    };
    let is_it = |path: &PathBuf, text: &str| {
        let code = code(text);
        path.file_stem().is_some_and(|stem| stem == recipe.name)
            || recipe.words.iter().any(|word| has(&code, word))
    };
    all.iter()
        .filter(|(path, text)| is_it(path, text))
        .map(|(path, _)| relative(root, path))
        .filter(|path| is_meant(path))
        .collect()
}

fn relative(root: &Path, path: &Path) -> String {
    let path = path.strip_prefix(root).expect("it is below the root");
    path.to_str().expect("our names are text").to_owned()
}

/// Collects the sources below a folder, without those of tests.
fn sources(folder: &Path, all: &mut Vec<(PathBuf, String)>) {
    let mut here = Vec::new();
    let mut tests = BTreeSet::new();
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = fs::read_to_string(&path).expect("a source");
            for (at, _) in text.match_indices("#[cfg(test)]\nmod ") {
                let name = &text[at + "#[cfg(test)]\nmod ".len()..];
                let name = name.split([';', ' ']).next().unwrap_or_default();
                tests.insert(format!("{name}.rs"));
            }
            here.push((path, text));
        }
    }
    here.retain(|(path, _)| {
        let name = path.file_name().and_then(|name| name.to_str());
        !name.is_some_and(|name| tests.contains(name))
    });
    all.append(&mut here);
}

/// Returns a source without comments and without the module of its tests.
fn code(text: &str) -> String {
    let end = ["mod tests {", "pub(super) mod tests {"]
        .iter()
        .filter_map(|begin| text.find(&format!("#[cfg(test)]\n{begin}")))
        .min();
    let lines = text[..end.unwrap_or(text.len())].lines();
    lines
        .map(|line| line.split_once("//").map_or(line, |(code, _)| code))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns whether a text has a word, which is no part of another one.
fn has(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let begins = !word.starts_with(is_part) || !before.is_some_and(is_part);
        let ends = !word.ends_with(is_part) || !after.is_some_and(is_part);
        begins && ends
    })
}

/// Returns the part of a page below a heading.
fn section<'a>(page: &'a str, heading: &str) -> &'a str {
    let (_, below) = page
        .split_once(&format!("{heading}\n"))
        .unwrap_or_else(|| panic!("docs/architecture.md has no `{heading}`"));
    below.find("\n#").map_or(below, |end| &below[..end])
}
