#!/bin/bash
# Makes what is handed to others, in dist/: the static program with manual pages and completions in one archive, its bill of materials,
# the checksums, and the image `podbay/podbay`.
#
#   scripts/dist.sh               all of it; builds twice, about five minutes of processor time each
#   scripts/dist.sh check FILE    only the checks of one program
#
# Two builds, at two places, have to give the same bytes. So nothing of this machine may be in them: paths are written as /podbay, /cargo,
# /rust and /target, and the time is that of the last commit.
set -euo pipefail
cd "$(dirname "$0")/.."
exec </dev/null

cyclonedx_version=0.5.9
profile=dist

fail() {
    echo "error: $*" >&2
    exit 1
}

# The paths that must not be found in a program.
private_paths() {
    local cargo_home=${CARGO_HOME:-$HOME/.cargo}
    printf '%s\n' "$PWD" "$cargo_home" "$(rustc --print sysroot)"
}

# Checks that a program is static, stripped, has an id, and says nothing of this machine.
check() {
    local program=$1 path headers needed sections notes
    [ -f "$program" ] || fail "$program: there is no such file"
    # Read whole before it is searched: a reader that stops early ends the writer, and a check that failed would pass.
    headers=$(readelf --program-headers --wide "$program" 2>/dev/null) || fail "$program: not a program"
    needed=$(readelf --dynamic --wide "$program")
    sections=$(readelf --sections --wide "$program")
    notes=$(readelf --notes --wide "$program" 2>/dev/null)
    if grep -q ' INTERP ' <<<"$headers"; then
        fail "$program: not static: it names a loader"
    fi
    if grep -q '(NEEDED)' <<<"$needed"; then
        fail "$program: not static: it needs libraries"
    fi
    if grep -Eq ' \.(symtab|debug_[a-z]+) ' <<<"$sections"; then
        fail "$program: not stripped"
    fi
    grep -q 'Build ID: [0-9a-f]\{40\}' <<<"$notes" || fail "$program: no build id"
    while read -r path; do
        if grep --text --quiet --fixed-strings "$path" "$program"; then
            fail "$program: holds the path $path of this machine"
        fi
    done < <(private_paths)
    echo "$program: static, stripped, no path of this machine"
}

# Builds the source of the current folder; prints where the program is.
build() {
    local target_dir=$1 cargo_home=${CARGO_HOME:-$HOME/.cargo} sysroot tuple
    sysroot=$(rustc --print sysroot)
    tuple=$(rustc -vV | sed -n 's/^host: //p')
    # These replace the flags of .cargo/config.toml, so they repeat them. Divided by the one byte that no path has.
    local flags=(
        -C target-feature=+crt-static
        -C link-arg=-Wl,--build-id=sha1
        "--remap-path-prefix=$cargo_home=/cargo"
        "--remap-path-prefix=$sysroot=/rust"
        "--remap-path-prefix=$target_dir=/target"
        "--remap-path-prefix=$PWD=/podbay"
    )
    local maps="-ffile-prefix-map=$cargo_home=/cargo -ffile-prefix-map=$target_dir=/target -ffile-prefix-map=$PWD=/podbay"
    CARGO_ENCODED_RUSTFLAGS=$(IFS=$'\x1f' && printf '%s' "${flags[*]}") \
        CFLAGS="$maps" CARGO_INCREMENTAL=0 CARGO_TARGET_DIR=$target_dir \
        cargo build --locked --profile "$profile" --bin podbay >&2
    echo "$target_dir/$tuple/$profile/podbay"
}

# Writes the bill of materials: every crate that is in the program, with version, licence and checksum.
bill() {
    local to=$1 tools=$PWD/target/tools
    if [ "$("$tools/bin/cargo-cyclonedx" cyclonedx --version 2>/dev/null | tr -dc '0-9.')" != "$cyclonedx_version" ]; then
        cargo install --locked --quiet --debug --root "$tools" "cargo-cyclonedx@$cyclonedx_version"
    fi
    "$tools/bin/cargo-cyclonedx" cyclonedx --format json --target "$tuple" --spec-version 1.5 --override-filename podbay.cdx >&2
    # It names crates by their path on this machine, and itself by a random number.
    sed -e "s|$PWD|.|g" -e '/"serialNumber"/d' podbay.cdx.json >"$to"
    # It writes one for each crate of ours.
    rm -f podbay.cdx.json src/*/podbay.cdx.json fuzz/podbay.cdx.json tests/*/podbay.cdx.json
}

if [ "${1:-}" = check ]; then
    check "${2:?which program?}"
    exit
fi
[ $# = 0 ] || fail "usage: scripts/dist.sh [check FILE]"

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
tuple=$(rustc -vV | sed -n 's/^host: //p')
name=podbay-$version-$tuple
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC

first=$(build "$PWD/target/dist-first")
check "$first"

# Once more from a copy that lies elsewhere.
elsewhere=$(mktemp -d)
trap 'rm -rf "$elsewhere"' EXIT
mkdir "$elsewhere/source"
git ls-files -z | xargs -0 cp --parents -t "$elsewhere/source"
second=$(cd "$elsewhere/source" && build "$elsewhere/target")
if ! cmp --silent "$first" "$second"; then
    sha256sum "$first" "$second" >&2
    fail "two builds are not the same"
fi
echo "reproducible: $(sha256sum <"$first" | cut -d ' ' -f 1) twice"

rm -rf dist
stage=dist/$name
mkdir -p "$stage/completions" "$stage/man/man1"
install -m 0755 "$first" "$stage/podbay"
cp README.md LICENSE-MIT LICENSE-APACHE "$stage/"
"$stage/podbay" man "$stage/man/man1"
"$stage/podbay" completions bash >"$stage/completions/podbay.bash"
"$stage/podbay" completions zsh >"$stage/completions/_podbay"
"$stage/podbay" completions fish >"$stage/completions/podbay.fish"
"$stage/podbay" completions elvish >"$stage/completions/podbay.elv"
"$stage/podbay" completions powershell >"$stage/completions/podbay.ps1"
bill "dist/$name.cdx.json"
tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=go=rX,u+rw --mtime="@$SOURCE_DATE_EPOCH" \
    --directory dist "$name" | gzip --no-name --best >"dist/$name.tar.gz"
(cd dist && sha256sum "$name.tar.gz" "$name.cdx.json" >SHA256SUMS)

# The image holds this very program, which puts itself into it.
if "$stage/podbay" images list | grep -q '^podbay/podbay '; then
    "$stage/podbay" images build podbay/podbay
else
    echo "this version has no image podbay/podbay" >&2
fi
rm -rf "$stage"
ls -l dist
