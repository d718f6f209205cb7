// The provider of OpenID Connect with which oauth2-proxy tests itself, as a program: mockoidc ADDRESS:PORT CLIENT_ID CLIENT_SECRET.
// It signs everybody in as one user, at once.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/oauth2-proxy/mockoidc"
)

func main() {
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	select {}
}

func serve(place, clientID, clientSecret string) error {
	provider, err := mockoidc.NewServer(nil)
	if err != nil {
		return err
	}
	provider.ClientID, provider.ClientSecret = clientID, clientSecret
	listener, err := net.Listen("tcp", place)
	if err != nil {
		return err
	}
	if err := provider.Start(listener, nil); err != nil {
		return err
	}
	fmt.Println(provider.Issuer())
	return nil
}
