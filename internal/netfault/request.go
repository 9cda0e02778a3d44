// Finding requests in a stream of bytes.

package netfault

import (
	"bytes"
	"strconv"
)

// requestLimit bounds what is kept of an unfinished request. A longer one, or
// traffic that is not RESP at all, is seen in pieces; it passes just as well.
const requestLimit = 1 << 20

// A framer splits what it is fed into requests: RESP arrays of bulk strings,
// or, as Redis has it, lines.
type framer struct {
	rest []byte // the beginning of a request
}

// feed calls f for each request that ends in chunk. The request is valid during
// the call only, and end is where it ends in chunk.
func (fr *framer) feed(chunk []byte, f func(request []byte, end int)) {
	before := len(fr.rest)
	fr.rest = append(fr.rest, chunk...)
	at := 0
	for {
		n := requestLen(fr.rest[at:])
		if n == 0 && len(fr.rest)-at > requestLimit {
			n = len(fr.rest) - at
		}
		if n == 0 {
			break
		}
		f(fr.rest[at:at+n], at+n-before)
		at += n
	}
	fr.rest = append(fr.rest[:0], fr.rest[at:]...)
}

// requestLen returns the length of the request that b begins with, or zero if it
// is not complete. What a server would reject counts up to the end of the line
// that is wrong.
func requestLen(b []byte) int {
	at := bytes.IndexByte(b, '\n') + 1
	if at == 0 || b[0] != '*' {
		return at
	}
	count, ok := number(b[1:at])
	for ; ok && count > 0; count-- {
		line := bytes.IndexByte(b[at:], '\n') + 1
		if line == 0 {
			return 0
		}
		size := 0
		if size, ok = number(b[at+1 : at+line]); !ok || b[at] != '$' {
			return at + line
		}
		at += line
		if size > len(b)-at-2 { // not size+2: it may be as large as an int can be
			return 0
		}
		at += size + 2
	}
	return at
}

// number parses the length in a line's rest.
func number(line []byte) (int, bool) {
	n, err := strconv.Atoi(string(bytes.TrimRight(line, "\r\n")))
	return n, err == nil && n >= 0
}
