//! Patches and edits of several files: a table of cases with the trees that must come of them, and
//! the bad days that no table holds.
//!
//! `fixtures/patches/*.txt` hold the cases: see [`Case::read`].

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use podbay::event::Answer;
use podbay::event::Answered;
use podbay::event::Asked;
use podbay::event::CallStatus;
use podbay::event::ToolCall;
use podbay::policy::Mode;
use podbay::policy::Policy;
use podbay::tools;
use podbay::tools::Asker;
use podbay::tools::Catalogue;
use podbay::tools::Finished;
use podbay::tools::KeptLines;
use podbay::tools::Later;
use podbay::tools::OnChunk;
use podbay::tools::Options;
use podbay::tools::Pipeline;
use podbay::tools::Services;
use podbay::tools::ToolSet;
use proptest::prelude::*;
use tokio_util::sync::CancellationToken;

use super::*;

/// A check ends where the first folder would be made, and what is wrong with this one is behind that.
const BEHIND_A_FOLDER: &str = "a new file and a new name are taken back by one that does not fit";

/// One case of a table.
#[derive(Debug, Default)]
struct Case {
    name: String,
    before: BTreeMap<String, String>,
    /// The call, in the words of a model.
    tool: String,
    arguments: String,
    /// Words of the result, or of the fault.
    says: Vec<String>,
    fails: bool,
    after: BTreeMap<String, String>,
}

impl Case {
    /// Reads a table: each case begins with `=== NAME`; then come parts that begin with `## WHAT`:
    ///
    /// - `## file PATH` and `## result PATH` hold a file before and after; files that no `result`
    ///   names stay, `## gone PATH` is no more;
    /// - `## patch` holds a patch, `## call TOOL` the arguments of another tool;
    /// - `## says WORDS` must stand in the result, `## fails WORDS` in a fault, after which nothing
    ///   has changed.
    ///
    /// In the text `␍` is a carriage return, `␀` at its end takes the last newline away, `␖` is a
    /// byte order mark, `→` a tab and `·` a space at a line's end.
    fn read(table: &str) -> Vec<Self> {
        let mut cases: Vec<Self> = Vec::new();
        for text in table.split("\n=== ").skip(1) {
            let (name, rest) = text.split_once('\n').expect("a case has parts");
            let mut case = Self {
                name: name.to_owned(),
                ..Self::default()
            };
            let mut gone = Vec::new();
            let mut results = BTreeMap::new();
            for part in format!("\n{rest}").split("\n## ").skip(1) {
                let (head, body) = part.split_once('\n').unwrap_or((part, ""));
                let (what, name) = head.split_once(' ').unwrap_or((head, ""));
                let text = Self::text(body);
                match what {
                    "file" => drop(case.before.insert(name.to_owned(), text)),
                    "result" => drop(results.insert(name.to_owned(), text)),
                    "gone" => gone.push(name.to_owned()),
                    "patch" => {
                        "apply_patch".clone_into(&mut case.tool);
                        case.arguments = serde_json::json!({ "patch": text }).to_string();
                    }
                    "call" => (case.tool, case.arguments) = (name.to_owned(), body.to_owned()),
                    "says" => case.says.push(name.to_owned()),
                    "fails" => {
                        case.fails = true;
                        case.says.push(name.to_owned());
                    }
                    other => panic!("{}: `{other}` is no part of a case", case.name),
                }
            }
            case.after = case.before.clone();
            case.after.extend(results);
            case.after.retain(|name, _| !gone.contains(name));
            cases.push(case);
        }
        cases
    }

    fn text(body: &str) -> String {
        let mut text = body.trim_end_matches('\n').to_owned();
        if !text.is_empty() {
            text.push('\n');
        }
        if let Some(unended) = text.strip_suffix("␀\n") {
            text = unended.to_owned();
        }
        text.replace('␍', "\r")
            .replace('␖', "\u{feff}")
            .replace('→', "\t")
            .replace('·', " ")
    }

