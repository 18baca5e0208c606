//! Who may name whom: the table of the design, checked on every path in `src/`.
//!
//! What a path means is read from the source alone: use trees with their groups, paths in code, in macros' arguments and in `pub(in …)`,
//! `super` that climbs out of a room, and names that were bound by `use crate::room;`. Links in comments are not looked at.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use proc_macro2::TokenStream;
use proc_macro2::TokenTree;
use syn::UseTree;
use syn::visit::Visit;

/// A room and all that it may name besides itself: whole rooms, or one item or sub-module of a room. In the order of the house: every
/// room names earlier ones only.
const ROOMS: &[(&str, &[&str])] = &[
    ("wire", &[]),
    ("event", &["wire"]),
    ("code", &[]),
    ("guest", &["wire", "code"]),
    ("egress", &["wire"]),
    ("policy", &["wire", "event", "code", "egress::rule"]),
    ("llm", &["wire", "event"]),
    ("session", &["wire", "event", "llm::message"]),
    ("engine", &["event"]),
    ("sandbox", &["wire", "event", "engine", "guest", "egress"]),
    ("inference", &["event", "llm::http", "engine", "sandbox"]),
    ("mcp", &["wire", "event", "llm::http", "sandbox"]),
    ("lsp", &["wire", "event", "llm::http", "sandbox"]),
    ("tools", &["wire", "event", "code", "guest", "egress", "policy", "llm", "session", "engine", "sandbox", "mcp", "lsp"]),
    ("agent", &["wire", "event", "code", "guest", "egress", "policy", "llm", "session", "engine", "sandbox", "mcp", "lsp", "tools"]),
    (
        "plan",
        &["wire", "event", "code", "guest", "egress", "policy", "llm", "session", "engine", "sandbox", "mcp", "lsp", "tools", "agent"],
    ),
    ("ui", &["event", "session"]),
    // Of the rooms whose settings it layers it sees the settings alone.
    (
        "config",
        &[
            "event",
            "policy",
            "egress::Options",
            "llm::Options",
            "llm::Provider",
            "session::Options",
            "engine::Options",
            "sandbox::Options",
            "inference::Options",
            "mcp::Options",
            "lsp::Options",
            "tools::Options",
            "tools::HookOptions",
            "agent::Options",
            "plan::Options",
            "ui::Options",
        ],
    ),
    (
        "app",
        &[
            "wire",
            "event",
            "code",
            "guest",
            "egress",
            "policy",
            "llm",
            "session",
            "engine",
            "sandbox",
            "inference",
            "mcp",
            "lsp",
            "tools",
            "agent",
            "plan",
            "config",
        ],
    ),
    ("cli", &["event", "ui", "config", "app"]),
    ("acp", &["event", "ui", "config", "app"]),
    ("batch", &["event", "ui", "config", "app"]),
    ("main", &["guest", "egress", "cli"]),
    // Declares the rooms and names none.
    ("lib", &[]),
];

/// Crates that are one room's own business, and the rooms that may name them.
const CRATES: &[(&str, &[&str])] =
    &[("bollard", &["engine"]), ("clap", &["cli"]), ("reqwest", &["llm", "inference"]), ("vte", &["ui"]), ("tree_sitter", &["code"])];

#[test]
fn every_room_names_only_what_the_table_lets_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    collect(&root.join("src"), &mut files);
    assert!(files.len() > 100, "only {} files were found", files.len());
    let mut wrong = String::new();
    for path in files {
        let text = fs::read_to_string(root.join(&path)).expect("a readable source file");
        for violation in check(&path, &text) {
            let _ = writeln!(wrong, "{violation}");
        }
    }
    assert!(wrong.is_empty(), "these paths are not in the table of tests/it/layers.rs:\n{wrong}");
}

#[test]
fn the_table_only_looks_back() {
    for (at, (room, names)) in ROOMS.iter().enumerate() {
        for name in *names {
            let named = name.split("::").next().unwrap_or_default();
            let earlier = ROOMS[..at].iter().any(|(earlier, _)| *earlier == named);
            assert!(earlier, "{room} names {named}, which does not stand before it");
        }
    }
}

