// Pins the oauth2-proxy that the tests sign in at. kube-assets.sh builds it from its own sources and go.sum.
module headgate/test/support/kube/oauth2-proxy

go 1.26.0

require github.com/oauth2-proxy/oauth2-proxy/v7 v7.15.6
