#!/bin/sh
# Installs the programs that the agent and its tests lack on this machine, and prints each with its purpose.
# `install.sh bench`, `test`, `conformance`, `deb`, `release`, `test-deb`, `image` and `container` install more; `install.sh node` installs only the packages of package.json.
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
  cat <<'END'
haproxy haproxy is the dataplane of TCP
nft nftables is the dataplane of UDP and SCTP
conntrack conntrack ends flows to UDP members that are gone
ip iproute2 manages addresses and network namespaces
make make runs the targets of the Makefile
openssl openssl makes certificates
END
  case ${1:-} in
    deb | release | test-deb)
      echo 'dpkg-deb dpkg builds the package'
      echo 'strip binutils removes debug symbols from Node'
      ;;
  esac
  case ${1:-} in
    release | test-deb)
      echo 'x86_64-linux-gnu-strip binutils-x86-64-linux-gnu removes debug symbols from the Node of amd64'
      echo 'aarch64-linux-gnu-strip binutils-aarch64-linux-gnu removes debug symbols from the Node of arm64'
      echo 'dpkg-scanpackages dpkg-dev lists the packages of the repository for apt'
      echo 'gpg gpg signs a release'
      ;;
  esac
  if [ "${1:-}" = test-deb ]; then
    cat <<'END'
lintian lintian checks the package
mmdebstrap mmdebstrap gets the libraries of the other architecture
qemu-aarch64-static qemu-user-static runs programs of the other architecture
END
  fi
  case ${1:-} in deb | release | test-deb) return ;; esac
  if [ "${1:-}" = image ]; then
    cat <<'END'
debootstrap debootstrap makes the root filesystem of an image
dpkg-deb dpkg builds the package
strip binutils removes debug symbols from Node
unshare util-linux boots the image in namespaces
mount mount mounts the filesystems of the image
sysctl procps sets kernel parameters of network namespaces
END
    return
  fi
  if [ "${1:-}" = container ]; then
    cat <<'END'
mmdebstrap mmdebstrap makes the root filesystem of the image
buildah buildah builds the image
strip binutils removes debug symbols from Node
curl curl asks the container
END
    sh test/support/kube/kube-assets.sh --can-build ||
      echo 'pip3 python3-pip installs Go, which builds a Kubernetes API server for the test of the container'
    return
  fi
  if [ -n "${1:-}" ]; then
    cat <<'END'
keepalived keepalived moves VIPs between the hosts of a pair
conntrackd conntrackd copies connections to the other host of a pair
sysctl procps sets kernel parameters of network namespaces
END
  fi
  if [ "${1:-}" = conformance ]; then
    cat <<'END'
unshare util-linux runs the cluster in namespaces
nc netcat-openbsd is what the tests run in pods
curl curl is what the tests run in pods
wget wget is what the tests run in pods
nslookup bind9-dnsutils is what the tests run in pods
END
  fi
  if [ "${1:-}" = test ]; then
    cat <<'END'
mount mount mounts full disks
unshare util-linux runs a cluster in namespaces
systemd-analyze systemd verifies the units
chromium chromium opens the status page
prometheus prometheus scrapes the agents, and its promtool checks metrics and rules
dnsmasq dnsmasq-base answers queries as a member of the kernel path
curl curl asks Services as the documents do
python3 python3 receives the agent's notifications instead of systemd
zsh zsh completes commands
fish fish completes commands
script bsdutils runs commands on a terminal
END
  fi
  # Tests and benchmarks build a Kubernetes API server. Without a recent Go, pip installs one into the cache.
  if [ -n "${1:-}" ] && ! sh test/support/kube/kube-assets.sh --can-build; then
    echo 'pip3 python3-pip installs Go, which builds a Kubernetes API server for tests and benchmarks'
  fi
  if [ "${1:-}" = bench ]; then
    echo 'wrk wrk creates the load of the benchmarks'
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
      haproxy | keepalived | conntrackd | prometheus)
        systemctl disable --quiet "$package.service" 2>/dev/null || say "Cannot disable $package.service of the distribution" ;;
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
