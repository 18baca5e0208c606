use super::*;

#[test]
fn one_folder_shows_what_is_ignored_and_not_what_is_hidden() {
    let project = Project::new(&[(".gitignore", "target\n"), ("target/x", "x"), ("src/a.rs", "abc"), (".hidden", "h"), ("b", "bb")]);
    symlink("src", project.path.join("link")).expect("linked");
    assert_eq!(project.list(list(".")).0, ["File b 2", "Link link -> src", "Directory src", "Directory target"]);
    let hidden = project.list(ListDirectory { show_hidden: true, ..list("") }).0;
    assert_eq!(hidden[..2], ["File .gitignore 7", "File .hidden 1"]);
    assert_eq!(project.list(list("link")).0, ["File a.rs 3"]);
    assert_eq!(project.list(ListDirectory { show_size: false, ..list("link") }).0, ["File a.rs"]);
}

#[test]
fn in_depth_ignored_files_and_repositories_are_left_out() {
    let project = Project::new(&[
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        ("target/x", ""),
        ("src/a.rs", ""),
        ("src/b.log", ""),
        ("src/keep.log", ""),
        ("src.txt", ""),
        (".git/config", ""),
        (".dot/x", ""),
    ]);
    symlink("src", project.path.join("link")).expect("linked");
    let entries = project.list(ListDirectory { recursive: true, ..list(".") }).0;
    assert_eq!(entries, ["Link link -> src", "Directory src", "File src/a.rs 0", "File src/keep.log 0", "File src.txt 0"]);
    let below = project.list(ListDirectory { recursive: true, show_hidden: true, ..list("/workspace/src/") }).0;
    assert_eq!(below, ["File a.rs 0", "File keep.log 0"]);
}

#[test]
fn what_is_left_out_is_counted() {
    let project = Project::new(&[]);
    for number in 0..500 {
        project.put(&format!("many/{number:03}"), "");
    }
    let (entries, omitted) = project.list(ListDirectory { max_entries: 2, ..list("many") });
    assert_eq!((entries, omitted), (vec!["File 000 0".to_string(), "File 001 0".to_string()], 498));
    let (entries, omitted) = project.list(ListDirectory { max_entries: 3, recursive: true, ..list("") });
    assert_eq!((entries.len(), omitted), (3, 498));
}
