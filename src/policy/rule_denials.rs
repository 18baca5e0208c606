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
    check_denied("bash(pip install *)", &["pip3 install x", "python3 -m pip install x"], &["pip list", "pip3 show install"]);
    check_denied("bash(base64 *)", &["base64 f"], &["base32 f"]);
    check_denied(
        "bash(git commit *)",
        &["git -C . commit", "git -c user.name=x commit -m y", "/usr/lib/git-core/git-commit -m x"],
        &["git -C . log"],
    );
}

#[test]
fn a_denial_speaks_of_a_program_that_is_named_to_one_which_may_start_it() {
    check_denied(
        "bash(rm *)",
        &[
            "x='a[$(rm b)]'; let x",
            "read x < f; let x",
            "x=$(cat f); declare -i y; y=$x",
            "x='a[$(rm b)]'; declare -i y=$x",
            "x='a[$(rm b)]'; test -v \"$x\"",
            "[ -v $x ]",
            "printf -v \"$x\" a",
            "read \"$x\" < f",
            "read -a $x < f",
            "mapfile $x < f",
            "unset $x",
            "declare \"$x\"",
            "env 'BASH_FUNC_ls%%=() { rm x; }' bash -c ls",
            "env 'BASH_FUNC_ls%%=() { $y; }' bash -c ls",
            "x86_64-linux-gnu-gcc -wrapper rm,a f.c",
            "gcc-12 -wrapper rm,a f.c",
            "c++ -wrapper rm f.c",
            "prove -e rm t",
            "prove --exec=rm t",
            "GREP=rm zgrep a f",
            "GREP='rm -f' zgrep a f",
            "SHELL=rm script x",
            "export CC=rm; make",
            "env CC=/bin/rm make",
            "make CC=rm",
            "npm_config_script_shell=rm npm run x",
            "export npm_config_script_shell=rm; npm run x",
            "NPM_CONFIG_SCRIPT_SHELL=/bin/rm npm run x",
            "make 'CC=rm -f'",
            "CC=rm make -e",
            "make SHELL=/bin/rm",
            "make .SHELLFLAGS=-c",
            "make -f- < x",
            "make -sf - < x",
            "make --mak=- < x",
            "make --file /dev/stdin < x",
            "make -f/dev/fd/0 < x",
            "printf 'a:\\n\\trm x\\n' | make -f ./-",
            "git clone -urm a b",
            "git clone --upload-p=rm a b",
            "git fetch --upl rm x",
            "git ls-remote --exec=rm x",
            "/usr/lib/git-core/git-clone -urm a b",
            "/usr/lib/git-core/git-rebase -x 'rm a' main",
            "strip -o x /usr/bin/rm",
            "strip -o x /bin/rm; ./x y",
            "objcopy /usr/bin/rm x",
            "dd if=/bin/rm of=x",
            "tee x < /bin/rm",
            "cat /bin/rm > x",
            "cat < /usr/bin/rm > x",
            "cat $(which rm) > x",
            "head -c 100000 /bin/rm > x",
            "sed '' /bin/rm > x",
            "gzip -c /bin/rm > x.gz",
            "python3 -c 'import os; os.system(\"rm x\")'",
            "python3 <<E\nimport os\nos.system('rm x')\nE",
            "perl -e 'exec \"rm\", \"x\"'",
            "echo 'system(\"rm x\")' | perl",
            "node -e 'require(\"child_process\").execSync(\"/bin/rm x\")'",
            "some-launcher rm x",
            "valgrind rm x",
            "valgrind --log-file=a ./x",
            "crontab x",
            "crontab -l x",
            "some-launcher --with=rm x",
            "nohup --x rm y",
            "go build -toolexec rm ./...",
            "cargo --config 'build.rustc-wrapper=\"rm\"' build",
            "npm --script-shell=rm test",
            "f() { $1 x; }; f rm",
            "cat /bin/r? > x",
            "cat /bin/r[m] > x",
            "tee x < /usr/bin/r*",
            "cd /bin; cp rm /tmp/x",
            "cd /usr/bin && cat rm > /tmp/x",
            "find /bin -name rm -exec cp {} x +",
            "rsync /bin/rm x",
            "curl file:///bin/rm -o x",
            "ssh localhost rm x",
            "lua -e 'os.execute(\"rm x\")'",
            "ruby -e '`rm x`'",
            "php -r 'system(\"rm x\");'",
            "tclsh <<< 'exec rm x'",
            "env LS=/bin/rm foo",
        ],
        &[
            "let i=1",
            "let 'i = i + 1'",
            "i=0; let i++",
            "declare -i n=5; echo $n",
            "read -p \"$x\" y",
            "read -t \"$t\" y",
            "test -v x",
            "printf -v x '%s' a",
            "unset x",
            "docker run --rm x",
            "grep -rn 'rm -rf' src",
            "echo 'rm x' > notes",
            "git commit -m 'rm the old one'",
            "git log --grep=rm",
            "git rm x",
            "git clone a b",
            "git fetch --prune",
            "make -f rules.mk all",
            "make rm",
            "make CC=gcc -j4",
            "python3 -c 'print(1)'",
            "python3 form.py --alarm",
            "perl -e 'print \"farm\"'",
            "ls -l /bin/rm",
            "file /usr/bin/rm",
            "which rm",
            "man rm",
            "apt-get install -y rm",
            "cargo test rm",
            "go test ./... -run rm",
            "pytest -k rm",
            "npm run rm",
            "find . -name rm",
            "timeout 5 grep rm x",
            "nohup grep rm x",
            "env LANG=C grep rm x",
            "pkill rm",
            "cat src/rm > x",
            "cat > notes <<E\nrm x\nE",
            "sed 's#/usr/bin/rm#x#' f > g",
            "x=rm; echo \"$x\"",
            "f() { grep \"$1\" x; }; f rm",
            "bash -c 'grep rm x'",
            "for f in rm; do cat $f; done",
            "cat /bin/l? > x",
            "cd src && cp rm x",
            "find . -name rm -exec cat {} +",
            "python3 -c 'print(2*3)'",
            "crontab -l",
            "crontab -u me -l",
            "valgrind ./main",
            "valgrind -q --leak-check=full --error-exitcode=1 ./main x",
        ],
    );
    check_denied("bash(git push *)", &["python3 -c 'run([\"git\", \"push\"])'"], &["python3 -c 'run([\"git\", \"status\"])'"]);
}

