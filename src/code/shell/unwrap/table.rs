use super::super::Word;

/// A program that takes options and then another program with its words.
pub(super) struct Wrapper {
    pub(super) name: &'static str,
    /// The word that must follow the name, as in `uv run`.
    pub(super) verb: Option<&'static str>,
    /// Letters of options without a value, and with one.
    pub(super) flags: &'static str,
    pub(super) valued: &'static str,
    /// Long options without a value, and with one.
    pub(super) long: &'static [&'static str],
    pub(super) long_valued: &'static [&'static str],
    /// Words in front of the program, such as the time of `timeout`.
    pub(super) n_operands: usize,
    /// Words like `A=b` in front of the program set variables.
    pub(super) takes_assignments: bool,
    /// It changes nothing itself.
    pub(super) does_nothing_else: bool,
}

const PLAIN: Wrapper = Wrapper {
    name: "",
    verb: None,
    flags: "",
    valued: "",
    long: &[],
    long_valued: &[],
    n_operands: 0,
    takes_assignments: false,
    does_nothing_else: true,
};

const ACTS: Wrapper = Wrapper { does_nothing_else: false, ..PLAIN };

const WRAPPERS: &[Wrapper] = &[
    Wrapper { name: "command", flags: "pvV", ..PLAIN },
    Wrapper { name: "builtin", ..PLAIN },
    Wrapper { name: "exec", flags: "cl", valued: "a", ..ACTS },
    Wrapper { name: "coproc", ..ACTS },
    Wrapper { name: "nohup", ..ACTS },
    Wrapper { name: "setsid", flags: "cfw", long: &["ctty", "fork", "wait"], ..ACTS },
    Wrapper { name: "nice", flags: "0123456789", valued: "n", long_valued: &["adjustment"], ..PLAIN },
    Wrapper { name: "ionice", flags: "t", valued: "cnp", long: &["ignore"], long_valued: &["class", "classdata"], ..PLAIN },
    Wrapper {
        name: "timeout",
        flags: "vpf",
        valued: "ks",
        long: &["preserve-status", "foreground", "verbose"],
        long_valued: &["signal", "kill-after"],
        n_operands: 1,
        ..PLAIN
    },
    Wrapper { name: "stdbuf", valued: "ioe", long_valued: &["input", "output", "error"], ..PLAIN },
    Wrapper { name: "time", flags: "pqva", valued: "fo", long: &["portability", "verbose"], long_valued: &["format", "output"], ..PLAIN },
    Wrapper {
        name: "env",
        flags: "i0v",
        valued: "uC",
        long: &["ignore-environment", "null", "debug"],
        long_valued: &["unset", "chdir"],
        takes_assignments: true,
        ..PLAIN
    },
    Wrapper {
        name: "sudo",
        flags: "ABbEHKknPSis",
        valued: "CDghpRrtTuU",
        long: &["background", "login", "non-interactive", "preserve-env", "set-home", "shell", "stdin"],
        long_valued: &["user", "group", "chdir", "host", "prompt"],
        takes_assignments: true,
        ..ACTS
    },
    Wrapper { name: "doas", flags: "Lns", valued: "aCu", ..ACTS },
    Wrapper { name: "pkexec", long: &["disable-internal-agent"], long_valued: &["user"], ..ACTS },
    Wrapper {
        name: "xargs",
        flags: "0prtxo",
        valued: "adEILnPs",
        long: &["null", "no-run-if-empty", "verbose", "interactive", "exit", "open-tty", "max-lines"],
        long_valued: &["arg-file", "delimiter", "max-args", "max-procs", "replace", "max-chars"],
        ..PLAIN
    },
    Wrapper { name: "parallel", flags: "0kXmu", valued: "jNnLIaP", ..ACTS },
    Wrapper {
        name: "watch",
        flags: "bcdegtx",
        valued: "n",
        long: &["no-title", "exec", "differences"],
        long_valued: &["interval"],
        ..ACTS
    },
    Wrapper { name: "chroot", long_valued: &["userspec", "groups"], n_operands: 1, ..ACTS },
    Wrapper { name: "unshare", flags: "CTUimnpurfc", ..ACTS },
    Wrapper { name: "strace", flags: "cCdfFhikqrtTvVxyDn", valued: "abeEoOpPsSuXI", ..ACTS },
    // A value follows `=` alone. What writes a file, or asks another program, is not here.
    Wrapper {
        name: "valgrind",
        flags: "dqv",
        long: &[
            "child-silent-after-fork",
            "error-exitcode",
            "error-limit",
            "errors-for-leak-kinds",
            "exit-on-first-error",
            "fair-sched",
            "keep-stacktraces",
            "leak-check",
            "leak-check-heuristics",
            "leak-resolution",
            "main-stacksize",
            "max-stackframe",
            "num-callers",
            "quiet",
            "read-var-info",
            "show-error-list",
            "show-leak-kinds",
            "show-possibly-lost",
            "show-reachable",
            "suppressions",
            "tool",
            "trace-children",
            "track-fds",
            "track-origins",
            "undef-value-errors",
            "verbose",
        ],
        ..ACTS
    },
    Wrapper { name: "taskset", flags: "ac", n_operands: 1, ..PLAIN },
    Wrapper { name: "chrt", flags: "abefiormvR", valued: "TPD", n_operands: 1, ..PLAIN },
    Wrapper { name: "choom", valued: "np", long_valued: &["adjust", "pid"], ..PLAIN },
    // A value follows `=` alone.
    Wrapper {
        name: "prlimit",
        long: &[
            "as",
            "core",
            "cpu",
            "data",
            "fsize",
            "locks",
            "memlock",
            "msgqueue",
            "nice",
            "nofile",
            "nproc",
            "rss",
            "rtprio",
            "rttime",
            "sigpending",
            "stack",
            "noheadings",
            "raw",
            "verbose",
        ],
        ..PLAIN
    },
    Wrapper { name: "setarch", flags: "BFILRSTXZ3v", n_operands: 1, ..PLAIN },
    Wrapper { name: "linux32", flags: "BFILRSTXZ3v", ..PLAIN },
    Wrapper { name: "linux64", flags: "BFILRSTXZ3v", ..PLAIN },
    Wrapper { name: "i386", flags: "BFILRSTXZ3v", ..PLAIN },
    Wrapper { name: "x86_64", flags: "BFILRSTXZ3v", ..PLAIN },
    Wrapper { name: "busybox", ..PLAIN },
    Wrapper { name: "toybox", ..PLAIN },
    Wrapper { name: "chronic", ..ACTS },
    Wrapper { name: "unbuffer", ..ACTS },
    Wrapper { name: "setpriv", ..ACTS },
    Wrapper { name: "flock", flags: "enosux", valued: "wE", n_operands: 1, ..ACTS },
    Wrapper { name: "entr", flags: "acdnprsxz", ..ACTS },
    Wrapper { name: "npx", flags: "y", valued: "p", long: &["yes", "no", "quiet"], long_valued: &["package"], ..ACTS },
    Wrapper {
        name: "uv",
        verb: Some("run"),
        flags: "nqvU",
        valued: "p",
        long: UV_FLAGS,
        long_valued: &["directory", "extra", "group", "no-group", "only-group", "package", "project", "python", "with"],
        ..ACTS
    },
    Wrapper { name: "poetry", verb: Some("run"), ..ACTS },
    Wrapper { name: "pipenv", verb: Some("run"), ..ACTS },
    Wrapper { name: "bundle", verb: Some("exec"), ..ACTS },
    Wrapper { name: "npm", verb: Some("exec"), flags: "y", long: &["yes", "no"], long_valued: &["package"], ..ACTS },
    Wrapper { name: "npm", verb: Some("x"), flags: "y", long: &["yes", "no"], long_valued: &["package"], ..ACTS },
    Wrapper { name: "pnpm", verb: Some("exec"), ..ACTS },
    Wrapper { name: "pnpm", verb: Some("dlx"), ..ACTS },
    Wrapper { name: "yarn", verb: Some("exec"), ..ACTS },
    Wrapper { name: "yarn", verb: Some("dlx"), ..ACTS },
    Wrapper { name: "pdm", verb: Some("run"), ..ACTS },
    Wrapper { name: "hatch", verb: Some("run"), ..ACTS },
    Wrapper { name: "rye", verb: Some("run"), ..ACTS },
    Wrapper { name: "pixi", verb: Some("run"), ..ACTS },
    Wrapper { name: "conda", verb: Some("run"), ..ACTS },
    Wrapper { name: "opam", verb: Some("exec"), ..ACTS },
    Wrapper { name: "mise", verb: Some("exec"), ..ACTS },
    Wrapper { name: "mise", verb: Some("x"), ..ACTS },
    Wrapper { name: "rbenv", verb: Some("exec"), ..ACTS },
    Wrapper { name: "pyenv", verb: Some("exec"), ..ACTS },
    Wrapper { name: "bunx", ..ACTS },
    Wrapper { name: "direnv", verb: Some("exec"), n_operands: 1, ..ACTS },
];

