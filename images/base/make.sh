#!/bin/sh
# Makes a small Debian root file system without any image registry.
#
#   make.sh SUITE          writes the tar to stdout; progress goes to stderr
#   make.sh SUITE TAG      imports it into the local engine as TAG (for use by hand)
#
# Environment: DEBIAN_MIRROR  the archive to load from (default: the one this machine's apt uses)
#              DEBIAN_KEYRING the keys to trust (default: this machine's debian-archive-keyring)
# Exit codes:  0 done, 1 failed, 2 wrong usage, 3 a tool is missing (the last line names the packages)
set -eu
# Root's own umask must not decide who may read the image's files.
umask 022
export LC_ALL=C

public=http://deb.debian.org/debian
suite=${1-} tag=${2-}

say() { printf '%s\n' "$*" >&2; }
die() { code=$1; shift; say "error: $*"; exit "$code"; }

case $suite in
    trixie | forky) ;;
    *) die 2 "usage: make.sh trixie|forky [TAG]" ;;
esac
[ -n "$tag" ] || [ ! -t 1 ] || die 2 "the tar goes to stdout: redirect it or name a TAG"
[ "$(id -u)" = 0 ] || die 1 "debootstrap works only as root"

keyring=${DEBIAN_KEYRING:-/usr/share/keyrings/debian-archive-keyring.gpg}
missing=
command -v debootstrap >/dev/null || missing="$missing debootstrap"
command -v wget >/dev/null || missing="$missing wget"
command -v gpgv >/dev/null || missing="$missing gpgv"
[ -r "$keyring" ] || missing="$missing debian-archive-keyring"
[ -z "$missing" ] || die 3 "missing packages:$missing"

# The machine's apt knows best how Debian is reached here: a near mirror, a proxy.
# Ubuntu and others name no Debian archive, then the public one is used.
configured() {
    cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources 2>/dev/null |
        sed -n '/^[[:space:]]*#/d; s|.*[[:space:]]\(https\{0,1\}://[^][:space:]]*/debian\)/\{0,1\}\([[:space:]].*\)\{0,1\}$|\1|p' | head -n 1
}
mirror=${DEBIAN_MIRROR:-$(configured)}
mirror=${mirror:-$public}
if [ -z "${http_proxy-}" ] && command -v apt-config >/dev/null; then
    eval "$(apt-config shell http_proxy Acquire::http::Proxy)"
    [ -z "${http_proxy-}" ] || [ "$http_proxy" = DIRECT ] || export http_proxy
fi

# Not /tmp: it is often small, and mounted nodev or noexec, which debootstrap cannot use.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/podbay-base.XXXXXX")
root=$work/root
child=
clean() {
    [ -z "$child" ] || { kill -TERM "-$child" 2>/dev/null && wait "$child"; } || true
    # A debootstrap that was killed leaves these mounted; rm must never walk into them.
    for at in dev/pts dev/shm dev proc sys; do umount "$root/$at" 2>/dev/null || true; done
    rm -rf --one-file-system "$work"
}
trap clean EXIT
trap 'exit 1' HUP INT TERM

say "$suite: reading the release file"
wget -q -O "$work/InRelease" "$mirror/dists/$suite/InRelease" || die 1 "cannot reach the Debian archive"

# Old hosts do not know the keys of new suites. Then the keyring package comes from stable, which
# apt verifies with the keys the host has: trust is handed on, never assumed.
known() { gpgv --status-fd 1 --keyring "$1" "$work/InRelease" 2>/dev/null | grep -q '^\[GNUPG:\] VALIDSIG'; }
if ! known "$keyring"; then
    say "$suite: its keys are unknown here, taking the keyring of Debian stable"
    command -v apt-get >/dev/null || die 1 "the keyring of this machine is too old for $suite"
    apt=$work/apt
    mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
    printf 'deb [signed-by=%s] %s trixie main\n' "$keyring" "$mirror" >"$apt/sources"
    private="-o Dir::State=$apt/state -o Dir::Cache=$apt/cache -o Dir::Etc::SourceList=$apt/sources
        -o Dir::Etc::SourceParts=/dev/null -o APT::Sandbox::User=root
        -o APT::Update::Error-Mode=any -o APT::Get::AllowUnauthenticated=false -o Acquire::AllowInsecureRepositories=false"
    # shellcheck disable=SC2086 # a list of words on purpose
    (cd "$apt" && apt-get $private -q update && apt-get $private -q download debian-archive-keyring) >&2 ||
        die 1 "no keyring for $suite that this machine could verify"
    dpkg-deb -x "$apt"/debian-archive-keyring_*.deb "$apt/keys"
    keyring=$apt/keys/usr/share/keyrings/debian-archive-keyring.gpg
    known "$keyring" || die 1 "the release file of $suite carries no valid signature"
