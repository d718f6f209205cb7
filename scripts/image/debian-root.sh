#!/bin/sh
# Prints the path of a minimal Debian 12 root filesystem with systemd, and with the downloaded packages that Headgate
# depends on: debian-root.sh [--offline] [--ansible]; with --ansible that of a copy in which Ansible is installed. Callers copy
# it and do not change it. In the copy, policy-rc.d prevents the start of services, and dpkg.cfg.d/unsafe-io makes dpkg faster.
# debootstrap makes it once below ${XDG_CACHE_HOME:-$HOME/.cache}/headgate/image. Without --offline it is updated when it is
# a day old. HEADGATE_DEBIAN_MIRROR and HEADGATE_DEBIAN_SECURITY_MIRROR set other mirrors. Needs root.
set -eu

SUITE=bookworm
mirror=${HEADGATE_DEBIAN_MIRROR:-http://deb.debian.org/debian}
security=${HEADGATE_DEBIAN_SECURITY_MIRROR:-http://deb.debian.org/debian-security}
cache=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/image
root=$cache/$SUITE-$(dpkg --print-architecture)
# That the tests install.
packages='haproxy iproute2 keepalived bird2 nftables conntrack conntrackd procps cloud-init'
log=$cache/log
offline='' ansible=''
for word in "$@"; do
  case $word in
    --offline) offline=1 ;;
    --ansible) ansible=1 ;;
    *) echo "debian-root: $word is not --offline or --ansible" >&2; exit 2 ;;
  esac
done

say() { echo "debian-root: $*" >&2; }

# Runs a command in the root filesystem. All its processes end with it, and nothing stays mounted.
inside() {
  unshare --mount --pid --fork --kill-child --mount-proc="$1/proc" chroot "$1" env -i DEBIAN_FRONTEND=noninteractive \
    PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin http_proxy="${http_proxy:-}" sh -ec "$2" >>"$log" 2>&1
}

make() {
  say "Making $root, which takes a minute or two the first time"
  rm -rf "$cache"/.part.*
  part=$cache/.part.$$
  trap 'rm -rf "$part"' EXIT
  # dpkg need not sync every file to the disk, because the filesystem can be made again.
  mkdir -p "$part/etc/dpkg/dpkg.cfg.d"
  echo force-unsafe-io >"$part/etc/dpkg/dpkg.cfg.d/unsafe-io"
  debootstrap --variant=minbase --include=systemd-sysv,ca-certificates "$SUITE" "$part" "$mirror" >"$log" ||
    { say "Cannot make $root, see $log"; exit 1; }
  cat >"$part/etc/apt/sources.list" <<END
deb $mirror $SUITE main
deb $mirror $SUITE-updates main
deb $security $SUITE-security main
END
  # No service starts while the image is made.
  printf '#!/bin/sh\nexit 101\n' >"$part/usr/sbin/policy-rc.d"
  chmod 755 "$part/usr/sbin/policy-rc.d"
  refresh "$part" || { say "Cannot update $part, see $log"; exit 1; }
  mv "$part" "$root"
}

refresh() {
  inside "$1" 'apt-get -qq update
    apt-get -qq -y dist-upgrade
    apt-get -qq -y clean
    apt-get -qq -y install --download-only --no-install-recommends '"$packages"
  echo "$packages" >"$1/.fresh"
}

# Copies the root filesystem, which takes seconds, and installs Ansible, which takes longer than what tests do with it.
add_ansible() {
  say "Making $root-ansible"
  rm -rf "$cache"/.part.*
  part=$cache/.part.$$
  trap 'rm -rf "$part"' EXIT
  cp --archive --reflink=auto "$root" "$part"
  inside "$part" 'apt-get -qq -y install --no-install-recommends ansible-core python3-apt; apt-get -qq -y clean
    apt-get -qq -y install --download-only --no-install-recommends '"$packages" ||
    { say "Cannot install Ansible, see $log"; exit 1; }
  rm -rf "$root-ansible"
  mv "$part" "$root-ansible"
}

[ "$(id -u)" = 0 ] || { say 'Cannot make a root filesystem without root'; exit 1; }
mkdir -p "$cache"
exec 9>"$cache/lock"
flock 9
if [ ! -d "$root" ]; then
  make
elif [ -z "$offline" ] &&
  { [ -z "$(find "$root/.fresh" -mtime -1)" ] || [ "$(cat "$root/.fresh")" != "$packages" ]; }; then
  say "Updating $root, because it is more than a day old, or lacks packages"
  refresh "$root" || say "Cannot update $root, see $log: continuing with the old one"
fi
[ -n "$ansible" ] || { echo "$root"; exit; }
# The copy has the times of the original.
if [ ! -d "$root-ansible" ] || [ "$root/.fresh" -nt "$root-ansible/.fresh" ]; then
  add_ansible
fi
echo "$root-ansible"
