#!/bin/sh
# Calls clippy as cargo calls rustc: it lints and compiles in one go, and a warning is an error. The program itself is what rustc makes of it.
shift
exec clippy-driver rustc "$@" -D warnings
