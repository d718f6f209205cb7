#!/bin/sh
# Prints the path of a Debian 12 root filesystem, minimal and with systemd, that holds the files of the packages that
# Headgate depends on, not yet installed: debian-root.sh [--offline]. To be copied, not to be changed; in the copy
# policy-rc.d keeps services from being started, and dpkg.cfg.d/unsafe-io has dpkg not wait for the disk.
# Made by debootstrap, once, below ${XDG_CACHE_HOME:-$HOME/.cache}/headgate/image; brought up to date when it is a day
# old, unless --offline says that what is there will do. HEADGATE_DEBIAN_MIRROR and
# HEADGATE_DEBIAN_SECURITY_MIRROR name other mirrors. Needs root.
set -eu

SUITE=bookworm
mirror=${HEADGATE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${HEADGATE_DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/image
root=$cache/$SUITE-$(dpkg --print-architecture)
log=$cache/log

say() { echo "debian-root: $*" >&2; }

# What is started in it ends with it, and nothing stays mounted.
inside() {
  unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" chroot "$1" env -i DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin http_proxy="${http_proxy:-}" sh -ec "$2" >>"$log" 2>&1
}

make() {
  say "Making $root, once: a minute or two"
  rm -rf "$cache"/.part.*
  part=$cache/.part.$$
  trap 'rm -rf "$part"' EXIT
  # It can be made again: not every file has to be on the disk at once.
  mkdir -p "$part/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io >"$part/etc/dpkg/dpkg.cfg.d/unsafe-io"
  debootstrap --variant=minbase --include=systemd-sysv,ca-certificates "$SUITE" "$part" "$mirror" >"$log" ||
    { say "Cannot make it, see $log"; exit 1; }
  cat >"$part/etc/apt/sources.list" <<END
deb $mirror $SUITE main
deb $mirror $SUITE-updates main
deb $security $SUITE-security main
END
  # Nothing starts while the image is made.
  printf '#!/bin/sh\nexit 101\n' >"$part/usr/sbin/policy-rc.d"
  chmod 755 "$part/usr/sbin/policy-rc.d"
  refresh "$part" || { say "Cannot bring it up to date, see $log"; exit 1; }
  mv "$part" "$root"
}

refresh() {
  inside "$1" 'apt-get -qq update
    apt-get -qq -y dist-upgrade
    apt-get -qq -y clean
    apt-get -qq -y install --download-only --no-install-recommends haproxy iproute2 keepalived procps'
  touch "$1/.fresh"
}

[ "$(id -u)" = 0 ] || { say 'Cannot make a root filesystem without root'; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -d "$root" ]; then
  make
elif [ "${1:-}" != --offline ] && [ -z "$(find "$root/.fresh" -mtime -1)" ]; then
  say 'Bringing it up to date, because it is more than a day old'
  refresh "$root" || say "Cannot bring it up to date, see $log: going on with what is there"
fi
echo "$root"
