// The embedded nodes' time: it moves, and a key never expires early by more
// than the lock allows for.

package nodes

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func TestEmbeddedExpiry(t *testing.T) {
	t.Parallel()
	const ttl = 500 * time.Millisecond
	nodes, err := StartEmbedded(2, ttl)
	if err != nil {
		t.Fatal(err)
	}
	defer nodes.Close()
	for _, addr := range nodes.Addrs() {
		client := redis.NewClient(&redis.Options{Addr: addr})
		defer func() {
			if err := client.Close(); err != nil {
				t.Error(err)
			}
		}()
		for range 2 {
			time.Sleep(7 * time.Millisecond) // off the beat of the nodes' clock
			before := time.Now()
			if err := client.Eval(t.Context(), `return redis.call("SET", KEYS[1], "x", "PX", ARGV[1])`, []string{"key"}, ttl.Milliseconds()).Err(); err != nil {
				t.Fatal(err)
			}
			after := time.Now()
			for {
				asked := time.Now()
				n, err := client.Exists(t.Context(), "key").Result()
				if err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					if lived := time.Since(before); lived < ttl-ttl/200 {
						t.Errorf("expired after at most %v", lived)
					}
					break
				}
				// Late is safe, and how late depends on the machine's load.
				if asked.Sub(after) > 20*ttl {
					t.Fatalf("still there after %v", asked.Sub(after))
				}
				time.Sleep(time.Millisecond)
			}
		}
	}
}
