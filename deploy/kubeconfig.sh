#!/bin/sh
# Prints a kubeconfig with which agents on hosts follow this cluster, as the account of deploy/kubernetes. Runs with the rights
# that kubectl is configured for; $KUBECTL names another kubectl. docs/credentials.md explains the kinds of credentials.
set -eu

usage='Usage: kubeconfig.sh [--credential secret|certificate|token] [--server URL] [--hours N] [--namespace NAMESPACE]'
account=headgate
namespace=headgate-system
credential=secret
server=''
hours=''
umask 077

fail() {
  echo "kubeconfig.sh: $*" >&2
  exit 1
}

# A wrapper, because $KUBECTL may have arguments.
kubectl() { command ${KUBECTL:-kubectl} "$@"; }

while [ $# -gt 0 ]; do
  [ $# -gt 1 ] || { echo "$usage" >&2; exit 2; }
  case $1 in
    --credential) credential=$2 ;;
    --server) server=$2 ;;
    --hours) hours=$2 ;;
    --namespace) namespace=$2 ;;
    *) echo "$usage" >&2; exit 2 ;;
  esac
  shift 2
done

case $hours in *[!0-9]*) fail "--hours \"$hours\" is not a number of hours" ;; esac
case $credential in
  secret) [ -z "$hours" ] || fail '--hours is for a certificate or a token: the token of a Secret does not end' ;;
  certificate | token) ;;
  *) fail "--credential \"$credential\" is not secret, certificate or token" ;;
esac
case $namespace in '' | *[!a-z0-9-]*) fail "--namespace \"$namespace\" is not the name of a namespace" ;; esac
case $server in *[!]A-Za-z0-9:/._[-]*) fail "--server \"$server\" is not a URL, such as https://192.0.2.10:6443" ;; esac

# A token that is valid until the Secret is deleted.
of_secret() {
  kubectl apply -f - >&2 <<END
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: $account-token
  namespace: $namespace
  annotations:
    kubernetes.io/service-account.name: $account
END
  token=''
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    token=$(kubectl -n "$namespace" get secret "$account-token" -o go-template='{{with .data.token}}{{base64decode .}}{{end}}')
    [ -z "$token" ] || break
    sleep 1
  done
  [ -n "$token" ] || fail "The cluster has not filled the Secret $namespace/$account-token in 15 s: is kube-controller-manager running?"
  user="token: $token"
}

# A certificate in the name of the account: it cannot be revoked, and expires.
of_certificate() {
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  trap 'exit 1' HUP INT TERM
  openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=system:serviceaccount:$namespace:$account" \
    -keyout "$work/key" -out "$work/csr" 2>/dev/null || fail 'Cannot create a key: openssl failed'
  request=$(kubectl create -o name -f - <<END
apiVersion: certificates.k8s.io/v1
kind: CertificateSigningRequest
metadata:
  generateName: $account-
spec:
  signerName: kubernetes.io/kube-apiserver-client
  expirationSeconds: $((${hours:-8760} * 3600))
  usages: [client auth]
  request: $(base64 -w0 "$work/csr")
END
  )
  kubectl certificate approve "$request" >&2
  certificate=''
  for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    certificate=$(kubectl get "$request" -o 'jsonpath={.status.certificate}')
    [ -z "$certificate" ] || break
    sleep 1
  done
  [ -n "$certificate" ] || fail "The cluster has not signed $request in 15 s: kube-controller-manager needs the cluster's CA key for that"
  user="client-certificate-data: $certificate
      client-key-data: $(base64 -w0 "$work/key")"
}

# A token that ends within hours.
of_token() {
  user="token: $(kubectl -n "$namespace" create token "$account" --duration="${hours:-24}h")"
}

kubectl -n "$namespace" get serviceaccount "$account" -o name >/dev/null ||
  fail "There is no account $namespace/$account: run kubectl apply -k deploy/kubernetes first"
cluster=$(kubectl config view --raw --minify --flatten -o 'jsonpath={.clusters[0].cluster}')
if [ -n "$server" ]; then
  cluster=$(echo "$cluster" | sed 's|"server":"[^"]*"|"server":"'"$server"'"|')
fi
"of_$credential"

cat <<END
apiVersion: v1
kind: Config
current-context: headgate
contexts:
  - name: headgate
    context: {cluster: headgate, user: headgate}
clusters:
  - name: headgate
    cluster: $cluster
users:
  - name: headgate
    user:
      $user
END
