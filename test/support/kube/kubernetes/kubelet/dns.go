package main

import (
	"context"
	"log"
	"net"
	"net/netip"
	"strings"
	"time"

	"golang.org/x/net/dns/dnsmessage"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
)

const clusterDomain = "cluster.local"

const resyncPeriod = 10 * time.Minute

// serveDNS answers NAME.NAMESPACE.svc.cluster.local with the cluster IP of that Service or the name of an ExternalName.
func serveDNS(ctx context.Context, client kubernetes.Interface, address string) error {
	socket, err := net.ListenPacket("udp", net.JoinHostPort(address, "53"))
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, resyncPeriod)
	services := factory.Core().V1().Services().Lister()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		packet := make([]byte, 512)
		for {
			size, from, err := socket.ReadFrom(packet)
			check(err)
			if answer, err := answerTo(packet[:size], services); err != nil {
				log.Printf("DNS: cannot answer a question of %s: %v", from, err)
			} else {
				_, _ = socket.WriteTo(answer, from)
			}
		}
	}()
	return nil
}

func answerTo(packet []byte, services corelisters.ServiceLister) ([]byte, error) {
	var query dnsmessage.Message
	if err := query.Unpack(packet); err != nil || len(query.Questions) != 1 {
		return nil, err
	}
	question := query.Questions[0]
	answer := dnsmessage.Message{
		Header:    dnsmessage.Header{ID: query.ID, Response: true, Authoritative: true, RCode: dnsmessage.RCodeNameError},
		Questions: query.Questions,
	}
	service := serviceOf(question.Name.String(), services)
	if service != nil {
		answer.RCode = dnsmessage.RCodeSuccess
		if body := recordOf(service, question.Type); body != nil {
			header := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: 1}
			answer.Answers = []dnsmessage.Resource{{Header: header, Body: body}}
		}
	}
	return answer.Pack()
}

func serviceOf(name string, services corelisters.ServiceLister) *corev1.Service {
	rest, isService := strings.CutSuffix(name, ".svc."+clusterDomain+".")
	first, namespace, hasTwo := strings.Cut(rest, ".")
	if !isService || !hasTwo {
		return nil
	}
	service, _ := services.Services(namespace).Get(first)
	return service
}

func recordOf(service *corev1.Service, kind dnsmessage.Type) dnsmessage.ResourceBody {
	if service.Spec.Type == corev1.ServiceTypeExternalName {
		name, err := dnsmessage.NewName(service.Spec.ExternalName + ".")
		if err != nil {
			return nil
		}
		return &dnsmessage.CNAMEResource{CNAME: name}
	}
	address, err := netip.ParseAddr(service.Spec.ClusterIP)
	if err != nil || kind != dnsmessage.TypeA || !address.Is4() {
		return nil
	}
	return &dnsmessage.AResource{A: address.As4()}
}
