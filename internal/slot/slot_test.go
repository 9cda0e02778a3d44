// Known slots, the table of substitutes, and the property that matters: derived
// keys share the slot of any key.

package slot_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/slot"
)

// awkward lists keys that defeat naive wrapping in braces.
var awkward = []string{
	"", "{", "}", "{}", "}{", "{{", "}}", "a}b", "a{b", "a{}b", "{}b", "a{}{b}c", "{{x}}", "{{}", "{}}",
	"{x}", "a{x}b", "a{x}b{y}c", "a}b{x}c", "x}{", "}{x", "{x", "\x00", "\xff{\xfe}", "\xff}\xfe", "{\xff",
	"invoice:42", "{user1000}.following", strings.Repeat("k", 64<<10), strings.Repeat("}", 64<<10),
	strings.Repeat("{", 64<<10), "{}" + strings.Repeat("z", 64<<10),
}

func TestOf(t *testing.T) {
	for key, want := range map[string]uint16{
		"":                  0,
		"123456789":         12739, // CRC 0x31C3, the check value in the Cluster specification
		"foo":               12182,
		"{foo}":             12182,
		"a{foo}b{bar}":      12182,
		"bar":               5061,
		"foo{}{bar}":        8363, // an empty tag counts for nothing: the whole key is hashed
		"foo{{bar}}zap":     4015, // the tag is "{bar"
		"foo{bar}{zap}":     5061,
		"{foo":              13308, // a tag has an end
		"user1000":          3443,
		"{user1000}.follow": 3443,
	} {
		if got := slot.Of(key); got != want {
			t.Errorf("Of(%q) = %d, want %d", key, got, want)
		}
	}
}

func TestTag(t *testing.T) {
	for key, want := range map[string]string{
		"invoice:42": "invoice:42",
		"a{x}b":      "x",
		"a{x}b{y}c":  "x",
		"{{x}}":      "{x",
		"a{b":        "a{b",
		"{":          "{",
		"a}b{x}c":    "x",

		"":           "05cc",
		"{}":         "06lu",
		"a}b":        "0e8s",
		"}{":         "06js",
		"}":          "0477",
		"a{}b":       "01ez",
		"a{}{b}c":    "092u",
		"\xff}\xfe":  "0bnw",
		"{}order:17": "0cu3",
	} {
		if got := slot.Tag(key); got != want {
			t.Errorf("Tag(%q) = %q, want %q", key, got, want)
		}
	}
}

func TestTagSharesSlot(t *testing.T) {
	for _, key := range awkward {
		checkTag(t, key)
	}
}

func TestSubstitute(t *testing.T) {
	digest := sha256.New()
	seen := make(map[string]bool, slot.Count)
	for s := range uint16(slot.Count) {
		tag := slot.Substitute(s)
		if len(tag) != 4 || strings.Trim(tag, "0123456789abcdefghijklmnopqrstuvwxyz") != "" {
			t.Fatalf("Substitute(%d) = %q, want four characters of 0-9a-z", s, tag)
		}
		if got := slot.Of(tag); got != s {
			t.Fatalf("Substitute(%d) = %q, which has slot %d", s, tag, got)
		}
		if seen[tag] {
			t.Fatalf("Substitute(%d) = %q, as for another slot", s, tag)
		}
		seen[tag] = true
		digest.Write([]byte(tag))
	}

	// A change of any entry would split the counter of some lock in two.
	const want = "b0478fdf76e41c9651523149816441b6eb7d541a34dc5a1cb02c475039ec99d1"
	if got := hex.EncodeToString(digest.Sum(nil)); got != want {
		t.Errorf("the table of substitutes has SHA-256 %s, want %s", got, want)
	}
	for s, want := range map[uint16]string{0: "05cc", 1: "0als", 12739: "02as", 16383: "01k0"} {
		if got := slot.Substitute(s); got != want {
			t.Errorf("Substitute(%d) = %q, want %q", s, got, want)
		}
	}
}

func TestSubstituteOutOfRange(t *testing.T) {
	defer func() {
		if got := fmt.Sprint(recover()); got != "slot: hash slot out of range" {
			t.Errorf("panic = %s", got)
		}
	}()
	slot.Substitute(slot.Count)
}

func TestTagDoesNotAllocate(t *testing.T) {
	for _, key := range []string{"invoice:42", "a{x}b", "a}b", "{}"} {
		if n := testing.AllocsPerRun(100, func() { slot.Tag(key) }); n != 0 {
			t.Errorf("Tag(%q) allocates %v times", key, n)
		}
	}
}

func FuzzTag(f *testing.F) {
	for _, key := range awkward {
		if len(key) < 100 {
			f.Add(key)
		}
	}
	f.Fuzz(func(t *testing.T, key string) { checkTag(t, key) })
}

// checkTag checks Tag and Of against the rule as an independent reading of the
// specification has it, for the keys that redlock derives.
func checkTag(t *testing.T, key string) {
	t.Helper()
	tag, want := slot.Tag(key), slot.Of(key)
	short := key[:min(len(key), 40)]
	if tag == "" || strings.Contains(tag, "}") {
		t.Errorf("Tag(%q) = %q: empty, or closes its own braces early", short, tag)
	}
	if naive := naiveSlot([]byte(key)); want != naive {
		t.Errorf("Of(%q) = %d, want %d", short, want, naive)
	}
	for _, derived := range []string{
		"{" + tag + "}",
		"redlock:fence:{" + tag + "}" + key,
		"redlock:tomb:{" + tag + "}" + key,
		"redlock:tomb:{" + tag + "}{other}",
		"redlock:tomb:{" + tag + "}}{",
	} {
		if got := naiveSlot([]byte(derived)); got != want {
			t.Errorf("key %q has slot %d, but the key derived from it with tag %q has %d", short, want, tag, got)
		}
	}
}

// naiveSlot is the oracle: bit by bit, index by index.
func naiveSlot(key []byte) uint16 {
	from, to := 0, len(key)
	for i := range key {
		if key[i] != '{' {
			continue
		}
		for j := i + 1; j < len(key); j++ {
			if key[j] == '}' {
				if j > i+1 {
					from, to = i+1, j
				}
				break
			}
		}
		break
	}
	var crc uint32
	for _, b := range key[from:to] {
		for bit := 7; bit >= 0; bit-- {
			crc = crc<<1 | uint32(b>>bit&1)
			if crc&0x10000 != 0 {
				crc ^= 0x11021
			}
		}
	}
	for range 16 { // the 16 zero bits that CRC appends
		crc <<= 1
		if crc&0x10000 != 0 {
			crc ^= 0x11021
		}
	}
	return uint16(crc % 16384)
}

func BenchmarkTag(b *testing.B) {
	for _, key := range []string{"invoice:42", "a}b"} {
		b.Run("key="+key, func(b *testing.B) {
			for b.Loop() {
				slot.Tag(key)
			}
		})
	}
}
