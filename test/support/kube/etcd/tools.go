//go:build tools

// Pins what the tests' control plane is built from.
package tools

import _ "go.etcd.io/etcd/server/v3"