    #[track_caller]
    fn check(&self) {
        let files: Vec<(&str, &str)> = self
            .before
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        let project = Project::new(&files);
        let user = Arc::new(Refusing::default());
        let checked = project.ask(&user, &self.tool, &self.arguments);
        assert_eq!(project.files(), self.before, "{}: a check wrote", self.name);
        let finished = project.model(&self.tool, &self.arguments);
        let text = &finished.text;
        // What fails needs no question, and says the same as without one.
        let n_asked = user.0.load(Ordering::Relaxed);
        if self.fails && self.name != BEHIND_A_FOLDER {
            assert_eq!((n_asked, &checked.text), (0, text), "{}", self.name);
        } else if !self.arguments.contains("dry_run") {
            assert_eq!(n_asked, 1, "{}: {}", self.name, checked.text);
        }
        assert_eq!(
            finished.status != CallStatus::Ok,
            self.fails,
            "{}: {text}",
            self.name
        );
        assert!(
            !self.fails || finished.changed.is_empty(),
            "{}: {:?}",
            self.name,
            finished.changed
        );
        for words in &self.says {
            assert!(
                text.contains(words.as_str()),
                "{}: `{words}` is not in: {text}",
                self.name
            );
        }
        assert_eq!(project.files(), self.after, "{}: {text}", self.name);
        project.check_untouched();
    }
}

/// The guest's tools behind the pipeline, without a wall between.
struct Near(Workspace);

impl tools::Workspace for Near {
    fn call<'a>(
        &'a self,
        call: Call,
        _on_chunk: OnChunk<'a>,
        _cancel: &'a CancellationToken,
        _deadline: Duration,
    ) -> Later<'a, Result<Output, podbay::sandbox::Error>> {
        Box::pin(std::future::ready(Ok(run(
            &self.0,
            &call,
            &AtomicBool::new(false),
        ))))
    }
}

struct Nobody;

impl Asker for Nobody {
    fn ask<'a>(&'a self, _asked: &'a Asked) -> Later<'a, Answered> {
        Box::pin(std::future::ready(Answer::Deny.into()))
    }

    fn question<'a>(
        &'a self,
        _question: &'a str,
        _options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn can_answer(&self) -> bool {
        false
    }
}

impl Services for Nobody {
    fn store_artifact(&self, _call: &str, _bytes: &[u8]) -> Option<String> {
        None
    }

    fn read_artifact(&self, id: &str, _offset: u64, _limit: u64) -> Result<KeptLines, String> {
        Err(format!("{id} is not kept"))
    }
}

/// A user who says no, and how often they were asked.
#[derive(Default)]
struct Refusing(AtomicUsize);

impl Asker for Refusing {
    fn ask<'a>(&'a self, _asked: &'a Asked) -> Later<'a, Answered> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Box::pin(std::future::ready(Answer::Deny.into()))
    }

    fn question<'a>(
        &'a self,
        _question: &'a str,
        _options: &'a [String],
    ) -> Later<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    fn can_answer(&self) -> bool {
        true
    }
}

impl Project {
    /// Returns the files of the project, without its folders.
    fn files(&self) -> BTreeMap<String, String> {
        let tree = self.tree().into_iter();
        tree.filter(|(_, text)| text != "/").collect()
    }

    /// Makes a call as a model does, from its words to what it reads.
    pub(super) fn model(&self, tool: &str, arguments: &str) -> Finished {
        self.call_by(Mode::Auto, Arc::new(Nobody), tool, arguments)
    }

    /// Makes a call about which a user is asked.
    fn ask(&self, user: &Arc<Refusing>, tool: &str, arguments: &str) -> Finished {
        self.call_by(
            Mode::Ask,
            Arc::clone(user) as Arc<dyn Asker>,
            tool,
            arguments,
        )
    }

    fn call_by(&self, mode: Mode, asker: Arc<dyn Asker>, tool: &str, arguments: &str) -> Finished {
        let options = Options {
            set: ToolSet::Full,
            ..Options::default()
        };
        let pipeline = Pipeline::new(
            Catalogue::new(&options),
            Policy::new(mode, &podbay::policy::Options::default()).expect("no rules"),
            Arc::new(Near(Workspace::open(&self.path).expect("opens"))),
            Arc::new(Nobody),
            asker,
            Arc::new(|_| {}),
            options,
        );
        pipeline.set_window(Some(100_000));
        let call = ToolCall {
            id: "a".into(),
            name: tool.into(),
            arguments: arguments.into(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .expect("a runtime");
        runtime
            .block_on(pipeline.run(&call, &CancellationToken::new()))
            .expect("the sandbox is there")
    }
}

#[track_caller]
fn check(table: &str, at_least: usize) {
    let cases = Case::read(table);
    assert!(cases.len() >= at_least, "{} cases", cases.len());
    let failed: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            let caught = std::panic::catch_unwind(|| case.check()).err()?;
            let words = caught.downcast_ref::<String>().cloned().unwrap_or_default();
            Some(format!("--- {words}"))
        })
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases:\n{}",
        failed.len(),
        cases.len(),
        failed.join("\n")
    );
}

