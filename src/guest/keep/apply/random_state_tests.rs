//! Property tests: from any state of a project to any other one, and back.

use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use super::tests::back_and_forth;
use crate::keep::testing::Scene;

/// An entry of a generated project.
#[derive(Clone, Debug)]
enum TestEntry {
    File(Vec<u8>, bool),
    Link(String),
    Folder,
}

fn thing() -> impl Strategy<Value = TestEntry> {
    prop_oneof![
        4 => (proptest::collection::vec(any::<u8>(), 0..20), any::<bool>()).prop_map(|(content, runs)| TestEntry::File(content, runs)),
        1 => "[a-c]{1,3}".prop_map(TestEntry::Link),
        1 => Just(TestEntry::Folder),
    ]
}

fn state() -> impl Strategy<Value = BTreeMap<String, TestEntry>> {
    proptest::collection::btree_map("[abB](/[abB]){0,3}", thing(), 0..12)
}

fn build(scene: &Scene, things: &BTreeMap<String, TestEntry>) {
    for entry in fs::read_dir(scene.root()).expect("there") {
        scene.remove(
            entry
                .expect("an entry")
                .file_name()
                .to_str()
                .expect("a name"),
        );
    }
    let mut taken: BTreeSet<&str> = BTreeSet::new();
    for (path, thing) in things {
        // Entries below a file or a link are skipped.
        if path
            .match_indices('/')
            .any(|(at, _)| taken.contains(&path[..at]))
        {
            continue;
        }
        match thing {
            TestEntry::Folder => scene.make(path),
            TestEntry::File(content, runs) => {
                scene.write(path, content);
                scene.mode(path, if *runs { 0o755 } else { 0o640 });
                taken.insert(path);
            }
            TestEntry::Link(target) => {
                fs::create_dir_all(scene.path(path).parent().expect("a folder")).expect("made");
                scene.link(target, path);
                taken.insert(path);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn applying_a_change_and_its_reverse_restores_the_state(one in state(), other in state()) {
        let scene = Scene::new();
        build(&scene, &one);
        back_and_forth(&scene, || build(&scene, &other));
    }
}
