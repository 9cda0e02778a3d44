// Package slot computes Redis Cluster hash slots, and hash tags that put
// derived keys into the slot of a given key.
//
// A lock has companion keys, which a script may touch together with it only if
// a Cluster keeps all of them in one slot. Wrapping the lock's name in braces
// does not do it: a name may be "{}", "a}b" or "}{". [Tag] works for every
// byte string.
package slot

import "strings"

// Count is the number of hash slots of a Redis Cluster.
const Count = 16384

// Of returns the hash slot of key: the CRC16 of its effective hash tag, modulo
// [Count].
func Of(key string) uint16 { return crc16(effective(key)) % Count }

// effective returns the part of key that Redis hashes: what stands between the
// first '{' and the next '}' if that is not empty, else the whole key.
func effective(key string) string {
	_, rest, found := strings.Cut(key, "{")
	if !found {
		return key
	}
	if tag, _, closed := strings.Cut(rest, "}"); closed && tag != "" {
		return tag
	}
	return key
}

// crc16 is CRC-16/XMODEM: polynomial 0x1021, initially zero, not reflected.
func crc16(s string) uint16 {
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ crcTable[byte(crc>>8)^s[i]]
	}
	return crc
}

var crcTable = func() (table [256]uint16) {
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return table
}()
