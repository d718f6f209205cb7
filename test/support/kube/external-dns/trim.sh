#!/bin/sh
# Takes out of a copy of external-dns's sources, in the current folder, what the tests do not use and what makes its build
# long: the providers but RFC 2136 and the registries of clouds, with their libraries, and the routes of OpenShift.
# All else, its flags, sources, plan, registry of TXT records and loop, is as released.
set -eu

sed -i -e '/external-dns\/provider\//{/rfc2136"/!d;}' -e '/externaldns\.Provider.*\.New/{/RFC2136/!d;}' \
  provider/factory/provider.go
sed -i -e '/dynamodb/d' -e '/awssd/d' registry/factory/registry.go

rm source/openshift_route.go
sed -i -e '/openshift "github.com/d' -e '/OpenShiftClient() (openshift.Interface, error)$/d' \
  -e '/openshiftClient .*openshift.Interface$/d' -e '/openshiftClientErr error$/d' -e '/openshiftOnce *sync.Once$/d' \
  -e '/^func .*) OpenShiftClient()/,/^}/d' -e '/^func buildOpenShiftRouteSource/,/^}/d' \
  -e '/case types.OpenShiftRoute:/,+1d' source/store.go
