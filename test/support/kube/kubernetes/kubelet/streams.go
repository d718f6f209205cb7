package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

const (
	streamPort            = 10250
	streamIdleTimeout     = 4 * time.Hour
	streamCreationTimeout = 30 * time.Second
)

// serveStreams answers the API server's requests for exec and logs, without asking who sends them: nothing outside the
// test's namespaces reaches this port.
func (n *node) serveStreams() error {
	certificate, err := selfSigned()
	if err != nil {
		return err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(n.address, strconv.Itoa(streamPort)),
		&tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", n.serveExec)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", n.serveLog)
	// HTTP/2 has no upgrade to SPDY or WebSocket.
	server := &http.Server{Handler: mux, TLSNextProto: map[string]func(*http.Server, *tls.Conn, http.Handler){}}
	go func() { check(server.Serve(listener)) }()
	return nil
}

func (n *node) serveExec(w http.ResponseWriter, r *http.Request) {
	container := n.container(w, r)
	if container == nil {
		return
	}
	query := r.URL.Query()
	streams := &remotecommand.Options{
		Stdin:  query.Get("input") == "1",
		Stdout: query.Get("output") == "1",
		Stderr: query.Get("error") == "1",
	}
	remotecommand.ServeExec(w, r, executor{container}, r.PathValue("pod"), "", r.PathValue("container"), query["command"],
		streams, streamIdleTimeout, streamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

// serveLog answers with the whole log, or with its lines from the time sinceTime on.
func (n *node) serveLog(w http.ResponseWriter, r *http.Request) {
	container := n.container(w, r)
	if container == nil {
		return
	}
	since, err := time.Parse(time.RFC3339, r.URL.Query().Get("sinceTime"))
	if err != nil { // Nothing has asked for a time.
		since = time.Time{}
	}
	lines, err := linesSince(container.logFile(), since)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(lines)
}

func (n *node) container(w http.ResponseWriter, r *http.Request) *container {
	if pod := n.named(r.PathValue("namespace"), r.PathValue("pod")); pod != nil {
		for _, container := range pod.containers {
			if container.spec.Name == r.PathValue("container") {
				return container
			}
		}
	}
	http.Error(w, "no such container runs on this node", http.StatusNotFound)
	return nil
}

type executor struct{ container *container }

func (e executor) ExecInContainer(
	ctx context.Context, _, _, _ string, words []string, in io.Reader, out, err io.WriteCloser,
	_ bool, _ <-chan remotecommand.TerminalSize, _ time.Duration,
) error {
	cmd := e.container.pod.command(ctx, e.container, words)
	if in != nil {
		cmd.Stdin = in
	}
	if out != nil {
		cmd.Stdout = out
	}
	if err != nil {
		cmd.Stderr = err
	}
	failure := cmd.Run()
	if exit, isExit := failure.(*exec.ExitError); isExit {
		return utilexec.CodeExitError{Err: fmt.Errorf("status %d", exit.ExitCode()), Code: exit.ExitCode()}
	}
	return failure
}

func selfSigned() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}, err
}
