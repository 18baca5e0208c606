#!/bin/sh
# Calls rustc as cargo does, with what lets libFuzzer see which code an input reaches: counters for edges, and the values that are compared.
exec "$@" --cfg fuzzing -C passes=sancov-module -C llvm-args=-sanitizer-coverage-level=4 \
    -C llvm-args=-sanitizer-coverage-inline-8bit-counters -C llvm-args=-sanitizer-coverage-pc-table \
    -C llvm-args=-sanitizer-coverage-trace-compares
