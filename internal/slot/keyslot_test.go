// The slots as a real server computes them.

package slot_test

import (
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/quorumlock/redlock/internal/redisproc"
	"github.com/quorumlock/redlock/internal/slot"
)

func TestOfAgainstServer(t *testing.T) {
	server := redisproc.Start(t, redisproc.Args("--cluster-enabled", "yes"))
	keys := append([]string{"123456789", "foo", "foo{}{bar}"}, awkward...)

	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const bytes = "{}{}ab\x00\xff"
	for range 200 {
		key := make([]byte, random.IntN(12))
		for i := range key {
			key[i] = bytes[random.IntN(len(bytes))]
		}
		keys = append(keys, string(key))
	}

	for _, key := range keys {
		want := strconv.Itoa(int(slot.Of(key)))
		for _, k := range []string{key, "redlock:fence:{" + slot.Tag(key) + "}" + key} {
			got, err := server.Do("CLUSTER", "KEYSLOT", k)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Errorf("the server puts %.60q into slot %s, want %s as Of(%.60q) says", k, got, want, key)
			}
		}
	}
}
