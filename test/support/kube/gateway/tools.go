//go:build tools

// Pins the conformance suite of Gateway API, the program of its backends, and the definitions of its objects.
package tools

import (
	_ "sigs.k8s.io/gateway-api/apis/v1"
	_ "sigs.k8s.io/gateway-api/conformance"
	_ "sigs.k8s.io/gateway-api/conformance/echo-basic"
)
