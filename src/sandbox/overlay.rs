//! How the kernel is told to lay a file system over a folder.

/// Returns the options by which it does.
///
/// A colon or a comma would end the path and begin another one, or an option. The engine looks for
/// options of its own between commas before the kernel sees them; with a slash at its end no path
/// ends in one. What is not changed has the number that it has in the project (`xino`).
///
/// A folder of the project cannot be renamed in one step (`redirect_dir`): the new name would only
/// be a note of where the folder lies in the project, and all that is in it would be gone as soon
/// as it is moved or removed there, be it by what is applied. Nor could anybody but the kernel
/// tell whose the files in it are.
///
/// `layer`: where below `upper` the two folders lie that take up what is changed, with a slash at
/// its end where that is not nothing.
pub(super) fn overlay(lower: &str, upper: &str, layer: &str) -> String {
    let [lower, upper] = [lower, upper].map(escaped);
    format!(
        "lowerdir={lower}/,upperdir={upper}/{layer}up/,workdir={upper}/{layer}wk/,redirect_dir=nofollow,xino=off,nosuid,nodev"
    )
}

fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for character in path.chars() {
        if matches!(character, ':' | ',' | '\\') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_ends_early_or_becomes_an_option() {
        let options = |path: &str| overlay(path, "/var/lib/docker/volumes/v/_data", "");
        assert_eq!(
            options("/home/p"),
            "lowerdir=/home/p/,upperdir=/var/lib/docker/volumes/v/_data/up/,workdir=/var/lib/docker/volumes/v/_data/wk/,\
             redirect_dir=nofollow,xino=off,nosuid,nodev"
        );
        assert!(
            overlay("/p", "/v", "v/2/")
                .starts_with("lowerdir=/p/,upperdir=/v/v/2/up/,workdir=/v/v/2/wk/,")
        );
        for (path, expected) in [
            ("/a:b", r"lowerdir=/a\:b/,"),
            (r"/a\,upperdir=b", r"lowerdir=/a\\\,upperdir=b/,"),
            ("/a,ro", r"lowerdir=/a\,ro/,"),
            ("/a \"b\n", "lowerdir=/a \"b\n/,"),
        ] {
            assert!(options(path).starts_with(expected), "{}", options(path));
        }
        // What the engine finds between commas.
        let flags = ["ro", "rw", "remount", "exec", "suid", "bind", "private"];
        for flag in flags {
            let options = options(&format!("/x,{flag},{flag}"));
            assert!(!options.split(',').any(|part| part == flag), "{options}");
        }
    }
}
