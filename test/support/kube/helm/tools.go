//go:build tools

// Pins what the tests check the chart with.
package tools

import _ "helm.sh/helm/v3/cmd/helm"
