#!/bin/sh
# Calls rustc as cargo does, with what lets libFuzzer see which code an input reaches: counters for edges, and the values that are compared. It puts
# functions of its own in the place of `memcmp` and others, which a static program has no place for. Build scripts are no part of what is fed.
case " $* " in *" --crate-name build_script_"*) exec "$@" ;; esac
for argument; do
    shift
    [ "$argument" != target-feature=+crt-static ] || argument=target-feature=-crt-static
    set -- "$@" "$argument"
done
exec "$@" --cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares
