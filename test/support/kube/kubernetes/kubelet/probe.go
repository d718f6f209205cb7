package main

import (
	"context"
	"net"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/probe"
	httpprobe "k8s.io/kubernetes/pkg/probe/http"
	tcpprobe "k8s.io/kubernetes/pkg/probe/tcp"
)

var (
	httpProber = httpprobe.New(false)
	tcpProber  = tcpprobe.New()
)

// probe calls report with each result that the thresholds of the probe make certain, until the program has ended.
func (c *container) probe(ctx context.Context, spec *corev1.Probe, report func(isGood bool)) {
	pause := time.Duration(spec.InitialDelaySeconds) * time.Second
	good, bad := int32(0), int32(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = time.Duration(spec.PeriodSeconds) * time.Second
		if c.probeOnce(ctx, spec) {
			good, bad = good+1, 0
		} else {
			good, bad = 0, bad+1
		}
		if good >= spec.SuccessThreshold {
			report(true)
		}
		if bad >= spec.FailureThreshold {
			report(false)
		}
	}
}

func (c *container) probeOnce(ctx context.Context, spec *corev1.Probe) bool {
	timeout := time.Duration(spec.TimeoutSeconds) * time.Second
	host := c.pod.address.String()
	result := probe.Failure
	switch {
	case spec.Exec != nil:
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return c.pod.command(limited, c, spec.Exec.Command).Run() == nil
	case spec.HTTPGet != nil:
		var request *http.Request
		request, err := httpprobe.NewRequestForHTTPGetAction(spec.HTTPGet, c.spec, host, "probe")
		if err != nil {
			return false
		}
		result, _, _ = httpProber.Probe(request, timeout)
	case spec.TCPSocket != nil:
		port, err := c.port(spec.TCPSocket.Port.String())
		if err != nil {
			return false
		}
		result, _, _ = tcpProber.Probe(host, port, timeout)
	}
	return result == probe.Success
}

// port resolves the name of a container's port.
func (c *container) port(name string) (int, error) {
	for _, port := range c.spec.Ports {
		if port.Name == name {
			return int(port.ContainerPort), nil
		}
	}
	number, err := strconv.Atoi(name)
	if err != nil {
		return 0, &net.AddrError{Err: "no such port", Addr: name}
	}
	return number, nil
}
