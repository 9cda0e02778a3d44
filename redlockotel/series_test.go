// The bound of what is kept for each series.

package redlockotel

import (
	"strconv"
	"testing"
)

// TestBook: a series is made once, and however many names there are, so many are kept.
func TestBook(t *testing.T) {
	b := newBook(&config{metricsNamed: true})
	first := b.find(labels{name: "a"})
	if b.find(labels{name: "a"}) != first {
		t.Error("a series was made twice")
	}
	for i := range 2 * mostSeries {
		b.find(labels{name: strconv.Itoa(i)})
	}
	if n := len(b.series); n != mostSeries {
		t.Errorf("%d series are kept, want %d", n, mostSeries)
	}
}