/// What `uv run` takes that loads no file which the options name.
const UV_FLAGS: &[&str] = &[
    "active",
    "all-extras",
    "all-groups",
    "all-packages",
    "dev",
    "exact",
    "frozen",
    "isolated",
    "locked",
    "no-cache",
    "no-config",
    "no-default-groups",
    "no-dev",
    "no-editable",
    "no-env-file",
    "no-progress",
    "no-project",
    "no-sync",
    "offline",
    "only-dev",
    "quiet",
    "refresh",
    "upgrade",
    "verbose",
];

/// A program that starts others, as it is called.
pub(super) struct Called {
    pub(super) wrapper: &'static Wrapper,
    /// How many words stand in front of its options: what is in front of the verb, and that.
    pub(super) n_before: usize,
    /// There is more in front of the verb than its name.
    pub(super) is_far: bool,
}

/// Options that such programs have in front of the verb, without a value and with one that follows.
const FLAGS: [&str; 18] = [
    "-A",
    "--all",
    "-g",
    "--global",
    "-q",
    "--quiet",
    "-r",
    "--recursive",
    "-s",
    "--silent",
    "-v",
    "--verbose",
    "-y",
    "--yes",
    "--offline",
    "--no-progress",
    "--workspaces",
    "--no-plugins",
];
const VALUED: [&str; 14] = [
    "-C",
    "--cwd",
    "--directory",
    "--dir",
    "-F",
    "--filter",
    "--loglevel",
    "--manifest-path",
    "--prefix",
    "--project",
    "-w",
    "--workspace",
    "workspace",
    "-p",
];

