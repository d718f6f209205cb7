#!/bin/sh
# Installs those programs of scripts/programs.txt that this machine lacks, and prints each with its purpose: install.sh [KIND].
# Kinds are in that file. `install.sh node` installs only the packages of package.json.
# Uses apt-get as root or with a sudo without a password; Node stays inside this directory. With ALLOW_SKIP=1 a program of
# the tests that cannot be installed is no error.

set -eu
cd "$(dirname "$0")/.."
# Debian installs haproxy and ip in sbin, which an ordinary user's PATH lacks. Only tests set these variables, and PATIENCE, in seconds.
PATH=$PATH:${SBIN:-/usr/local/sbin:/usr/sbin:/sbin}
policy=${POLICY_RC_D:-/usr/sbin/policy-rc.d}
kind=${1:-}

# Prints lines of command, Debian package and purpose.
needs() {
  [ "${1:-}" != node ] || return 0
  of_tests=''
  [ "${1:-}" != test ] || of_tests=external-dns
  while read -r command package kinds why; do
    case $command,$kinds, in '#'*) continue ;; *,run,* | *,"${1:-run}",*) ;; *) continue ;; esac
    # Without a recent Go, pip installs one into the cache.
    # shellcheck disable=SC2086 # one word, or none
    [ "$command" != pip3 ] || ! sh test/support/kube/kube-assets.sh --can-build $of_tests || continue
    echo "$command $package $why"
  done <scripts/programs.txt
}

say() {
  echo "install: $*" >&2
}

fail() {
  say "$@"
  exit 1
}

# Each once.
missing_packages() {
  found=' '
  needs "$@" | while read -r command package why; do
    case $found in *" $package "*) continue ;; esac
    command -v "$command" >/dev/null || { echo "$package"; found="$found$package "; }
  done
}

node_is_missing() {
  [ ! -x node_modules/node/bin/node ] || [ ! -e node_modules/.package-lock.json ] ||
    [ package-lock.json -nt node_modules/.package-lock.json ]
}

# bin/headgate runs the bundle only while no source is newer.
bundle_is_old() {
  [ "$kind" != node ] || return 1
  [ -e scripts/bundle.ts ] || return 1
  [ ! -e dist/agent.mjs ] || [ -n "$(find agent health scripts/bundle.ts package-lock.json -newer dist/agent.mjs)" ]
}

# Runs as root. Debian starts a daemon when it installs it; Headgate starts its own, so those of the distribution start
# neither now nor at the next boot.
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
      haproxy | keepalived | conntrackd | prometheus | bird2 | frr | knot)
        systemctl disable --quiet "${package%2}.service" 2>/dev/null || say "Cannot disable ${package%2}.service of the distribution" ;;
    esac
  done
}

# Ends the script, unless tests may be skipped.
lacking() {
  [ "$kind" = test ] && [ "${ALLOW_SKIP:-}" = 1 ] || fail "$@"
  say "$@"
  say 'Continuing without it, because ALLOW_SKIP=1: the tests that need it are skipped'
}

install_missing_packages() {
  packages=$(missing_packages "$@" | tr '\n' ' ')
  [ -n "$packages" ] || return 0
  needs "$@" | while read -r command package why; do
    command -v "$command" >/dev/null || say "Package $package is missing: it $why"
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
  # Some packages require a newer Node than the one that runs npm. They run with the Node that npm installs here.
  # npm prints nothing for as long as that takes, which may be minutes.
  (while sleep "${PATIENCE:-15}" >/dev/null 2>&1; do say 'npm ci is still at work'; done) &
  waiting=$!
  done=0
  npm ci --no-audit --no-fund --no-update-notifier --loglevel=error >&2 || done=$?
  kill "$waiting" 2>/dev/null || :
  [ "$done" = 0 ] || fail 'Cannot install the packages of package.json: npm ci failed'
  if [ ! -x node_modules/node/bin/node ]; then
    say 'Running the installer of the package "node", because npm has not run it'
    (cd node_modules/node && node installArchSpecificPackage.js) >&2 || :
  fi
  node_modules/node/bin/node -e '' || fail 'Cannot run node_modules/node/bin/node, which the package "node" should have installed'
  # npm does not update the time of an unchanged file.
  touch node_modules/.package-lock.json
}

install_bundle() {
  bundle_is_old || return 0
  node_modules/node/bin/node scripts/bundle.ts >&2 ||
    say 'Cannot bundle the agent into one file: bin/headgate runs its sources, which takes more time and memory'
  # Fills the compile cache, so that a user without write access starts the agent as fast.
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
# Only one installer runs at a time; the next one finds nothing to install.
lock=.cache/install.lock
if command -v flock >/dev/null && (mkdir -p .cache && : >>$lock) 2>/dev/null; then
  exec 9>>$lock
  flock 9
fi
install_missing_packages "$@" 9>&-
install_node_modules 9>&-
install_bundle 9>&-
