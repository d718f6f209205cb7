#!/bin/sh
# Unpacks other HAProxy versions beside the installed one, so that the real tests can run against them:
#
#   test/support/haproxy-matrix.sh                    unpacks what Debian has, prints one executable per line
#   HAPROXY=$(test/support/haproxy-matrix.sh 3.2) node_modules/.bin/ava test/agent/haproxy
#
# An argument such as 3.2 prints only that branch's executable, and fails where there is none.
# Takes packages from Debian with apt, through a package list of its own: the system's apt configuration,
# package database and files are never touched. Caches below ${XDG_CACHE_HOME:-$HOME/.cache}/headgate/haproxy;
# what is there already is not downloaded again (remove the directory for newer packages).
# The programs come with their own C library, hence the wrapper, which survives HAProxy's re-exec on reload
# because argv[0] is the wrapper itself.
set -eu

# Branch and the Debian suite that carries it; a suite may move on, then that branch is skipped.
suites='3.0:trixie 3.2:sid 3.4:experimental'
mirror=${HEADGATE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
cache=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/haproxy
wanted=${1:-}
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
  for suite in trixie sid experimental; do
    echo "deb [signed-by=$keyring] $mirror $suite main"
  done >"$apt/sources.list"
  private_apt apt-get update >&2
}

newest() {
  find "$cache" -mindepth 2 -maxdepth 2 -path "$cache/$1.*/haproxy" 2>/dev/null | sort -V | tail -n 1
}

# unpack BRANCH SUITE: the newest package of that branch with the libraries it needs.
unpack() {
  branch=$1 suite=$2
  [ -n "$updated" ] || update_lists
  version=$(private_apt apt-cache madison haproxy | awk -F'[| ]+' -v b="$branch." 'index($3, b) == 1 { print $3; exit }')
  if [ -z "$version" ]; then
    echo "haproxy-matrix: Debian has no HAProxy $branch now" >&2
    return 0
  fi
  upstream=${version%%-*}
  target=$cache/$upstream
  work=$cache/.unpack-$upstream.$$
  rm -rf "$work"
  mkdir -p "$work/debs" "$work/root"
  packages=$(private_apt apt-get -s -t "$suite" --no-install-recommends install "haproxy=$version" |
    awk '/^Inst (haproxy|lib[^ ]*) / { gsub(/[(]/, "", $3); print $2 "=" $3 }')
  # shellcheck disable=SC2086 # one word per package
  (cd "$work/debs" && private_apt apt-get download $packages >&2)
  for deb in "$work"/debs/*.deb; do
    dpkg-deb -x "$deb" "$work/root"
  done
  rm -rf "$work/debs" "$work/root/usr/share"
  cat >"$work/haproxy" <<'WRAPPER'
#!/bin/sh
here=${0%/*}
lib=$here/root/usr/lib/x86_64-linux-gnu
exec "$lib/ld-linux-x86-64.so.2" --argv0 "$0" --library-path "$lib" "$here/root/usr/sbin/haproxy" "$@"
WRAPPER
  chmod 755 "$work/haproxy"
  "$work/haproxy" -v >/dev/null
  rm -rf "$target"
  mv "$work" "$target"
}

printed=
for pair in $suites; do
  branch=${pair%%:*} suite=${pair#*:}
  [ -z "$wanted" ] || [ "$wanted" = "$branch" ] || continue
  found=$(newest "$branch")
  if [ -z "$found" ]; then
    unpack "$branch" "$suite"
    found=$(newest "$branch")
  fi
  [ -n "$found" ] || continue
  echo "$found"
  printed=yes
done
[ -n "$printed" ] || {
  echo "haproxy-matrix: no HAProxy $wanted here" >&2
  exit 1
}
