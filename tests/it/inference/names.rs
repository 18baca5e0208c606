//! Models that have one name, and what is left of those that never became whole.

use std::fs;

use nix::sys::signal::Signal;

use super::models::Case;
use super::models::NAME;
use crate::support::test_env::run;
use crate::support::test_env::start;
use crate::support::test_env::until;

/// Returns the names in the list.
#[track_caller]
fn names(case: &Case) -> Vec<String> {
    let listed = run(&mut case.models(&["list", "--json"])).expect(0).json();
    let models = listed["models"].as_array().expect("a list").iter();
    models
        .map(|model| model["name"].as_str().expect("a name").to_owned())
        .collect()
}

#[test]
fn a_name_that_two_models_have_is_refused_and_each_has_one_of_its_own() {
    let case = Case::new(100_000);
    let both = ["hf:cut/r/m.gguf", "hf:norange/r@v2/m.gguf"];
    run(&mut case.models(&["pull", both[0]])).expect(0);
    assert!(
        names(&case).contains(&"m".to_owned()),
        "alone it has a short name"
    );
    run(&mut case.models(&["pull", both[1]]))
        .expect(0)
        .says(&[]);
    let listed = names(&case);
    assert!(
        both.iter().all(|&name| listed.contains(&name.to_owned()))
            && !listed.contains(&"m".to_owned()),
        "{listed:?}"
    );
    let paths = [
        case.path("hub/cut--r/m.gguf"),
        case.path("hub/norange--r@v2/m.gguf"),
    ];
    for arguments in [["info", "m"], ["pull", "M"], ["rm", "m"]] {
        run(&mut case.models(&arguments)).expect(2).says(&[
            "2 models here have the name `",
            "hint: name the one that is meant",
            both[0],
            both[1],
        ]);
    }
    assert!(paths.iter().all(|path| path.exists()), "nothing is removed");
    let info = run(&mut case.models(&["info", both[1], "--json"]))
        .expect(0)
        .json();
    assert_eq!(
        (&info["name"], &info["state"]),
        (&both[1].into(), &"here".into())
    );
    run(&mut case.models(&["rm", both[1]])).expect(0);
    assert!(paths[0].exists() && !paths[1].exists());
    // And the other has its short name again.
    run(&mut case.models(&["rm", "m"])).expect(0);
    assert!(!paths[0].exists());
}

#[test]
fn a_file_of_ones_own_with_the_name_of_a_listed_model_can_be_told_from_it() {
    let case = Case::new(100_000);
    let own = case.env.beside(&format!("{NAME}.gguf"));
    fs::write(&own, &case.file).expect("written");
    let own = own.to_str().expect("text");
    let copy = case.path(&format!("local/{NAME}.gguf"));
    let place = copy.to_str().expect("text");
    for name in [place, own] {
        run(&mut case.models(&["pull", own])).expect(0);
        let listed = names(&case);
        assert_eq!(
            listed.iter().filter(|listed| *listed == NAME).count(),
            1,
            "{listed:?}"
        );
        assert!(listed.contains(&place.to_owned()), "{listed:?}");
        // The name alone is the list's, and a pull of the copy's place loads nothing.
        assert_eq!(
            run(&mut case.models(&["info", NAME, "--json"]))
                .expect(0)
                .json()["state"],
            "absent"
        );
        assert_eq!(
            run(&mut case.models(&["info", name, "--json"]))
                .expect(0)
                .json()["name"],
            place
        );
        run(&mut case.models(&["pull", place])).expect(0);
        run(&mut case.models(&["rm", NAME])).expect(0);
        assert!(copy.exists());
        run(&mut case.models(&["rm", name])).expect(0);
        assert!(!copy.exists() && fs::read(own).expect("one's own stays") == case.file);
    }
}

#[test]
fn what_a_killed_pull_left_is_listed_and_can_be_removed() {
    let case = Case::new(33 << 20);
    case.hub.manners().slowly = Some(std::time::Duration::from_millis(3));
    let address = format!("{}/some/where/part.gguf", case.hub.store);
    for (name, source) in [("m", "hf:me/mine/m.gguf"), ("part", address.as_str())] {
        let pulling = start(&mut case.models(&["pull", source]));
        let loaded = || {
            run(&mut case.models(&["info", name, "--json"]))
                .expect(0)
                .json()["loaded"]
                .as_u64()
                > Some(0)
        };
        assert!(
            until(|| names(&case).contains(&name.to_owned()) && loaded()),
            "it is seen while it is loaded"
        );
        pulling.signal(Signal::SIGKILL);
        pulling.wait();
        let listed = run(&mut case.models(&["list"])).expect(0).text();
        assert!(
            listed
                .lines()
                .any(|line| line.starts_with(name) && line.ends_with("are here")),
            "{listed}"
        );
    }
    // An address is in no file of ours: it may hold a password.
    run(&mut case.models(&["pull", "part"])).expect(2).says(&[
        "only a part of it is on this machine",
        "hint: pull it by its original address",
    ]);
    case.hub.manners().slowly = None;
    run(&mut case.models(&["pull", "m"])).expect(0);
    case.arrived(&case.path("hub/me--mine/m.gguf"));
    assert!(
        run(&mut case.models(&["rm", "part"]))
            .expect(0)
            .text()
            .contains("removed part")
    );
    assert!(!names(&case).contains(&"part".to_owned()));
    assert_eq!(fs::read_dir(case.path("url")).map_or(0, Iterator::count), 0);
}