#[test]
fn unified_diffs_do_what_the_table_says() {
    check(include_str!("../fixtures/patches/unified.txt"), 65);
}

#[test]
fn sections_do_what_the_table_says() {
    check(include_str!("../fixtures/patches/sections.txt"), 30);
}

#[test]
fn edits_of_many_files_do_what_the_table_says() {
    check(include_str!("../fixtures/patches/edits.txt"), 30);
}

#[test]
fn patches_and_edits_in_another_form_do_what_the_table_says() {
    check(include_str!("../fixtures/patches/forms.txt"), 30);
}

#[test]
fn what_goes_wrong_with_real_files_does_what_the_table_says() {
    check(include_str!("../fixtures/patches/troubles.txt"), 25);
}

#[test]
fn a_file_that_is_read_only_keeps_all_the_others_as_they_are() {
    let project = Project::new(&[("a", "one\n"), ("b", "one\n"), ("c", "one\n")]);
    fs::set_permissions(project.path.join("b"), fs::Permissions::from_mode(0o444)).expect("set");
    let edit =
        |path: &str| serde_json::json!({ "path": path, "old_string": "one", "new_string": "two" });
    let finished = project.model(
        "multi_edit",
        &serde_json::json!({ "edits": [edit("a"), edit("b"), edit("c")] }).to_string(),
    );
    assert!(
        finished.text.starts_with("b: is read-only"),
        "{}",
        finished.text
    );
    assert_eq!(
        (project.text("a"), project.text("c")),
        ("one\n".to_owned(), "one\n".to_owned())
    );
    project.check_untouched();
}

#[test]
fn one_that_cannot_be_exchanged_takes_the_others_back() {
    let project = Project::new(&[("a", "one\n"), ("b", "one\n")]);
    // Two names of one file: the second write finds it changed by the first.
    fs::hard_link(project.path.join("b"), project.path.join("c")).expect("linked");
    fs::set_permissions(project.path.join("a"), fs::Permissions::from_mode(0o750)).expect("set");
    let inode = fs::metadata(project.path.join("a")).expect("there").ino();
    let edit = |path: &str, old: &str| serde_json::json!({ "path": path, "old_string": old, "new_string": "another line" });
    let edits = [edit("a", "one"), edit("b", "one"), edit("c", "one")];
    let finished = project.model(
        "multi_edit",
        &serde_json::json!({ "edits": edits }).to_string(),
    );
    assert!(
        finished
            .text
            .contains("c: is the same file as b (a hard link); name it by one"),
        "{}",
        finished.text
    );
    assert_eq!(
        (project.text("a"), project.text("b")),
        ("one\n".to_owned(), "one\n".to_owned())
    );
    let a = fs::metadata(project.path.join("a")).expect("there");
    assert_eq!(
        (a.ino(), a.mode() & 0o777),
        (inode, 0o750),
        "the very file is back"
    );
    project.check_untouched();
}

