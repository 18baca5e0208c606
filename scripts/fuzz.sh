#!/bin/bash
# Feeds each fuzz target for a while with what it makes of the seeds: all of them, or those that are named. FUZZ_TIME is in seconds, for each.
#
# The dependencies are those that the tests were built with, and only our own code is built again. FUZZ_PROFILE=release optimises all of it, which
# builds for many minutes; it is for runs of hours.
#
# libFuzzer needs a C++ compiler. It sees which code an input reaches by scripts/fuzz-rustc.sh. No sanitizer takes part: they do not go with a
# static program. What a target finds worth keeping stays in fuzz/corpus, and what breaks it in fuzz/artifacts; git knows neither.
set -euo pipefail
cd "$(dirname "$0")/.."

[ $# != 0 ] || set -- parse sse session frame
profile=${FUZZ_PROFILE:-dev}
folder=$profile
[ "$profile" != dev ] || folder=debug
tuple=$(rustc -vV | sed -n 's/^host: //p')

# Assertions are what finds most.
RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/fuzz-rustc.sh CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS=true \
    cargo build --locked --package podbay-fuzz --profile "$profile"
for target in "$@"; do
    mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
    "${CARGO_TARGET_DIR:-target}/$tuple/$folder/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" \
        "-artifact_prefix=fuzz/artifacts/$target/" -max_total_time="${FUZZ_TIME:-60}" -timeout=20 -print_final_stats=1
done
