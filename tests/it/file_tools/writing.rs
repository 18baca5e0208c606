use super::*;

#[test]
fn files_and_their_folders_are_made() {
    let project = Project::new(&[]);
    let written = project.write("a/b/c.txt", "x\n").expect("writes");
    assert_eq!(
        (written.created, written.appended, written.bytes),
        (true, false, 2)
    );
    assert_eq!(project.text("a/b/c.txt"), "x\n");
    let appended = project.append("a/b/c.txt", "y\n").expect("appends");
    assert_eq!(
        (appended.created, appended.appended, appended.bytes),
        (false, true, 4)
    );
    assert!(
        project
            .append("new", "z")
            .expect("appends to nothing")
            .created
    );
    let status = fs::read_to_string("/proc/self/status").expect("is there");
    let umask = status
        .lines()
        .find_map(|line| line.strip_prefix("Umask:"))
        .expect("is told");
    let umask = u32::from_str_radix(umask.trim(), 8).expect("is octal");
    let mode = |name: &str| {
        fs::metadata(project.path.join(name))
            .expect("is there")
            .mode()
            & 0o777
    };
    assert_eq!(
        (mode("a/b/c.txt"), mode("a")),
        (0o666 & !umask, 0o777 & !umask)
    );
    project.check_untouched();
}

#[test]
fn the_mode_of_a_file_is_kept() {
    let project = Project::new(&[("script", "old"), ("private", "old")]);
    let set = |name: &str, mode| {
        fs::set_permissions(project.path.join(name), fs::Permissions::from_mode(mode))
            .expect("set");
    };
    set("script", 0o755);
    set("private", 0o600);
    project.write("script", "new").expect("writes");
    project.edit("private", "old", "new").expect("edits");
    let mode = |name: &str| {
        fs::metadata(project.path.join(name))
            .expect("is there")
            .mode()
            & 0o7777
    };
    assert_eq!((mode("script"), mode("private")), (0o755, 0o600));
}

#[test]
fn a_read_only_file_stays_as_it_is() {
    let project = Project::new(&[("f", "old")]);
    fs::set_permissions(project.path.join("f"), fs::Permissions::from_mode(0o444)).expect("set");
    assert!(matches!(
        project.write("f", "new"),
        Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })
    ));
    assert!(matches!(
        project.edit("f", "old", "new"),
        Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })
    ));
    assert!(matches!(
        project.append("f", "new"),
        Err(Fault::ReadOnly { .. } | Fault::PermissionDenied { .. })
    ));
    assert_eq!(project.text("f"), "old");
    project.check_untouched();
}

#[test]
fn all_names_of_a_hard_linked_file_show_the_new_text() {
    let project = Project::new(&[("a", "old text")]);
    fs::hard_link(project.path.join("a"), project.path.join("b")).expect("linked");
    project.write("a", "new").expect("writes");
    assert_eq!(project.text("b"), "new");
    project.edit("b", "new", "newer").expect("edits");
    assert_eq!(project.text("a"), "newer");
}

/// The control: a file that a new one takes the place of loses its mode and its other names, and
/// one that is cut first is seen empty.
#[test]
fn whoever_writes_without_care_loses_modes_names_and_what_readers_see() {
    let project = Project::new(&[("a", "old text")]);
    fs::set_permissions(project.path.join("a"), fs::Permissions::from_mode(0o755)).expect("set");
    fs::hard_link(project.path.join("a"), project.path.join("b")).expect("linked");
    fs::write(project.path.join("a.new"), "new").expect("written");
    fs::rename(project.path.join("a.new"), project.path.join("a")).expect("moved");
    let mode = fs::metadata(project.path.join("a"))
        .expect("is there")
        .mode()
        & 0o7777;
    assert!(mode != 0o755 && project.text("b") == "old text", "{mode:o}");
    drop(fs::File::create(project.path.join("b")).expect("made anew"));
    assert_eq!(project.text("b"), "");
}

#[test]
fn a_reader_sees_the_old_or_the_new_file_and_nothing_between() {
    let project = Project::new(&[]);
    let texts = ["a".repeat(200_000), "b".repeat(100_000)];
    project.put("f", &texts[0]);
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..100 {
                project.write("f", &texts[round % 2]).expect("writes");
            }
            done.store(true, Ordering::Relaxed);
        });
        while !done.load(Ordering::Relaxed) {
            let seen = project.text("f");
            assert!(texts.contains(&seen), "{} bytes", seen.len());
        }
    });
}

#[test]
fn what_the_model_gives_is_what_stands_there_in_the_form_that_the_file_had() {
    let project = Project::new(&[("f", "a\r\nb\r\n"), ("g", "a\nb\n")]);
    let written = project.write("f", "c\nd").expect("writes");
    assert_eq!(
        (project.bytes("f"), written.bytes, written.notes),
        (
            b"c\r\nd".to_vec(),
            4,
            vec!["its line ends are CRLF as before".to_owned()]
        )
    );
    let written = project.write("g", "c\nd").expect("writes");
    assert_eq!(
        (project.bytes("g"), written.bytes, written.notes),
        (b"c\nd".to_vec(), 3, vec![])
    );
    project.write("f", "").expect("writes nothing");
    assert_eq!(project.bytes("f"), b"");
}

#[test]
fn what_is_appended_to_a_file_has_its_encoding() {
    let project = Project::new(&[("marked", "\u{feff}a\n")]);
    for (name, content, after) in [
        ("little", b"\xff\xfea\0\n\0", b"\xff\xfea\0\n\0b\0\n\0"),
        ("big", b"\xfe\xff\0a\0\n", b"\xfe\xff\0a\0\n\0b\0\n"),
        ("returns", b"\xff\xfea\0\r\0", b"\xff\xfea\0\r\0b\0\r\0"),
    ] {
        fs::write(project.path.join(name), content).expect("written");
        project.append(name, "b\n").expect("appends");
        assert_eq!(project.bytes(name), after, "{name}");
    }
    project.append("marked", "b\n").expect("appends");
    assert_eq!(project.text("marked"), "\u{feff}a\nb\n");
}

#[test]
fn what_is_appended_gets_the_line_ends_of_the_file() {
    let project = Project::new(&[
        ("returns", "a\r\nb\r\n"),
        ("newlines", "a\n"),
        ("mixed", "a\n"),
        ("one", "a"),
    ]);
    for (name, text, expected) in [
        ("returns", "c\nd\n", "a\r\nb\r\nc\r\nd\r\n"),
        ("newlines", "b\n", "a\nb\n"),
        ("mixed", "b\r\nc\n", "a\nb\r\nc\n"),
        ("one", "\nb", "a\nb"),
    ] {
        let written = project.append(name, text).expect("appends");
        assert_eq!(
            (project.text(name).as_str(), written.bytes),
            (expected, expected.len() as u64)
        );
    }
}