#[test]
fn a_file_that_a_patch_knows_by_two_names_goes_with_its_own_and_never_with_that_of_a_link() {
    let update = |path: &str| format!("*** Update File: {path}\n@@\n-one\n+two\n");
    let go = |path: &str| format!("*** Delete File: {path}\n");
    let away =
        |path: &str| format!("*** Update File: {path}\n*** Move to: new\n@@\n-two\n+three\n");
    for (sections, expected) in [
        (update("link") + &go("a"), Some(vec![("link", "-> a")])),
        (update("a") + &go("link"), None),
        (
            update("link") + &away("a"),
            Some(vec![("link", "-> a"), ("new", "three\n")]),
        ),
        (update("a") + &away("link"), None),
    ] {
        let project = Project::new(&[("a", "one\n")]);
        symlink("a", project.path.join("link")).expect("linked");
        let before = project.tree();
        let patch = format!("*** Begin Patch\n{sections}*** End Patch\n");
        let finished = project.model(
            "apply_patch",
            &serde_json::json!({ "patch": patch }).to_string(),
        );
        let tree = project.tree();
        if let Some(names) = expected {
            let names: Vec<_> = names
                .into_iter()
                .map(|(name, text)| (name.to_owned(), text.to_owned()))
                .collect();
            assert_eq!(
                (finished.status, tree),
                (CallStatus::Ok, names),
                "{patch}: {}",
                finished.text
            );
        } else {
            assert!(
                finished.text.starts_with("link: is a symbolic link"),
                "{patch}: {}",
                finished.text
            );
            assert_eq!(tree, before, "{patch}");
        }
        project.check_untouched();
    }
}

#[test]
fn a_patch_keeps_modes_and_says_which_it_does_not_set() {
    let project = Project::new(&[("run", "#!/bin/sh\necho one\n"), ("bin", "x\0y")]);
    fs::set_permissions(project.path.join("run"), fs::Permissions::from_mode(0o755)).expect("set");
    let mode = |name: &str| fs::metadata(project.path.join(name)).expect("there").mode() & 0o777;
    let patch = "diff --git a/run b/go\nold mode 100755\nnew mode 100644\nrename from run\nrename to go\n--- a/run\n+++ b/go\n@@ -1,2 +1,2 @@\n #!/bin/sh\n-echo one\n+echo two\n";
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch }).to_string(),
    );
    assert!(
        finished.text.contains("moved run to go (+1 -1 lines)")
            && finished.text.contains("mode 100644 was not set"),
        "{}",
        finished.text
    );
    assert_eq!(
        (mode("go"), project.text("go").as_str()),
        (0o755, "#!/bin/sh\necho two\n")
    );
    // What is no text can go and be moved all the same.
    let patch = "*** Begin Patch\n*** Update File: bin\n*** Move to: deep/bin\n*** End Patch\n";
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch }).to_string(),
    );
    assert_eq!(finished.status, CallStatus::Ok, "{}", finished.text);
    let patch = "*** Begin Patch\n*** Delete File: deep/bin\n*** End Patch\n";
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch }).to_string(),
    );
    assert_eq!(
        finished.changed,
        [("deep/bin".into(), tools::FileChangeKind::Deleted)],
        "{}",
        finished.text
    );
}

#[test]
fn a_patch_that_moves_a_file_says_which_names_of_it_stay_behind() {
    let project = Project::new(&[("a", "one\n"), ("single", "one\n")]);
    fs::hard_link(project.path.join("a"), project.path.join("b")).expect("linked");
    let patch = |path: &str| {
        format!(
            "*** Begin Patch\n*** Update File: {path}\n*** Move to: new-{path}\n@@\n-one\n+two\n*** End Patch\n"
        )
    };
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch("a") }).to_string(),
    );
    assert!(
        finished.text.contains("moved a to new-a"),
        "{}",
        finished.text
    );
    assert!(
        finished.text.contains("has other names (hard links)")
            && finished.text.contains("move_file"),
        "{}",
        finished.text
    );
    assert_eq!(
        (project.text("b").as_str(), project.text("new-a").as_str()),
        ("one\n", "two\n")
    );
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch("single") }).to_string(),
    );
    assert!(
        finished.text.contains("moved single") && !finished.text.contains("hard links"),
        "{}",
        finished.text
    );
}

