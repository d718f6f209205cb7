// Runs the pods of one node as plain processes in namespaces, for tests that need a whole cluster but no images: for each
// image a program stands in. It has probes, exec, logs, volumes of Secrets and ConfigMaps, graceful ends and cluster DNS, as
// far as the tests of Kubernetes and of Gateway API need them; no init containers, limits or IPv6.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/netip"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	log.SetFlags(log.Ltime | log.Lmicroseconds)
	kubeconfig := flag.String("kubeconfig", "", "file that says how to reach the API server")
	name := flag.String("node", "", "name of the Node")
	address := flag.String("address", "", "address of the node, from which its pods are reached")
	pods := flag.String("pods", "", "range of the pods' addresses, such as 10.244.1.0/24")
	images := map[string]string{}
	flag.Func("image", "NAME=PROGRAM: what containers of an image run, once for each image", func(text string) error {
		name, program, isPair := strings.Cut(text, "=")
		if !isPair {
			return fmt.Errorf("%q is not NAME=PROGRAM", text)
		}
		images[name] = program
		return nil
	})
	folder := flag.String("folder", "", "folder for the pods' files")
	flag.Parse()

	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	check(err)
	config.QPS, config.Burst = 200, 400
	client, err := kubernetes.NewForConfig(config)
	check(err)
	network, err := newPodNetwork(*address, netip.MustParsePrefix(*pods))
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()

	node := &node{
		client: client, name: *name, address: *address, network: network,
		images: images, folder: *folder, pods: map[string]*runningPod{},
	}
	check(serveDNS(ctx, client, *address))
	check(node.serveStreams())
	check(node.register(ctx))
	node.follow(ctx)
	<-ctx.Done()
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