#[test]
fn what_sed_and_awk_may_start_a_rule_that_denies_speaks_of() {
    let hidden = ["sed '1e rm F' x", "sed s/a/b/e x", "awk 'BEGIN{system(\"rm F\")}'", "awk '{print | \"rm F\"}' x", "awk -f x y"];
    check_denied("bash(rm *)", &hidden, &["sed -i s/a/b/ x", "sed -n '1,5p' x", "awk '{print $1}' x", "awk '{print > \"rm\"}' x"]);
}

#[test]
fn a_denial_speaks_of_what_a_program_finds_in_its_environment() {
    check_denied(
        "bash(rm *)",
        &[
            "A='rm x' python3 -c 'import os; os.system(os.environ[\"A\"])'",
            "A='rm x' make -f M",
            "A='rm x' env python3 a.py",
            "A='rm x' bash -c 'python3 a.py'",
            "export A='rm x'; python3 a.py",
            "export \"A=rm x\"; python3 a.py",
            "A='rm x'; export A; node a.js",
            "declare -x A='rm x'; perl a.pl",
            "set -a; A='rm x'; ./run",
            "set -o allexport; A='rm x'; ./run",
            "f() { python3 a.py; }; A='rm x' f",
            "env A='rm x' python3 a.py",
            "read A <<< 'rm x'; export A; python3 a.py",
            "A='rm x' awk 'BEGIN { system(ENVIRON[\"A\"]) }'",
        ],
        &[
            "A='rm x'; python3 a.py",
            "local A='rm x'; python3 a.py",
            "A='farm x' python3 a.py",
            "export A='rm x'; ls",
            "A='rm x' grep y z",
            "export A=b; python3 a.py",
        ],
    );
}
