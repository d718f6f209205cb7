//go:build tools

// Pins h2spec, the public tests of HTTP/2.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
