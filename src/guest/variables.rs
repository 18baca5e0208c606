//! Which variables of an image commands get.
//!
//! An image is chosen for its programs, and its variables belong to them. But a variable must not
//! make a program that only reads run something else first, especially not a file that a command
//! can have written: that needs no permission.

/// What commands get where neither the image nor the sandbox sets it.
///
/// Python's cached bytecode in the project would run on the user's machine in place of the source,
/// unseen by git, and be part of each review.
pub const DEFAULTS: [(&str, &str); 4] = [
    (
        "PATH",
        "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    ),
    ("HOME", "/"),
    ("LANG", "C.UTF-8"),
    ("PYTHONDONTWRITEBYTECODE", "1"),
];

/// Variables by which a loader, a C library, a shell or an interpreter runs or loads something
/// before a command does, or which are ours.
const REFUSED: [&str; 33] = [
    "BASHOPTS",
    "BASH_ENV",
    "CDPATH",
    "ENV",
    "GCONV_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GLIBC_TUNABLES",
    "GNUMAKEFLAGS",
    "HOSTALIASES",
    "HOSTNAME",
    "IFS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "OLDPWD",
    "PAGER",
    "PERL5DB",
    "PERL5OPT",
    "PROMPT_COMMAND",
    "PS4",
    "PWD",
    "PYTHONBREAKPOINT",
    "PYTHONSTARTUP",
    "RUBYOPT",
    "SHELLOPTS",
    "SHLVL",
    "TERM",
];
const REFUSED_BEGINNINGS: [&str; 4] = ["LD_", "BASH_FUNC_", "GIT_CONFIG", "MALLOC_"];

/// Refused variables that every image may have and that are not reported: the sandbox sets its own.
const OURS: [&str; 6] = ["HOSTNAME", "OLDPWD", "PWD", "SHLVL", "TERM", "HOME"];

/// Search lists for programs or libraries, besides all variables whose names end with `PATH`.
const LISTS: [&str; 3] = ["PERL5LIB", "PERLLIB", "RUBYLIB"];

/// Where commands can write: files there may have been written by one command for the next one to
/// run.
const PROJECT: &[u8] = b"/workspace";
const WRITABLE: [&[u8]; 5] = [PROJECT, b"/tmp", b"/var/tmp", b"/dev/shm", b"/home/agent"];

/// Variables that name folders for data, and load nothing.
const PLACES: [&str; 8] = [
    "CARGO_TARGET_DIR",
    "COVERAGE_FILE",
    "HOME",
    "MYPY_CACHE_DIR",
    "RUFF_CACHE_DIR",
    "TEMP",
    "TMP",
    "TMPDIR",
];

/// Returns the value that commands get of an image's variable; `None` where they do not get it.
///
/// Relative folders and folders that commands can write are removed from search lists. Any other
/// value that names such a folder is not passed on, unless it only names a folder for data.
pub(super) fn passed_on(name: &str, value: &[u8]) -> Option<Vec<u8>> {
    if REFUSED.contains(&name)
        || REFUSED_BEGINNINGS
            .iter()
            .any(|beginning| name.starts_with(beginning))
    {
        return None;
    }
    if name.ends_with("PATH") || LISTS.contains(&name) {
        let kept: Vec<&[u8]> = value
            .split(|&byte| byte == b':')
            .filter(|folder| is_outside(folder))
            .collect();
        return (!kept.is_empty()).then(|| kept.join(&b':'));
    }
    (PLACES.contains(&name) && !names(value, PROJECT)
        || !WRITABLE.iter().any(|place| names(value, place)))
    .then(|| value.to_vec())
}

/// Returns the variables of an image (`NAME=value`) that commands do not get unchanged; not those
/// that the sandbox sets itself.
pub fn not_passed_on(env: &[String]) -> Vec<&str> {
    let mut names: Vec<&str> = env
        .iter()
        .filter_map(|pair| pair.split_once('='))
        .filter(|(name, value)| !value.is_empty() && !OURS.contains(name))
        .filter(|(name, value)| {
            passed_on(name, value.as_bytes()).is_none_or(|passed| passed != value.as_bytes())
        })
        .map(|(name, _)| name)
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns whether a folder of a list is an absolute path outside of the folders that commands can
/// write, however it is written.
fn is_outside(folder: &[u8]) -> bool {
    folder.starts_with(b"/")
        && !WRITABLE
            .iter()
            .any(|place| parts(folder).starts_with(&parts(place)))
}

/// Returns the components of an absolute path, without `.`, `..` and doubled slashes.
fn parts(path: &[u8]) -> Vec<&[u8]> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    parts
}

/// Returns whether a path below a place occurs anywhere in a value: alone, in a list, behind
/// `--option=`.
fn names(value: &[u8], place: &[u8]) -> bool {
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-".contains(byte);
    value.windows(place.len()).enumerate().any(|(at, window)| {
        let before = at.checked_sub(1).and_then(|at| value.get(at));
        let after = value.get(at + place.len());
        // In the middle of another path it is another folder.
        window == place && !before.is_some_and(is_of_name) && !after.is_some_and(is_of_name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pair: &str, expected: Option<&str>) {
        let (name, value) = pair.split_once('=').expect("a pair");
        let passed =
            passed_on(name, value.as_bytes()).map(|value| String::from_utf8(value).expect("text"));
        assert_eq!(passed.as_deref(), expected, "{pair}");
    }

    #[test]
    fn folders_of_the_project_are_removed_from_search_lists() {
        check("PATH=/workspace/bin:/usr/bin:/bin", Some("/usr/bin:/bin"));
        check("PATH=/usr/bin:/workspace", Some("/usr/bin"));
        check("PATH=:/usr/bin:.:bin:./x:../y", Some("/usr/bin"));
        check(
            "PATH=//workspace//bin:/./workspace:/usr/../workspace/bin:/opt/java/bin",
            Some("/opt/java/bin"),
        );
        check(
            "PATH=/workspaces/bin:/srv/workspace/bin:/workspace/../bin",
            Some("/workspaces/bin:/srv/workspace/bin:/workspace/../bin"),
        );
        check("PATH=/workspace/bin", None);
        check("PYTHONPATH=/workspace/src", None);
        check(
            "NODE_PATH=node_modules:/usr/lib/node_modules",
            Some("/usr/lib/node_modules"),
        );
        check("PERL5LIB=lib", None);
        check("GOPATH=/go", Some("/go"));
    }

    #[test]
    fn variables_that_load_code_are_never_passed_on() {
        for name in [
            "LD_PRELOAD",
            "LD_AUDIT",
            "BASH_ENV",
            "ENV",
            "PERL5OPT",
            "RUBYOPT",
            "PYTHONSTARTUP",
            "GIT_CONFIG_COUNT",
            "LESSOPEN",
            "MAKEFLAGS",
            "PAGER",
        ] {
            check(&format!("{name}=/opt/evil"), None);
        }
    }

    #[test]
    fn a_value_that_names_the_project_is_not_passed_on() {
        check("NODE_OPTIONS=--require=/workspace/x.js", None);
        check("JAVA_TOOL_OPTIONS=-javaagent:/workspace/a.jar", None);
        check("CARGO_HOME=/workspace", None);
        for value in [
            "JAVA_TOOL_OPTIONS=-javaagent:/tmp/x",
            "PYTHONHOME=/home/agent/evil",
            "NODE_OPTIONS=--require=//dev/shm/x.js",
        ] {
            check(value, None);
        }
        for value in [
            "PYTHONPATH=/tmp/evil",
            "PATH=/home/agent/bin",
            "TERMINFO=/tmp/terminfo",
            "TMPDIR=/workspace/tmp",
            "ANY=/var/tmp/x",
        ] {
            check(value, None);
        }
        check(
            "PATH=/tmp/../usr/bin:/tmp/bin:/usr/bin:/dev/./shm/bin",
            Some("/tmp/../usr/bin:/usr/bin"),
        );
        for value in [
            "HOME=/home/agent",
            "TMPDIR=/tmp",
            "ANY=/tmpl",
            "ANY=/home/agents",
        ] {
            check(value, value.split_once('=').map(|(_, value)| value));
        }
        check("ANY=a,/workspace/b", None);
        check(
            "NODE_OPTIONS=--max-old-space-size=512",
            Some("--max-old-space-size=512"),
        );
        check("ANY=/workspaces", Some("/workspaces"));
        check("ANY=/srv/workspace/x", Some("/srv/workspace/x"));
        check("JAVA_HOME=/opt/java", Some("/opt/java"));
    }

    #[test]
    fn refused_variables_are_reported_except_our_own() {
        let env = [
            "PATH=/workspace/bin:/bin",
            "PATH=/bin",
            "PWD=/x",
            "TERM=xterm",
            "HOME=/workspace",
            "LD_PRELOAD=/x.so",
            "A=b",
            "ENV=",
            "odd",
        ];
        assert_eq!(
            not_passed_on(&env.map(str::to_owned)),
            ["LD_PRELOAD", "PATH"]
        );
        assert_eq!(not_passed_on(&["PATH=/usr/bin:/bin".to_owned()]), [""; 0]);
    }
}