/// Most words that may stand in front of a verb.
const BEFORE_MAX: usize = 16;

/// Returns what is known of a program that starts others.
pub(super) fn find(name: &str, arguments: &[Word]) -> Option<Called> {
    let mut known = WRAPPERS.iter().filter(|wrapper| wrapper.name == name).peekable();
    if let Some(wrapper) = known.next_if(|wrapper| wrapper.verb.is_none()) {
        return Some(Called { wrapper, n_before: 0, is_far: false });
    }
    known.peek()?;
    let known: Vec<&'static Wrapper> = known.collect();
    // `npm -w a exec`, `yarn workspaces foreach -A exec`. Behind an option that is not known here stands its value, or the verb.
    let (mut is_value, mut may_be_value, mut is_far) = (false, false, false);
    for (at, word) in arguments.iter().take(BEFORE_MAX).enumerate() {
        let text = word.text.as_str();
        if std::mem::take(&mut is_value) {
            continue;
        }
        if let Some(wrapper) = known.iter().find(|wrapper| wrapper.verb == Some(text)) {
            return Some(Called { wrapper, n_before: at + 1, is_far });
        }
        let was_option = std::mem::take(&mut may_be_value);
        is_value = VALUED.contains(&text);
        if text.starts_with(['-', '+']) {
            may_be_value = !is_value && !FLAGS.contains(&text) && !text.starts_with('+') && !text.contains('=');
            is_far |= may_be_value;
        } else if !(is_value || was_option || matches!(text, "foreach" | "recursive" | "tool" | "workspaces")) {
            return None;
        }
    }
    None
}
