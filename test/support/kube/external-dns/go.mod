// Pins the external-dns that the tests publish names with. kube-assets.sh builds it from its own sources and go.sum.
module headgate/test/support/kube/external-dns

go 1.27.0

require sigs.k8s.io/external-dns v0.23.0
