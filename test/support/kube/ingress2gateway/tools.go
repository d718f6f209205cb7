//go:build tools

// Pins ingress2gateway, which makes HTTPRoutes of Ingresses.
package tools

import _ "github.com/kubernetes-sigs/ingress2gateway"