#[test]
fn no_patch_and_no_edit_leads_out_or_to_a_protected_name() {
    let project = Project::new(&[("a", "one\n"), (".env", "one\n"), ("odd\nname", "one\n")]);
    symlink("../outside/secret", project.path.join("out")).expect("linked");
    symlink(".env", project.path.join("notes")).expect("linked");
    nix::unistd::mkfifo(
        &project.path.join("pipe"),
        nix::sys::stat::Mode::from_bits_truncate(0o600),
    )
    .expect("made");
    fs::create_dir(project.path.join("folder")).expect("made");
    for (path, words) in [
        ("../outside/secret", "outside"),
        ("/etc/passwd", "outside"),
        ("out", "outside"),
        ("notes", "protected by its name"),
        (".env", "Denied"),
        (".git/config", "Denied"),
        ("pipe", "named pipe"),
        ("folder", "is a directory"),
        ("missing", "no such file"),
    ] {
        let replace = serde_json::json!({ "edits": [
            { "path": "a", "old_string": "one", "new_string": "two" },
            { "path": path, "old_string": "one", "new_string": "two" },
        ] });
        let patch = format!(
            "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-one\n+two\n"
        );
        let lines = serde_json::json!({ "path": path, "operation": "delete", "start_line": 1 });
        for (tool, arguments) in [
            ("multi_edit", replace),
            ("apply_patch", serde_json::json!({ "patch": patch })),
            ("edit_lines", lines),
        ] {
            let finished = project.model(tool, &arguments.to_string());
            assert!(
                finished.status != CallStatus::Ok && finished.text.contains(words),
                "{tool} {path}: {}",
                finished.text
            );
        }
    }
    for patch in [
        "--- /dev/null\n+++ b/../outside/new\n@@ -0,0 +1 @@\n+x\n",
        "*** Begin Patch\n*** Update File: a\n*** Move to: ../outside/a\n*** End Patch",
    ] {
        let finished = project.model(
            "apply_patch",
            &serde_json::json!({ "patch": patch }).to_string(),
        );
        assert!(
            finished.text.contains("outside of /workspace"),
            "{}",
            finished.text
        );
    }
    assert_eq!(
        (project.text("a"), project.text(".env")),
        ("one\n".to_owned(), "one\n".to_owned())
    );
    let odd = serde_json::json!({ "edits": [{ "path": "odd\nname", "old_string": "one", "new_string": "two" }] });
    assert_eq!(
        project.model("multi_edit", &odd.to_string()).status,
        CallStatus::Ok
    );
    assert_eq!(project.text("odd\nname"), "two\n");
    project.check_untouched();
}

#[test]
fn a_patch_that_is_only_tried_or_cancelled_writes_nothing() {
    let project = Project::new(&[("a", "one\n")]);
    let patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-one\n+two\n--- /dev/null\n+++ b/new/file\n@@ -0,0 +1 @@\n+x\n";
    let before = project.tree();
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch, "dry_run": true }).to_string(),
    );
    assert!(
        finished.status == CallStatus::Ok && finished.text.contains("nothing was written"),
        "{}",
        finished.text
    );
    assert!(finished.changed.is_empty());
    assert_eq!(project.tree(), before);
    let file = FilePatch {
        path: "new/file".into(),
        action: PatchAction::Add {
            content: "x".into(),
        },
        notes: vec![],
    };
    let call = Call::ApplyPatch(ApplyPatch {
        files: vec![file],
        dry_run: false,
        protected: false,
        known: None,
    });
    assert!(matches!(
        run(&project.workspace, &call, &AtomicBool::new(true)),
        Output::Fault(Fault::Cancelled)
    ));
    assert_eq!(project.tree(), before);
}

#[test]
fn bytes_that_are_no_text_stay_beside_what_a_patch_changes() {
    let project = Project::new(&[]);
    project.put("latin", b"caf\xe9\none\nna\xefve\n");
    project.put("wide", b"\xff\xfeo\0n\0e\0");
    let patch = |name: &str| {
        serde_json::json!({ "patch": format!("--- a/{name}\n+++ b/{name}\n@@ -2 +2 @@\n-one\n+two\n") }).to_string()
    };
    assert_eq!(
        project.model("apply_patch", &patch("latin")).status,
        CallStatus::Ok
    );
    assert_eq!(project.bytes("latin"), b"caf\xe9\ntwo\nna\xefve\n");
    let text = project.model("apply_patch", &patch("wide")).text;
    assert!(text.contains("not UTF-8"), "{text}");
}

