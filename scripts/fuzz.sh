#!/bin/bash
# Feeds each fuzz target for a while with what it makes of the seeds: all of them, or those that are named. FUZZ_TIME is in seconds, for each.
#
# Sanitizers would not go with a static program (`-s none`), and libfuzzer needs flags of a nightly compiler, which RUSTC_BOOTSTRAP allows,
# and a C++ compiler. What a target finds worth keeping stays in fuzz/corpus, and what breaks it in fuzz/artifacts; git knows neither.
set -euo pipefail
cd "$(dirname "$0")/.."

version=0.13.2
export PATH="$PWD/target/tools/bin:$PATH"
if [ "$(cargo-fuzz --version 2>/dev/null)" != "cargo-fuzz $version" ]; then
    cargo install --locked --quiet --debug --root target/tools "cargo-fuzz@$version"
fi
[ $# != 0 ] || set -- parse sse session frame
for target in "$@"; do
    mkdir -p "fuzz/corpus/$target"
    RUSTC_BOOTSTRAP=1 RUSTFLAGS='' cargo fuzz run -s none --codegen-units 16 "$target" "fuzz/corpus/$target" "fuzz/seeds/$target" -- \
        -max_total_time="${FUZZ_TIME:-60}" -timeout=20 -print_final_stats=1
done