fi

# An older debootstrap has no script named forky; Debian's suites have all shared sid's for years.
script=
[ -e "/usr/share/debootstrap/scripts/$suite" ] || script=/usr/share/debootstrap/scripts/sid
# Without --force-check-gpg a missing keyring is only a warning.
# In the background and in a session of its own, because a shell hears a signal only between commands
# and because what debootstrap itself started has to end with it.
# shellcheck disable=SC2086 # no word at all when empty
setsid debootstrap --variant=minbase --force-check-gpg --keyring="$keyring" "$suite" "$root" "$mirror" $script >&2 &
child=$!
wait "$child" || die 1 "debootstrap failed"
child=

say "$suite: cleaning"
# The machine's own mirror, proxy, names and resolver stay on the machine.
rm -f "$root/etc/apt/sources.list" "$root/etc/resolv.conf" "$root/etc/hostname" "$root/etc/machine-id"
suites=$suite
[ "$suite" = forky ] || suites="$suite $suite-updates"
{
    printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\n' "$public" "$suites"
    printf 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n'
    [ "$suite" = forky ] || {
        printf '\nTypes: deb\nURIs: %s-security\nSuites: %s-security\nComponents: main\n' "$public" "$suite"
        printf 'Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg\n'
    }
} >"$root/etc/apt/sources.list.d/debian.sources"

# Later installs leave the same things out as Debian's own slim images do; licences stay.
cat >"$root/etc/dpkg/dpkg.cfg.d/podbay" <<'SLIM'
path-exclude /usr/share/doc/*
path-include /usr/share/doc/*/copyright
path-exclude /usr/share/groff/*
path-exclude /usr/share/info/*
path-exclude /usr/share/linda/*
path-exclude /usr/share/lintian/*
path-exclude /usr/share/locale/*
path-exclude /usr/share/man/*
SLIM
# Nothing may start while packages are installed in an image.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"

find "$root/usr/share/doc" ! -type d ! -name copyright -delete
find "$root/usr/share/doc" -type d -empty -delete
for at in groff info linda lintian locale man; do rm -rf "$root/usr/share/$at"/*; done
find "$root/var/log" -type f -delete
rm -rf "$root/var/cache/apt"/*.bin "$root/var/cache/apt/archives"/*.deb "$root/var/lib/apt/lists"/* \
    "$root/var/cache/ldconfig/aux-cache" "$root/var/cache/debconf"/*-old "$root/var/lib/dpkg"/*-old \
    "$root/etc"/*- "$root/tmp"/* "$root/var/tmp"/* "$root/run"/*

# The date of the archive is the date of the image, so that the same archive gives the same bytes.
epoch=$(date -d "$(sed -n 's/^Date: //p' "$work/InRelease")" +%s)
sed -i "s/^\([^:]*:[^:]*:\)[0-9]*:/\1$((epoch / 86400)):/" "$root/etc/shadow"
pack() {
    tar -C "$root" --numeric-owner --sort=name --clamp-mtime --mtime="@$epoch" --exclude='./dev/*' -cf - .
}
say "$suite: writing"
if [ -n "$tag" ]; then
    # Not through a pipe: plain sh would take a broken tar for a whole one.
    pack >"$work/rootfs.tar"
    docker import --change 'CMD ["bash"]' "$work/rootfs.tar" "$tag" >&2
else
    pack
fi
say "$suite: done"
