#!/bin/sh
# Unpacks other versions of HAProxy, keepalived or nft, so that the tests can run with them:
#
#   test/support/haproxy/debian-matrix.sh haproxy             unpacks Debian's versions, prints one executable per line
#   HAPROXY=$(test/support/haproxy/debian-matrix.sh haproxy 3.2) node_modules/.bin/ava test/agent/haproxy
#   KEEPALIVED=$(test/support/haproxy/debian-matrix.sh keepalived 2.3) node_modules/.bin/ava test/real/vrrp.test.ts
#   NFT=$(test/support/haproxy/debian-matrix.sh nft sid) node_modules/.bin/ava test/real/kernel-path.test.ts
#   test/support/haproxy/debian-matrix.sh haproxy --list      prints the branches that it supports
#
# With a branch it prints only the executable of that branch, and fails if there is none. `make test-matrix` tests all.
# Downloads packages with apt through its own package list: the system's apt configuration, package database and files
# stay unchanged. Caches below ${XDG_CACHE_HOME:-$HOME/.cache}/headgate/PROGRAM; remove the directory for newer packages.
# A wrapper starts each program with the C library of its package. HAProxy's re-exec at a reload runs the wrapper again,
# because argv[0] is the wrapper.
set -eu

program=${1:-}
wanted=${2:-}
# Each branch with its Debian suite. If the suite has a newer branch, this branch is skipped. nft has one branch in all suites,
# so it has the suites for branches.
package=$program
case $program in
  haproxy) suites='3.0:trixie 3.2:sid 3.4:experimental' ;;
  keepalived) suites='2.3:trixie' ;;
  nft) suites='trixie:trixie sid:sid' package=nftables ;;
  *)
    echo 'Usage: debian-matrix.sh haproxy|keepalived|nft [BRANCH | --list]' >&2
    exit 2 ;;
esac
mirror=${HEADGATE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/$program
apt=$cache/.apt.$$
updated=

private_apt() {
  command=$1
  shift
  "$command" -qq -o "Dir::Etc::sourcelist=$apt/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::Etc::preferencesparts=/dev/null -o "Dir::State::lists=$apt/lists" -o "Dir::State::status=$apt/status" \
    -o "Dir::State=$apt/state" -o "Dir::Cache=$apt/cache" -o Acquire::Languages=none \
    -o Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false -o APT::Sandbox::User= "$@"
}

update_lists() {
  updated=yes
  trap 'rm -rf "$apt"' EXIT
  mkdir -p "$apt/lists/partial" "$apt/state" "$apt/cache/archives/partial"
  : >"$apt/status"
  for pair in $suites; do
    echo "deb [signed-by=$keyring] $mirror ${pair#*:} main"
  done >"$apt/sources.list"
  private_apt apt-get update >&2
}

newest() {
  find "$cache" -mindepth 2 -maxdepth 2 -path "$cache/$1.*/$program" 2>/dev/null | sort -V | tail -n 1
}

# keepalived 2.3 and newer do not start without the file of build options, which only an installed package has at that
# path. Any other file works, because keepalived only prints it.
free_of_etc() {
  options=/etc/keepalived/keepalived.config-opts other=/etc/os-release
  slashes=$(printf "%$((${#options} - ${#other}))s" | tr ' ' /)
  LC_ALL=C sed -i "s|$options|$slashes$other|" "$1"
}

# unpack BRANCH SUITE: unpacks the newest package of that branch with its libraries.
unpack() {
  branch=$1 suite=$2 prefix=$1.
  [ "$branch" != "$suite" ] || prefix=
  [ -n "$updated" ] || update_lists
  version=$(private_apt apt-cache madison "$package" |
    awk -F'|' -v b="$prefix" -v suite=" $suite/" '{ gsub(/ /, "", $2); upstream = $2; sub(/^[0-9]+:/, "", upstream) }
      index($3, suite) && index(upstream, b) == 1 { print $2; exit }')
  if [ -z "$version" ]; then
    echo "debian-matrix: Debian has no $program $branch now" >&2
    return 0
  fi
  upstream=${version#*:}
  upstream=${upstream%%-*}
  target=$cache/$upstream
  [ "$branch" != "$suite" ] || target=$cache/$suite.$upstream
  work=$cache/.unpack-$upstream.$$
  rm -rf "$work"
  mkdir -p "$work/debs" "$work/root"
  packages=$(private_apt apt-get -s -t "$suite" --no-install-recommends install "$package=$version" |
    awk '/^Inst (haproxy|keepalived|nftables|lib[^ ]*) / { gsub(/[(]/, "", $3); print $2 "=" $3 }')
  # shellcheck disable=SC2086 # one word per package
  (cd "$work/debs" && private_apt apt-get download $packages >&2)
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/root"
  done
  rm -rf "$work/debs" "$work/root/usr/share"
  [ "$program" != keepalived ] || free_of_etc "$work/root/usr/sbin/keepalived"
  cat >"$work/$program" <<'WRAPPER'
#!/bin/sh
here=${0%/*}
lib=$here/root/usr/lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$lib" "$here/root/usr/sbin/${0##*/}" "$@"
WRAPPER
  chmod 755 "$work/$program"
  "$work/$program" -v >/dev/null 2>&1
  rm -rf "$target"
  mv "$work" "$target"
}

if [ "$wanted" = --list ]; then
  for pair in $suites; do echo "${pair%%:*}"; done
  exit
fi
printed=
for wish in $suites; do
  branch=${wish%%:*}
  [ -z "$wanted" ] || [ "$wanted" = "$branch" ] || continue
  found=$(newest "$branch")
  if [ -z "$found" ]; then
    unpack "$branch" "${wish#*:}"
    found=$(newest "$branch")
  fi
  [ -n "$found" ] || continue
  echo "$found"
  printed=yes
done
[ -n "$printed" ] || {
  echo "debian-matrix: no $program $wanted here" >&2
  exit 1
}
