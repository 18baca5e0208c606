//! What rules that deny speak of: a command in whatever dress, and what may start it.

use super::Rule;

#[track_caller]
pub(super) fn check_denied(rule: &str, denied: &[&str], not: &[&str]) {
    let rule = Rule::parse(rule).expect("a good rule");
    let missed: Vec<&&str> = denied.iter().filter(|command| !rule.speaks_of(command, false)).collect();
    let wrong: Vec<&&str> = not.iter().filter(|command| rule.speaks_of(command, false)).collect();
    assert!(missed.is_empty() && wrong.is_empty(), "not denied: {missed:#?}\ndenied: {wrong:#?}");
}

#[test]
fn the_order_of_words_counts_in_a_pattern_but_for_the_options_of_git() {
    check_denied("bash(cargo run *)", &["cargo run", "cargo run -q"], &["cargo -q run", "cargo +nightly run"]);
    check_denied("bash(cargo *run *)", &["cargo run", "cargo -q run", "cargo +nightly run --release"], &["cargo test", "cargo build"]);
    check_denied("bash(rm -rf *)", &["rm -rf x"], &["rm -fr x", "rm -r -f x"]);
    check_denied("bash(rm *)", &["rm -rf x", "rm -fr x", "rm -r -f x", "rm --recursive x"], &["ls"]);
    check_denied("bash(npm *install *)", &["npm install", "npm --silent install x"], &["npm test"]);
    check_denied("bash(git push *)", &["git push", "git -C x push", "git -c a=b push -f"], &["git log"]);
}

#[test]
fn a_denial_speaks_of_a_command_wherever_it_is_and_in_doubt_too() {
    check_denied(
        "bash(rm *)",
        &[
            "rm x",
            "ls; rm x",
            "echo $(rm x)",
            "/bin/rm x",
            "r\\m x",
            "env rm x",
            "find . -exec rm {} +",
            "bash -c 'rm x'",
            "$X y",
            "sh \"$F\"",
            ". \"$F\"",
            "sh /dev/stdin < x",
            ". /dev/stdin < x",
            ". /proc/self/fd/0 <<< 'rm x'",
            "echo \"$x\" > a; . ./a",
            "sed s/a/b/ c > a; bash -x a",
            "ls (",
            "xargs rm < x",
            "r`:`m x",
            "rm`:` x",
            "`:`rm x",
            "/`echo bin`/rm x",
            "env r`:`m x",
            "A=b`:`c rm x",
            "r`:`\"m\" x",
            "history -s rm -f x; fc -s",
            "history -s rm -f x",
            "history -s 'rm -f' x; fc -e -",
            "history -s -- rm x",
            "fc -s",
            "fc -e -",
        ],
        &[
            "ls",
            "sh x.sh",
            "bash -x x.sh y",
            "bash -n x.sh",
            ". ./env.sh",
            "source .venv/bin/activate && pytest -q",
            "echo rm x",
            "git rm x",
            "grep rm x",
            "history 20",
            "history -s grep rm x",
            "fc -l",
            "ls a-`date`.b",
            "echo `date`x`date` > a`date`b",
        ],
    );
    check_denied(
        "bash(git push *)",
        &["git push", "git $X", "git $X origin", "g`:`it push", "git pu`:`sh"],
        &["git status", "git log $X", "ls $X"],
    );
    check_denied("bash(/curl/)", &["curl x", "ls; curl x"], &["ls"]);
}

