// Handler serves POST /orders/{order}/charge on a port of its own and asks it eight times
// for the same order at once, with four servers that share nothing but the store and the
// nodes. These are five in memory, or those of REDLOCK_NODES.
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"

	"github.com/quorumlock/redlock/examples/internal/nodes"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "handler:", err)
		os.Exit(1)
	}
}

func newServer(client *redlock.Client, s *store, deadline time.Duration) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("POST /orders/{order}/charge", handler{client, s, deadline})
	return mux
}

func run() error {
	set, err := nodes.Open(10 * time.Second)
	if err != nil {
		return err
	}
	defer func() { _ = set.Close() }() // the program ends: nobody could act on it
	s := newStore(300 * time.Millisecond)
	var urls []string
	for range 4 {
		client, err := set.Client()
		if err != nil {
			return err
		}
		defer func() { _ = client.Close() }() //nolint:contextcheck // it bounds itself
		server := httptest.NewServer(newServer(client, s, time.Second))
		defer server.Close()
		urls = append(urls, server.URL)
	}
	var customers sync.WaitGroup
	for i := range 8 {
		customers.Go(func() { fmt.Printf("customer %d: %s\n", i+1, post(urls[i%len(urls)]+"/orders/42/charge")) })
	}
	customers.Wait()
	fmt.Printf("order 42 was charged %d times\n", s.charges["42"])
	return nil
}

func post(url string) string {
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, url, nil)
	if err != nil {
		return err.Error()
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(resp.Body)
	return resp.Status + ", " + strings.TrimSpace(string(text))
}