#[test]
fn every_way_to_name_a_room_is_seen() {
    let source = r#"
        use std::fmt;
        use crate::event::Event;
        use crate::{session::Log, agent::{run::{Turn, self}, Prompt as P}};
        use super::super::engine::Engine;
        use crate::*;
        mod inner {
            fn f() {
                let _ = super::super::plain();
                let _ = super::super::super::llm::Client::new();
            }
        }
        pub(in crate::ui) fn g(x: &crate::policy::Action) -> Result<(), crate::app::Error> {
            println!("{}", [crate::tools::render::text(x)].len());
            super::super::config::load();
            let _: bollard::Docker = self::here();
        }
    "#;
    check_against(
        "src/ui/screen.rs",
        source,
        &[
            "4 crate::agent::run",
            "4 crate::agent::run::Turn",
            "4 crate::agent::Prompt",
            "5 crate::engine::Engine",
            "6 crate::*",
            "10 crate::llm::Client::new",
            "13 crate::policy::Action",
            "13 crate::app::Error",
            "14 crate::tools::render::text",
            "15 crate::config::load",
            "16 bollard::Docker",
        ],
    );
}

#[test]
fn a_part_of_a_room_may_be_named_alone_also_through_its_room() {
    check_against("src/session/record.rs", "use crate::llm::message::Message; use crate::llm::Client;", &["1 crate::llm::Client"]);
    let source = "
        use crate::sandbox;
        use crate::engine as docker;
        struct Settings { sandbox: sandbox::Options, engine: docker::Options, other: docker::Engine, own: own::Options }
        type Theirs = sandbox::link::Link;
        use crate::main;
    ";
    check_against("src/config/schema.rs", source, &["4 crate::engine::Engine", "5 crate::sandbox::link::Link", "6 crate::main"]);
}

#[test]
fn main_names_the_front_doors_alone() {
    let source = "fn main() { podbay::guest::main(); podbay::cli::main(); podbay::app::run(); }";
    check_against("src/main.rs", source, &["1 crate::app::run"]);
}

#[test]
fn a_room_that_is_not_in_the_table_may_neither_name_nor_be_named() {
    check_against("src/attic/mod.rs", "use crate::wire::Call;", &["1 crate::wire::Call"]);
    check_against("src/app/run.rs", "use crate::attic::Thing;", &["1 crate::attic::Thing"]);
}

/// Checks which paths of a planted file are refused, each as its line and path.
#[track_caller]
fn check_against(path: &str, source: &str, expected: &[&str]) {
    let mut found: Vec<String> =
        check(path, source).into_iter().map(|violation| format!("{} {}", violation.line, violation.named)).collect();
    let mut expected: Vec<String> = expected.iter().map(|&line| line.to_owned()).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
}

/// One path that a room must not name.
struct Violation {
    file: String,
    line: usize,
    named: String,
    room: String,
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}: `{}` may not name {}", self.file, self.line, self.room, self.named)
    }
}

/// A path as it is written, and where.
struct Written {
    segments: Vec<String>,
    line: usize,
    /// The names of the modules around it, from the crate's root.
    module: Vec<String>,
    /// For a `use`: the name it is bound to.
    bound: Option<String>,
}

/// Returns every path in a file that its room may not name.
fn check(path: &str, source: &str) -> Vec<Violation> {
    let file = syn::parse_file(source).unwrap_or_else(|error| panic!("{path}: {error}"));
    let module = module_of(path);
    let room = match path {
        "src/main.rs" => "main",
        "src/lib.rs" => "lib",
        _ => module.first().map_or("", String::as_str),
    };
    let mut paths = Paths { module: module.clone(), found: Vec::new() };
    paths.visit_file(&file);

    let may = ROOMS.iter().find(|(name, _)| *name == room).map_or(&[][..], |(_, may)| *may);
    // Names that stand for a room of which only a part may be named; what follows them is what counts.
    let mut partial: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut violations = Vec::new();
    let (imports, others): (Vec<_>, Vec<_>) = paths.found.into_iter().partition(|written| written.bound.is_some());
    for written in imports.into_iter().chain(others) {
        let target = match partial.get(&written.segments[0]) {
            Some(target) if written.segments.len() > 1 => Target::Room([target.as_slice(), &written.segments[1..]].concat()),
            _ => resolve(&written),
        };
        let named = match target {
            Target::Room(path) => {
                let begins = |entry: &str| entry.split("::").zip(&path).all(|(left, right)| left == right);
                let n_parts = |entry: &str| entry.split("::").count();
                if path.is_empty() || path[0] == room || may.iter().any(|entry| begins(entry) && n_parts(entry) <= path.len()) {
                    continue;
                }
                if let Some(bound) = &written.bound
                    && may.iter().any(|entry| begins(entry))
                {
                    partial.insert(bound.clone(), path);
                    continue;
                }
                format!("crate::{}", path.join("::"))
            }
            Target::Crate(path) => {
                let Some((_, rooms)) = CRATES.iter().find(|(name, _)| *name == path[0]) else { continue };
                if rooms.contains(&room) {
                    continue;
                }
                path.join("::")
            }
        };
        violations.push(Violation { file: path.to_owned(), line: written.line, named, room: room.to_owned() });
    }
    violations
}

