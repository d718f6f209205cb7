package main

import (
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
	"sync"
)

// gateway is each pod's next hop, the same in all of them: packets between two pods are routed too, so that the node's
// rules of kube-proxy see both directions.
const gateway = "169.254.1.1"

// podNetwork connects pods to the node. An address is used again only when the range is through, so that a late packet
// to a pod that has ended reaches no other.
type podNetwork struct {
	node   string
	prefix netip.Prefix

	lock sync.Mutex
	used map[netip.Addr]bool
	last netip.Addr
}

func newPodNetwork(node string, prefix netip.Prefix) (*podNetwork, error) {
	if prefix != prefix.Masked() || !prefix.Addr().Is4() {
		return nil, fmt.Errorf("cannot give pods addresses of %s: it is not a range of IPv4", prefix)
	}
	return &podNetwork{node: node, prefix: prefix, used: map[netip.Addr]bool{}, last: prefix.Addr()}, nil
}

func (n *podNetwork) take() (netip.Addr, error) {
	n.lock.Lock()
	defer n.lock.Unlock()
	for range 1 << (32 - n.prefix.Bits()) {
		n.last = n.last.Next()
		if !n.prefix.Contains(n.last.Next()) { // The last address is the broadcast's.
			n.last = n.prefix.Addr().Next()
		}
		if !n.used[n.last] {
			n.used[n.last] = true
			return n.last, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("all pod addresses of %s are in use", n.prefix)
}

func (n *podNetwork) release(address netip.Addr) {
	n.lock.Lock()
	defer n.lock.Unlock()
	delete(n.used, address)
}

// connect gives the network namespace of a process an interface; it goes with the namespace.
func (n *podNetwork) connect(pid int, address netip.Addr) error {
	veth := fmt.Sprintf("pod%d", pid)
	if err := ip(nil,
		fmt.Sprintf("link add %s type veth peer name eth0 netns %d", veth, pid),
		fmt.Sprintf("address add %s/32 dev %s", gateway, veth),
		fmt.Sprintf("link set %s up", veth),
		fmt.Sprintf("route add %s/32 dev %s src %s", address, veth, n.node),
	); err != nil {
		return err
	}
	return ip([]string{"nsenter", fmt.Sprintf("--net=/proc/%d/ns/net", pid)},
		"link set lo up",
		fmt.Sprintf("address add %s/32 dev eth0", address),
		"link set eth0 up",
		fmt.Sprintf("route add %s dev eth0", gateway),
		fmt.Sprintf("route add default via %s", gateway),
	)
}

func ip(before []string, commands ...string) error {
	words := append(append([]string{}, before...), "ip", "-batch", "-")
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Stdin = strings.NewReader(strings.Join(commands, "\n") + "\n")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(commands, "; "), err, output)
	}
	return nil
}
