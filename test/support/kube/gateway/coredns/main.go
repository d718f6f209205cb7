// Stands in for the image of CoreDNS in the tests of UDPRoute, which ask for any answer: each query gets one without records.
package main

import (
	"log"

	"github.com/miekg/dns"
)

func main() {
	dns.HandleFunc(".", func(writer dns.ResponseWriter, query *dns.Msg) {
		if err := writer.WriteMsg(new(dns.Msg).SetReply(query)); err != nil {
			log.Print(err)
		}
	})
	log.Fatal((&dns.Server{Addr: ":53", Net: "udp"}).ListenAndServe())
}
