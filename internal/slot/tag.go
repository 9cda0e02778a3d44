// A hash tag for every key, also for keys that cannot be wrapped in braces.

package slot

import (
	"strings"
	"sync"
)

// Tag returns a hash tag without '}' and not empty, such that every key in
// which "{" + Tag(key) + "}" is the first brace expression has key's slot.
//
// It is the effective hash tag of key where that can be wrapped in braces. An
// effective tag that is empty or contains '}' cannot, and is replaced by
// [Substitute] of its slot.
func Tag(key string) string {
	tag := effective(key)
	if tag != "" && !strings.Contains(tag, "}") {
		return tag
	}
	return Substitute(crc16(tag) % Count)
}

// Substitute returns the hash tag that stands for slot: of all strings of four
// characters from 0-9 and a-z whose hash slot is slot, the first in byte order.
//
// Clients of every version must agree on it, since the counter that orders
// their fencing tokens is stored under it. The rule is therefore as fixed as a
// wire format. It panics if slot is not below [Count].
func Substitute(slot uint16) string {
	if slot >= Count {
		panic("slot: hash slot out of range")
	}
	at := int(slot) * tagLen
	return substitutes()[at : at+tagLen]
}

const (
	alphabet = "0123456789abcdefghijklmnopqrstuvwxyz"
	tagLen   = 4
)

// substitutes holds the tags of all slots one after the other: a single string,
// so that cutting one out does not allocate. Most programs never need it.
var substitutes = sync.OnceValue(func() string {
	table := make([]byte, Count*tagLen)
	missing := Count
	var tag [tagLen]byte

	// Counting upwards in base 36 is byte order. The last slot turns up after
	// 73,025 of the 1,679,616 strings.
	for n := 0; missing > 0; n++ {
		rest := n
		for i := tagLen - 1; i >= 0; i-- {
			tag[i] = alphabet[rest%len(alphabet)]
			rest /= len(alphabet)
		}
		at := int(crc16(string(tag[:]))%Count) * tagLen
		if table[at] == 0 {
			copy(table[at:], tag[:])
			missing--
		}
	}
	return string(table)
})
