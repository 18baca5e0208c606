#!/bin/bash
# Prints the slowest tests of what `cargo test -- -Z unstable-options --report-time` printed: twenty, or as many as it is told, with their seconds.
set -euo pipefail
sed -nE 's/^test (.*) \.\.\. .*<([0-9]+\.[0-9]+)s>$/\2 \1/p' | sort -gr | awk -v most="${1:-20}" '{ all += $1 } NR <= most { printf "%7.1f s  %s\n", $1, $2 } END { printf "%7.1f s  all %d of them, one after the other\n", all, NR }'