#[test]
fn a_denial_speaks_of_a_program_that_another_one_starts_by_an_option_a_variable_or_by_itself() {
    check_denied(
        "bash(python3 *)",
        &[
            "git grep -Opython3 x",
            "git grep -nOpython3 x",
            "git grep --open-files-in-pager=python3 x",
            "git grep --open=python3 x",
            "git grep -O x",
            "start-stop-daemon --start --exec /usr/bin/python3 -- x.py",
            "sg users -c 'python3 x.py'",
            "sg users 'python3 x.py'",
            "make -f <(printf 'a:\n\tpython3 x.py\n')",
            "make -f - <<E\na:; python3 x.py\nE",
            "make --eval='$(shell python3 x.py)' a",
            "make 'A=$(shell python3 x.py)' a",
            "install -s --strip-program=python3 a b",
            "install -s --strip-program python3 a b",
            "install -s --strip=python3 a b",
            "GIT_EXTERNAL_DIFF='python3 x.py' git diff",
            "PAGER='python3 x.py' git -p log",
            "export GIT_PAGER='python3 x.py'; git -p log",
            "env GIT_PAGER='python3 x.py' git -p log",
            "LESSOPEN='|python3 x.py %s' less f",
            "EDITOR='python3 x.py' git commit",
            "EDITOR=$E git commit",
            "BASH_ENV=x.sh bash -c ls",
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=diff.external GIT_CONFIG_VALUE_0='python3 x' git diff",
            "GIT_CONFIG_GLOBAL=x git diff",
            "TAR_OPTIONS=--to-command=python3 tar xf a",
            "MAKEFLAGS='--eval=$(shell python3)' make",
            "sort --compress-program=python3 -S1 f",
            "sort --comp python3 f",
            "tar --to-command='python3 x.py' -xf a",
            "tar --to-c='python3 x.py' -xf a",
            "tar -I 'python3 x.py' -xf a",
            "tar -Ipython3 -xf a",
            "tar -xIf python3 a",
            "tar xIf python3 a",
            "tar -cf a --checkpoint=1 --checkpoint-action=exec='python3 x.py' b",
            "tar -cf a --checkpoint=1 --checkpoint-act=exec='python3 x.py' b",
            "fd -x python3 x.py",
            "fd -e rs --exec-batch python3",
            "fd -e rs --exec=python3",
            "rg --pre python3 x",
            "rsync -e 'python3 x.py' a h:b",
            "rsync -ave 'python3 x.py' a h:b",
            "ssh -o ProxyCommand='python3 x.py' h",
            "ssh -oProxyCommand='python3 x.py' h",
            "fakeroot python3 x.py",
            "tmux new -d 'python3 x.py'",
            "screen -dmS a python3 x.py",
            "cmake -E env A=b python3 x.py",
            "npm exec -- python3 x.py",
            "sqlite3 a.db '.shell python3 x.py'",
            "git clone -c core.sshCommand='python3 x.py' a b",
            "git push --receive-pack='python3 x.py' a",
            "python3.13 x.py",
            "/usr/bin/python3.13 x.py",
            "python3-3.13 x.py",
            "cp /usr/bin/python3 x; ./x y",
            "ln -s $(which python3) x; ./x y",
            "cp \"$(command -v python3)\" x",
            "less '+!python3 x.py' f",
            "git config core.pager 'python3 x.py'; git -p log",
            "git config --global core.editor $E",
        ],
        &[
            "git grep -n python3 x",
            "make -f other.mk all",
            "make CC=gcc -j4",
            "MAKEFLAGS=-j4 make",
            "PAGER=cat git log",
            "GIT_CONFIG_GLOBAL=/dev/null git log",
            "GIT_EDITOR=true git rebase --continue",
            "git config user.name python3",
            "git config core.autocrlf input",
            "git config --get core.pager",
            "sort -u python3",
            "tar -xzf a.tar.gz",
            "tar --zstd -cf a b",
            "tar -I zstd -xf a",
            "rsync -a a b",
            "ssh h ls",
            "pythonic3.13 x",
            "gcc-12 -o a a.c",
            "cp src/python3 x",
            "fd python3",
        ],
    );
    check_denied("bash(rm *)", &["cmake -E rm f", "cmake -E remove_directory d"], &["cmake -E copy a b", "cmake -B build"]);
    check_denied("bash(gcc *)", &["gcc-12 -o a a.c", "gcc-4.8.5 a.c"], &["gccgo-12 a.go"]);
    check_denied("bash(perl *)", &["perl5.36.0 -e x", "perl5.36 -e x"], &["perlbug-5"]);
}

#[test]
fn a_denial_speaks_of_every_version_of_a_program() {
    check_denied(
        "bash(python3 *)",
        &["python x.py", "python2 x", "python3.13 x", "env python x", "/usr/bin/python x"],
        &["python3-config --libs"],
    );
    check_denied("bash(python *)", &["python3 x", "python3.12 -c x"], &["pythonic x"]);
    check_denied("bash(pip install *)", &["pip3 install x"], &["pip list", "pip3 show install"]);
    check_denied("bash(base64 *)", &["base64 f"], &["base32 f"]);
    check_denied(
        "bash(git commit *)",
        &["git -C . commit", "git -c user.name=x commit -m y", "/usr/lib/git-core/git-commit -m x"],
        &["git -C . log"],
    );
}

#[test]
fn what_sed_and_awk_may_start_a_rule_that_denies_speaks_of() {
    let hidden = ["sed '1e rm F' x", "sed s/a/b/e x", "awk 'BEGIN{system(\"rm F\")}'", "awk '{print | \"rm F\"}' x", "awk -f x y"];
    check_denied("bash(rm *)", &hidden, &["sed -i s/a/b/ x", "sed -n '1,5p' x", "awk '{print $1}' x", "awk '{print > \"rm\"}' x"]);
}