/// What a path leads to.
enum Target {
    /// Something of this package, from its root.
    Room(Vec<String>),
    /// Something of another package, or a local name.
    Crate(Vec<String>),
}

fn resolve(written: &Written) -> Target {
    let mut segments = written.segments.as_slice();
    let mut from = match segments[0].as_str() {
        "crate" | "podbay" => Vec::new(),
        "self" | "super" => written.module.clone(),
        _ => return Target::Crate(segments.to_vec()),
    };
    while let Some((first, rest)) = segments.split_first() {
        match first.as_str() {
            "super" => {
                from.pop();
            }
            "crate" | "podbay" | "self" => {}
            _ => break,
        }
        segments = rest;
    }
    from.extend_from_slice(segments);
    Target::Room(from)
}

/// Returns the module that a file under `src/` is.
fn module_of(path: &str) -> Vec<String> {
    let mut module: Vec<String> = path.trim_start_matches("src/").trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if matches!(module.last().map(String::as_str), Some("mod" | "main" | "lib")) {
        module.pop();
    }
    module
}

/// Gathers every path of a file.
struct Paths {
    module: Vec<String>,
    found: Vec<Written>,
}

impl Paths {
    fn push(&mut self, segments: Vec<String>, line: usize, bound: Option<String>) {
        self.found.push(Written { segments, line, module: self.module.clone(), bound });
    }

    fn flatten(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.flatten(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.flatten(item, before)),
            UseTree::Name(name) if name.ident == "self" => {
                self.push(before.to_vec(), line(name.ident.span()), before.last().cloned());
            }
            UseTree::Name(name) => self.push(with(&name.ident), line(name.ident.span()), Some(name.ident.to_string())),
            UseTree::Rename(rename) => {
                let segments = if rename.ident == "self" { before.to_vec() } else { with(&rename.ident) };
                self.push(segments, line(rename.ident.span()), Some(rename.rename.to_string()));
            }
            // `use super::*` in tests brings in what stands around them, which is checked where it stands.
            UseTree::Glob(glob) => self.push([before, &["*".to_owned()]].concat(), line(glob.star_token.spans[0]), None),
        }
    }

    /// Finds paths in a macro's arguments, which are not parsed: whatever begins like a path of ours.
    fn scan(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        let mut at = 0;
        while at < tokens.len() {
            if let TokenTree::Group(group) = &tokens[at] {
                self.scan(group.stream());
            }
            let TokenTree::Ident(first) = &tokens[at] else {
                at += 1;
                continue;
            };
            let mut segments = vec![first.to_string()];
            at += 1;
            while let [TokenTree::Punct(left), TokenTree::Punct(right), TokenTree::Ident(next), ..] = &tokens[at..]
                && left.as_char() == ':'
                && right.as_char() == ':'
            {
                segments.push(next.to_string());
                at += 3;
            }
            if segments.len() > 1 {
                self.push(segments, line(first.span()), None);
            }
        }
    }
}

impl<'ast> Visit<'ast> for Paths {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.module.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
        self.module.pop();
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.flatten(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.push(segments, path.segments.first().map_or(0, |segment| line(segment.ident.span())), None);
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, item: &'ast syn::Macro) {
        self.scan(item.tokens.clone());
        syn::visit::visit_macro(self, item);
    }
}

fn line(span: proc_macro2::Span) -> usize {
    span.start().line
}

/// Lists the Rust files under a folder, relative to the package.
fn collect(folder: &Path, files: &mut Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in fs::read_dir(folder).expect("a readable folder") {
        let path = entry.expect("a readable entry").path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path.strip_prefix(root).expect("it lies in the package").to_string_lossy().into_owned());
        }
    }
    files.sort();
}
