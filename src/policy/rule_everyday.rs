//! What rules that deny leave alone: everyday work on files, and words that are names.

use super::rule_denials::check_denied;

#[test]
fn a_denial_lets_sed_edit_the_files_of_a_loop_and_put_the_value_of_a_variable_in() {
    check_denied(
        "bash(rm *)",
        &[
            "for f in *.py; do sed -i 's/x/rm y/e' \"$f\"; done",
            "for f in *.py; do sed -i -e \"$f\" a; done",
            "for f in $(cat l); do sed -i s/a/b/ \"$f\"; done",
            "for f in a b; do f=$x; sed -i s/a/b/ \"$f\"; done",
            "for f in a b; do read f; sed -i s/a/b/ \"$f\"; done",
            "find . -printf '-e1e r%p' | xargs sed -i s/a/b/",
            "cat l | xargs sed -i s/a/b/",
            "VER='y/e;'; sed -i \"s/x/$VER/\" a",
            "VER=$(printf 'r%s V/e' m); sed -i \"s/x/$VER/\" a",
            "echo 'r''m x/e' > v; VER=$(cat v); sed -i \"s/x/$VER/\" a",
            "read VER < v; sed -i \"s/x/$VER/\" a",
            "for VER in \"$@\"; do sed -i \"s/x/$VER/\" a; done",
            "sed -i \"s/x/$(./gen)/\" a",
            "sed -i \"s/x/$1/\" a",
            "sed -i \"$X\" a",
        ],
        &[
            "for f in *.py; do sed -i 's/x/y/' \"$f\"; done",
            "for f in src/*.py a.py; do sed -i 's/x/y/' \"${f}\"; done",
            "for f in $(git ls-files '*.py'); do sed -i 's/x/y/' \"$f\"; done",
            "find . -name '*.py' | xargs sed -i 's/a/b/'",
            "git ls-files '*.py' | xargs sed -i 's/a/b/'",
            "sed -i 's/a/b/' *.py",
            "sed -i \"s/x/$VER/\" a.txt",
            "VER=1.2; sed -i \"s/x$/${VER}/\" a.txt",
            "VER=$(cat VERSION); sed -i \"s/x/$VER/\" a.txt",
            "sed -i \"s|x|$(pwd)|g\" a.txt",
        ],
    );
}

#[test]
fn a_denial_lets_a_shell_run_the_scripts_of_a_loop_that_are_there() {
    check_denied(
        "bash(rm *)",
        &[
            "bash \"$t\"",
            "for t in tests/*.sh; do bash -c \"$t\"; done",
            "for t in -c x; do bash \"$t\"; done",
            "for t in *.sh; do bash $t; done",
            "echo x > a.sh; for t in *.sh; do bash \"$t\"; done",
            "for t in $(cat l); do bash \"$t\"; done",
            "for t in *.sh; do bash -s \"$t\"; done",
        ],
        &["for t in tests/*.sh; do bash \"$t\"; done", "for t in a.sh ./b.sh; do sh -x \"$t\" y; done"],
    );
}

#[test]
fn a_denial_takes_a_name_for_no_program_where_nothing_may_start_it() {
    check_denied(
        "bash(docker *)",
        &[
            "command docker ps",
            "cd /usr/bin; ln -s docker /tmp/x",
            "ln -s /usr/bin/docker x",
            "ln -s $(which docker) x",
            "zip -T -TT 'docker x' d.zip a",
            "zip --unzip-command docker -T d.zip a",
            "zip x.zip /usr/bin/docker",
            "kubectl exec pod -- docker ps",
            "export DOCKER=docker; make",
            "export DOCKER=docker; $DOCKER ps",
            "export PAGER=docker; git log",
            "CC=docker make",
        ],
        &[
            "command -v docker",
            "command -V docker && echo yes",
            "ln -s docker x",
            "ln -sfn docker/compose.yaml compose.yaml",
            "zip -r d.zip docker",
            "kubectl apply -f docker",
            "kubectl get pods -l app=docker",
            "export DOCKER=docker",
            "DOCKER=docker; echo done",
        ],
    );
}
