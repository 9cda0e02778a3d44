//go:build unix

// A peer in the style of rueidislock, for the tests with processes: a release tells all
// who wait, and all of them try at once, on five nodes.

package redlock_test

import (
	"context"
	crand "crypto/rand"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// A herd is one process's part of it.
type herd struct {
	clients []redis.UniversalClient

	mu   sync.Mutex
	news map[string]chan struct{} // by name: closed at the next release
}

var dropOwn = redis.NewScript(`if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('DEL', KEYS[1])
return redis.call('PUBLISH', KEYS[1], '')`)

// next returns what is closed when somebody releases the lock.
func (h *herd) next(name string) <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.news == nil {
		h.news = make(map[string]chan struct{})
	}
	c, ok := h.news[name]
	if !ok {
		c = make(chan struct{})
		h.news[name] = c
		for _, client := range h.clients {
			sub := client.Subscribe(context.Background(), name)
			_, _ = sub.Receive(context.Background())
			go func() { // until the process ends
				for range sub.Channel() {
					h.mu.Lock()
					close(h.news[name])
					h.news[name] = make(chan struct{})
					h.mu.Unlock()
				}
			}()
		}
	}
	return c
}

// each calls all nodes at once and returns how many said yes.
func (h *herd) each(f func(redis.UniversalClient) bool) int {
	var yes atomic.Int64
	var wg sync.WaitGroup
	for _, c := range h.clients {
		wg.Go(func() {
			if f(c) {
				yes.Add(1)
			}
		})
	}
	wg.Wait()
	return int(yes.Load())
}

func (h *herd) lock(ctx context.Context, name string) (unlock func(), err error) {
	value := crand.Text()
	release := func() {
		h.each(func(c redis.UniversalClient) bool {
			return dropOwn.Run(context.WithoutCancel(ctx), c, []string{name}, value).Err() == nil
		})
	}
	for {
		next := h.next(name)
		if h.each(func(c redis.UniversalClient) bool {
			return c.SetArgs(ctx, name, value, redis.SetArgs{Mode: "NX", TTL: 8 * time.Second}).Err() == nil
		}) > len(h.clients)/2 {
			return release, nil
		}
		release()
		select {
		case <-next:
		case <-time.After(50*time.Millisecond + rand.N(200*time.Millisecond)):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