#[test]
fn a_hundred_files_are_patched_at_once() {
    let project = Project::new(&[]);
    let mut patch = String::new();
    for number in 0..100 {
        project.put(&format!("d{}/f{number}", number % 7), "one\ntwo\nthree\n");
        let name = format!("d{}/f{number}", number % 7);
        write!(
            patch,
            "--- a/{name}\n+++ b/{name}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
        )
        .expect("has room");
    }
    let finished = project.model(
        "apply_patch",
        &serde_json::json!({ "patch": patch }).to_string(),
    );
    assert_eq!(
        (finished.status, finished.changed.len()),
        (CallStatus::Ok, 100),
        "{}",
        finished.text
    );
    assert_eq!(project.text("d3/f94"), "one\n2\nthree\n");
    // The last of them no longer fits: none is changed.
    let again = patch.replace("-two", "-2").replace("+2\n", "+zwei\n");
    project.put("d1/f99", "other\n");
    let text = project
        .model(
            "apply_patch",
            &serde_json::json!({ "patch": again }).to_string(),
        )
        .text;
    assert!(
        text.contains("d1/f99: hunk 1 does not fit") && text.contains("1\tother"),
        "{text}"
    );
    assert_eq!(project.text("d3/f94"), "one\n2\nthree\n");
    project.check_untouched();
}

/// Texts of few different lines, so that many stand more than once; with and without a newline at
/// the end, and with both line ends.
fn text() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("a"),
        Just("b"),
        Just(""),
        Just("-- c"),
        Just("++ d"),
        Just("  e")
    ];
    (proptest::collection::vec(line, 0..12), any::<bool>()).prop_map(|(lines, ended)| {
        let text = lines.join("\n");
        if ended && !text.is_empty() {
            format!("{text}\n")
        } else {
            text
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_diff_makes_of_the_old_text_the_new_one(old in text(), new in text(), around in 0_usize..4, crlf in any::<bool>()) {
        prop_assume!(old != new && !old.is_empty());
        let diff = similar::TextDiff::from_lines(old.as_str(), new.as_str());
        let patch = diff.unified_diff().context_radius(around).header("a/f", "b/f").to_string();
        let ends = |text: &str| if crlf { text.replace('\n', "\r\n") } else { text.to_owned() };
        let project = Project::new(&[("f", &ends(&old))]);
        let finished = project.model("apply_patch", &serde_json::json!({ "patch": patch }).to_string());
        prop_assert_eq!(finished.status, CallStatus::Ok, "{}\n{}", finished.text, patch);
        // The only line of a text that had none tells no line end.
        prop_assume!(!crlf || old.contains('\n'));
        prop_assert_eq!(project.text("f"), ends(&new), "{}", patch);
    }

    #[test]
    fn no_patch_makes_anything_panic(lines in proptest::collection::vec(prop_oneof![
        Just("--- a/f"), Just("+++ b/f"), Just("--- /dev/null"), Just("+++ /dev/null"), Just("@@ -1,2 +1 @@"), Just("@@ -9 +9,0 @@"), Just("@@"),
        Just("@@ a"), Just("-a"), Just("+b"), Just(" a"), Just(""), Just("\\ No newline at end of file"), Just("diff --git a/f b/f"), Just("diff --git \"a b"),
        Just("rename from f"), Just("rename to g"), Just("*** Begin Patch"), Just("*** End Patch"), Just("*** Update File: f"), Just("*** Add File: g"),
        Just("*** Delete File: f"), Just("*** Move to: h"), Just("*** End of File"), Just("é"), Just("\r"),
    ], 0..14)) {
        let project = Project::new(&[("f", "a\nb\na\n")]);
        let finished = project.model("apply_patch", &serde_json::json!({ "patch": lines.join("\n") }).to_string());
        if finished.status != CallStatus::Ok {
            prop_assert_eq!(project.tree(), [("f".to_owned(), "a\nb\na\n".to_owned())]);
        }
        project.check_untouched();
    }
}

#[test]
fn a_table_that_is_wrong_is_noticed() {
    let right = "\n=== one\n## file a\nx\n## call delete_lines\n{\"path\": \"a\", \"start_line\": 1}\n## result a\n";
    check(right, 1);
    for wrong in [
        right.replace("## result a\n", "## result a\ny\n"),
        right.replace("## result", "## says nothing\n## result"),
        right.replace("## result", "## fails x\n## result"),
    ] {
        assert!(
            std::panic::catch_unwind(|| check(&wrong, 1)).is_err(),
            "{wrong}"
        );
    }
}
