use super::*;
use crate::keep::testing::Scene;

fn noise(seed: u64, n_bytes: usize) -> Vec<u8> {
    (seed..)
        .flat_map(|n| *ObjectId::of(&n.to_le_bytes()).as_bytes())
        .take(n_bytes)
        .collect()
}

fn add(store: &mut Store, contents: &[&[u8]]) -> Vec<PutOutcome> {
    let addition = store.add();
    let put = contents
        .iter()
        .map(|content| addition.put(content, &mut Deflate::default()).expect("put"))
        .collect();
    let added = addition.finish().expect("finished");
    store.take_in_added(added).expect("taken in");
    put
}

#[test]
fn stored_contents_survive_reopening_and_are_stored_once() {
    let scene = Scene::new();
    let contents: [&[u8]; 4] = [b"", b"small", &vec![7; 100_000], &noise(0, 100_000)];
    let put = add(&mut scene.store(), &contents);
    let before = scene.store().n_bytes();
    assert!(before < 102_000, "{before}");
    let mut store = scene.store();
    assert_eq!(add(&mut store, &contents), put);
    assert_eq!(store.n_bytes(), before);
    for (content, put) in contents.iter().zip(put) {
        let PutOutcome::Kept(id) = put else {
            panic!("full")
        };
        assert_eq!(store.get(&id).expect("there"), *content);
    }
    assert!(matches!(
        store.get(&ObjectId::of(b"never put")),
        Err(Error::Broken { .. })
    ));
}

#[test]
fn contents_over_the_limit_are_refused_and_smaller_ones_still_stored() {
    let scene = Scene::new();
    let mut store = Store::bounded(&scene.state(), 100_000).expect("opens");
    let put = add(
        &mut store,
        &[&noise(0, 60_000), &noise(9_000, 60_000), b"small"],
    );
    assert!(
        matches!(
            put[..],
            [PutOutcome::Kept(_), PutOutcome::Full, PutOutcome::Kept(_)]
        ),
        "{put:?}"
    );
}

#[test]
fn a_dropped_addition_leaves_nothing() {
    let scene = Scene::new();
    let store = scene.store();
    let addition = store.add();
    addition
        .put(&noise(0, 5_000_000), &mut Deflate::default())
        .expect("put");
    drop(addition);
    drop(store);
    assert_eq!(
        scene
            .state()
            .below("objects")
            .expect("opens")
            .names()
            .expect("lists"),
        Vec::<String>::new()
    );
    // Nor one whose process was killed: its file has a temporary name.
    let objects = scene.state().below("objects").expect("opens");
    objects.begin("0000000000000000.pack").expect("begins");
    assert_eq!(scene.store().n_bytes(), 0);
}

#[test]
fn a_broken_pack_loses_only_its_own_contents() {
    let scene = Scene::new();
    let put = add(&mut scene.store(), &[&noise(0, 1_000)]);
    let objects = scene.state().below("objects").expect("opens");
    let pack = objects
        .read("0000000000000000.pack")
        .expect("reads")
        .expect("there");
    let PutOutcome::Kept(id) = put[0] else {
        panic!("full")
    };
    for (at, is_content) in [
        (5, true),
        (pack.len() - 60, false),
        (pack.len() - 40, false),
        (pack.len() - 1, false),
    ] {
        let mut broken = pack.clone();
        broken[at] ^= 1;
        objects
            .replace("0000000000000000.pack", &broken)
            .expect("replaced");
        let opened = scene.store();
        assert_eq!(opened.packs.len(), usize::from(is_content));
        assert!(matches!(opened.get(&id), Err(Error::Broken { .. })), "{at}");
    }
    objects
        .replace("0000000000000000.pack", &pack[..20])
        .expect("replaced");
    let mut store = scene.store();
    assert_eq!(
        add(&mut store, &[&noise(0, 1_000)]),
        put,
        "what is still there is stored anew"
    );
    assert_eq!(store.get(&id).expect("there"), noise(0, 1_000));
    store.prune(&BTreeSet::new()).expect("prunes");
    assert_eq!(objects.names().expect("lists"), Vec::<String>::new());
}

#[test]
fn pruning_keeps_exactly_what_the_kept_snapshots_need() {
    let scene = Scene::new();
    scene.write("stays", noise(0, 50_000));
    scene.write("goes", noise(100_000, 200_000));
    let first = scene.take().id;
    scene.remove("goes");
    scene.write("in/new", noise(200_000, 50_000));
    let second = scene.take().id;
    let mut store = scene.store();
    let full = store.n_bytes();
    store
        .prune(&BTreeSet::from([first, second]))
        .expect("prunes");
    assert_eq!(store.n_bytes(), full, "all of it is needed");
    store.prune(&BTreeSet::from([second])).expect("prunes");
    drop(store);
    let store = scene.store();
    assert!(
        (100_000..120_000).contains(&store.n_bytes()),
        "{}",
        store.n_bytes()
    );
    let Node::File { object, .. } = Tree::read(&store, &second).expect("there").0[2].1.clone()
    else {
        panic!("no file")
    };
    assert_eq!(store.get(&object).expect("there"), noise(0, 50_000));
    assert!(matches!(
        Tree::read(&store, &first),
        Err(Error::Broken { .. })
    ));
    drop(store);
    let mut store = scene.store();
    store.prune(&BTreeSet::new()).expect("prunes");
    assert_eq!(
        (
            store.n_bytes(),
            scene
                .state()
                .below("objects")
                .expect("opens")
                .names()
                .expect("lists")
                .len()
        ),
        (0, 0)
    );
}

#[test]
fn many_small_packs_are_combined() {
    let scene = Scene::new();
    let mut last = None;
    for n in 0..MANY_PACKS + 6 {
        scene.write(format!("{n}"), n.to_string());
        last = Some(scene.take().id);
    }
    let mut store = scene.store();
    assert!(store.packs.len() > MANY_PACKS);
    store.prune(&last.into_iter().collect()).expect("prunes");
    assert_eq!(store.packs.len(), 1);
    assert_eq!(
        Tree::read(&store, &last.expect("taken"))
            .expect("there")
            .0
            .len(),
        MANY_PACKS + 7
    );
}
