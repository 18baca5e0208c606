# Lists the recipes.
default:
    @just --list

# Compiles everything without making a program
check:
    cargo check --all-targets
    cargo check --package podbay --no-default-features

# Formats the code
fmt:
    cargo fmt

# Runs the linters as CI does
lint:
    cargo fmt --check
    cargo clippy --all-targets -- -D warnings
    cargo clippy --package podbay --no-default-features -- -D warnings

# Runs all tests that need no container engine; arguments go to the test program
test *ARGS:
    PODBAY_TEST_DOCKER=0 cargo test {{ARGS}}

# Runs the tests and writes the pages and snapshots that they compare with
snap:
    PODBAY_TEST_DOCKER=0 PODBAY_BLESS=1 INSTA_UPDATE=always cargo test

# Builds the program for the inside of a sandbox alone
guest:
    cargo build --release --package podbay --no-default-features

# Builds Podbay's images
images *NAMES:
    cargo run --release -- images build {{NAMES}}

# Runs all tests at their full length: 200 kills each, every split, tight limits, 100,000 files, restarts
soak KILLS="200" *ARGS:
    PODBAY_TEST_SOAK=1 PODBAY_TEST_COMPOSE=1 PODBAY_TEST_STRACE=1 PODBAY_TEST_KILLS={{KILLS}} cargo test --no-fail-fast -- --include-ignored {{ARGS}}

# Measures what docs/performance.md shows, and writes it there
bench:
    cargo build --release
    cargo bench --bench compare
    cargo bench --bench own

# Counts the instructions of our own hot paths (needs valgrind), and writes them to docs/performance.md
count:
    cargo bench --bench instructions

# Fuzzes what reads others' bytes, a minute each: `just fuzz`, `just fuzz session`
fuzz *TARGETS:
    scripts/fuzz.sh {{TARGETS}}

# Checks licences, sources and banned crates
deny:
    cargo deny check bans licenses sources

# Looks for known holes in the dependencies (needs the network)
audit:
    cargo deny check advisories

# Does what CI does
ci:
    bash .ci/run

# Makes what is handed to others, in dist/: builds twice and compares
dist:
    bash scripts/dist.sh
