#!/bin/sh
# Runs `make test` on a machine without installed programs: test-bare.sh [FILE...]. debootstrap makes the smallest Debian 12, which gets this
# machine's Node, npm and settings of registries, `make`, and a clean clone of the last commit. Nothing else is shared;
# KUBE_CACHE=1 copies the Kubernetes programs and Go's caches of this machine, which saves ten minutes. Needs root.
# All of it runs in its own mount and PID namespaces and ends with them, also after a signal.
set -eu

cd "$(dirname "$0")/.."
SUITE=bookworm
caches=${XDG_CACHE_HOME:-$HOME/.cache}
# Variables of this machine that say how registries are reached.
SETTINGS='^(https?_proxy|no_proxy|all_proxy|HTTPS?_PROXY|NO_PROXY|ALL_PROXY|npm_config_(registry|cafile|proxy|https_proxy)|PIP_[A-Z_]+|GO(PROXY|SUMDB|NOSUMDB|NOPROXY|PRIVATE|FLAGS|TOOLCHAIN)|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE)='

say() { echo "test-bare: $*" >&2; }

# In the namespaces, as their first process: everything ends when it ends.
if [ "${1:-}" = --inside ]; then
  root=$2
  shift 2
  mount --bind "$root" "$root"
  cd "$root"
  mount -t proc proc proc
  mount --rbind /sys sys
  mount -t tmpfs -o mode=755 tmpfs dev
  mkdir dev/pts dev/shm
  mount -t devpts -o newinstance,ptmxmode=666,mode=620,gid=5 devpts dev/pts
  mount -t tmpfs -o mode=1777 tmpfs dev/shm
  mount -t tmpfs -o mode=755 tmpfs run
  ln -s pts/ptmx dev/ptmx
  ln -s /proc/self/fd dev/fd
  for device in null:1:3 zero:1:5 full:1:7 random:1:8 urandom:1:9 tty:5:0; do
    numbers=${device#*:}
    mknod -m 666 "dev/${device%%:*}" c "${numbers%:*}" "${numbers#*:}"
  done
  for name in $(env | sed -nE "s/($SETTINGS).*/\1/p" | tr -d =); do
    eval "value=\$$name"
    set -- "$name=$value" "$@"
  done
  pivot_root . mnt
  cd /
  umount -l /mnt
  exec env -i HOME=/root TERM="${TERM:-dumb}" LANG=C.UTF-8 PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
fi

[ "$(id -u)" = 0 ] || { say 'Cannot make a machine without root'; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/headgate-bare.XXXXXX")
root=$work/root
running=''
clean() {
  status=$?
  trap '' HUP INT TERM
  # Its end ends all processes of the namespaces.
  [ -z "$running" ] || kill -KILL "$running" 2>/dev/null || :
  [ -z "$running" ] || wait "$running" 2>/dev/null || :
  say "Removing $work"
  # Killed processes end after a moment.
  rm -rf --one-file-system "$work" 2>/dev/null || { sleep 2; rm -rf --one-file-system "$work"; }
  exit "$status"
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# Runs a program in its own mount and PID namespaces. The shell waits for it in the background, so that a signal ends it at once.
isolated() {
  unshare --mount --propagation private --pid --fork --kill-child "$@" </dev/null &
  running=$!
  ended=0
  wait "$running" || ended=$?
  running=''
  return "$ended"
}

# Copies a file or folder to the same place, if this machine has it.
share() {
  for path; do
    [ -e "$path" ] || continue
    mkdir -p "$root$(dirname "$path")"
    rm -rf "${root:?}$path"
    cp -aL "$path" "$root$path"
  done
}

say "Making the smallest Debian 12 in $root, with make"
# dpkg need not sync every file to the disk of a machine that is removed.
mkdir -p "$root/etc/dpkg/dpkg.cfg.d"
echo force-unsafe-io >"$root/etc/dpkg/dpkg.cfg.d/unsafe-io"
isolated --mount-proc debootstrap --variant=minbase --include=make "$SUITE" "$root" ${HEADGATE_DEBIAN_MIRROR:+"$HEADGATE_DEBIAN_MIRROR"} >"$work/log" ||
  { tail -5 "$work/log" >&2; exit 1; }

say "Bringing Node $(node --version), npm $(npm --version) and the settings of registries of this machine"
install -D "$(readlink -f "$(command -v node)")" "$root/usr/local/bin/node"
mkdir -p "$root/usr/local/lib/node_modules" "$root/usr/local/etc"
cp -a "$(dirname "$(dirname "$(readlink -f "$(command -v npm)")")")" "$root/usr/local/lib/node_modules/npm"
ln -s ../lib/node_modules/npm/bin/npm-cli.js "$root/usr/local/bin/npm"
npmrc=$(npm config get globalconfig)
[ ! -e "$npmrc" ] || cp -L "$npmrc" "$root/usr/local/etc/npmrc"
[ ! -e "$HOME/.npmrc" ] || cp -L "$HOME/.npmrc" "$root/root/.npmrc"
for path in .config/pip .pip .config/go; do
  [ ! -e "$HOME/$path" ] || { mkdir -p "$root/root/.config"; cp -aL "$HOME/$path" "$root/root/$path"; }
done
share /etc/hosts /etc/resolv.conf /etc/pip.conf /usr/local/share/ca-certificates /etc/ssl/certs/ca-certificates.crt
share ${PIP_CERT:+"$PIP_CERT"} ${NODE_EXTRA_CA_CERTS:+"$NODE_EXTRA_CA_CERTS"} ${SSL_CERT_FILE:+"$SSL_CERT_FILE"}
# Those of another version of Debian would bring its packages.
if grep -qs "^VERSION_CODENAME=$SUITE\$" /etc/os-release; then
  rm -f "$root/etc/apt/sources.list"
  share /etc/apt /usr/share/keyrings
fi

say "Cloning $(git log -1 --format='%h %s'); what is not committed is not in it"
git clone --quiet --no-hardlinks . "$root/headgate"
if [ -n "${KUBE_CACHE:-}" ]; then
  say "Copying the Kubernetes programs of $caches/headgate and Go's caches"
  mkdir -p "$root/root/.cache/headgate" "$root/root/go/pkg"
  for folder in "$caches"/headgate/*; do
    [ "$(basename "$folder")" = image ] || cp -a "$folder" "$root/root/.cache/headgate/"
  done
  [ ! -e "$caches/go-build" ] || cp -a "$caches/go-build" "$root/root/.cache/"
  [ ! -e "${GOMODCACHE:-$HOME/go/pkg/mod}" ] || cp -a "${GOMODCACHE:-$HOME/go/pkg/mod}" "$root/root/go/pkg/mod"
fi

say "Running make test FILES='$*' there"
began=$(date +%s)
status=0
isolated sh "$0" --inside "$root" make -C /headgate test FILES="$*" ALLOW_SKIP="${ALLOW_SKIP:-}" || status=$?
say "make test has ended with status $status after $((($(date +%s) - began) / 60)) min; the machine has $(du -sh --one-file-system "$root" | cut -f1)"
exit $status
