// Requests are found whole, however the stream is cut into pieces, and queues
// stay bounded.

package netfault

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

// split feeds stream in pieces of the given size and returns the requests found,
// and what is left of an unfinished one.
func split(t *testing.T, stream string, size int) (requests []string, rest string) {
	t.Helper()
	var fr framer
	for at := 0; at < len(stream); at += size {
		chunk := stream[at:min(at+size, len(stream))]
		last := 0
		fr.feed([]byte(chunk), func(request []byte, end int) {
			if end <= last || end > len(chunk) {
				t.Fatalf("request %q ends at %d of %d, the one before at %d", request, end, len(chunk), last)
			}
			if !strings.HasSuffix(stream[:at+end], string(request)) {
				t.Fatalf("request %q is not what ends at %d", request, at+end)
			}
			last = end
			requests = append(requests, string(request))
		})
	}
	return requests, string(fr.rest)
}

func TestFramer(t *testing.T) {
	for _, want := range [][]string{
		{},
		{"PING\r\n", "\r\n", "\n", "x\n"},
		{"*1\r\n$4\r\nPING\r\n", "*0\r\n", "*2\r\n$0\r\n\r\n$3\r\na\r\n\r\n", "PING\n"},
		{"*2\r\n$3\r\nGET\r\n$14\r\n*1\r\n$4\r\nPING\r\n\r\n", "x\n"},                  // a request as an argument
		{"*x\r\n", "*-1\r\n", "*1\r\n+OK\r\n", "*1\r\n$-1\r\n", "*1\r\n$x\r\n", "x\n"}, // what a server rejects
		{"$3\r\n", "SET\r\n"},
	} {
		stream := strings.Join(want, "")
		for size := 1; size <= len(stream)+1; size++ {
			got, rest := split(t, stream, size)
			if !slices.Equal(got, want) && len(got)+len(want) > 0 || rest != "" {
				t.Errorf("in pieces of %d: %q, rest %q, want %q", size, got, rest, want)
			}
		}
	}
	for _, part := range []string{"P", "*", "*2\r\n", "*1\r\n$4\r\nPING", "*1\r\n$4\r\nPING\r", fmt.Sprintf("*1\r\n$%d\r\nx", math.MaxInt)} {
		if got, rest := split(t, part, 3); len(got) > 0 || rest != part {
			t.Errorf("unfinished %q: requests %q, rest %q", part, got, rest)
		}
	}
}

func TestFramerIsBounded(t *testing.T) {
	var fr framer
	chunk, seen := make([]byte, 64<<10), 0
	for range 100 {
		fr.feed(chunk, func(request []byte, end int) { seen += len(request) })
		if len(fr.rest) > requestLimit {
			t.Fatalf("the framer keeps %d bytes", len(fr.rest))
		}
	}
	if seen+len(fr.rest) != 100*len(chunk) {
		t.Errorf("of %d bytes %d were seen and %d are kept", 100*len(chunk), seen, len(fr.rest))
	}
}

func TestQueueIsBounded(t *testing.T) {
	for _, size := range []int{1, 1000, readSize} {
		q := newQueue()
		n := 0
		for q.tryPush(piece{data: make([]byte, size)}) {
			n++
		}
		if n*(size+overhead) > queueLimit || (n+1)*(size+overhead) <= queueLimit {
			t.Errorf("%d pieces of %d bytes fit into a queue of %d", n, size, queueLimit)
		}
		stop := make(chan struct{})
		for range n {
			if _, ok := q.pop(stop); !ok {
				t.Fatal("a piece is missing")
			}
		}
		if q.size != 0 {
			t.Errorf("an empty queue has size %d", q.size)
		}
		close(stop)
		if _, ok := q.pop(stop); ok {
			t.Error("a stopped queue gives a piece")
		}
	}
	q := newQueue()
	if !q.tryPush(piece{data: make([]byte, 2*queueLimit)}) {
		t.Error("a piece above the limit never fits")
	}
}

func TestQueueKeepsTime(t *testing.T) {
	q, stop := newQueue(), make(chan struct{})
	due := time.Now().Add(20 * time.Millisecond)
	q.push(piece{due: due}, stop)
	if _, ok := q.pop(stop); !ok || time.Now().Before(due) {
		t.Error("a piece came before its time")
	}
	q.push(piece{due: time.Now().Add(time.Hour)}, stop)
	time.AfterFunc(time.Millisecond, func() { close(stop) })
	if _, ok := q.pop(stop); ok {
		t.Error("a stopped queue gives a piece")
	}
}

func FuzzFramer(f *testing.F) {
	f.Add("*1\r\n$4\r\nPING\r\nGET k\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n*1", 1)
	f.Add("*3\r\n$-1\r\n\n\n*x\n$", 5)
	f.Fuzz(func(t *testing.T, stream string, size int) {
		size = max(size, 1)
		got, rest := split(t, stream, size)
		if joined := strings.Join(got, "") + rest; joined != stream {
			t.Errorf("%q became %q", stream, joined)
		}
		whole, wholeRest := split(t, stream, len(stream)+1)
		if !slices.Equal(got, whole) || rest != wholeRest {
			t.Errorf("in pieces of %d %q, whole %q", size, got, whole)
		}

		// Whatever the bytes, they can be the arguments of one request.
		request := fmt.Sprintf("*2\r\n$%d\r\n%s\r\n$3\r\nend\r\n", len(stream), stream)
		if got, rest := split(t, request+request, size); len(got) != 2 || got[0] != request || got[1] != request || rest != "" {
			t.Errorf("%q twice became %q, rest %q", request, got, rest)
		}
	})
}
