//go:build tools

// The programs by which implementations of gRPC test one another.
package tools

import (
	_ "google.golang.org/grpc/interop/client"
	_ "google.golang.org/grpc/interop/server"
)
