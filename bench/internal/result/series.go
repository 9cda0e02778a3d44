// Package result holds what a run has measured, as it is kept in JSON.
package result

import (
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// What a histogram tells apart: steps of a tenth of a microsecond, three digits,
// and everything up to ten minutes, which no call takes.
const (
	step    = 100 * time.Nanosecond
	longest = 10 * time.Minute
	digits  = 3
)

// A Series is how long the calls of one kind took. Its methods may be called
// concurrently. The zero Series is empty.
type Series struct {
	mu   sync.Mutex
	hist *hdrhistogram.Histogram // nil if nothing was recorded
}

// Record adds one call.
func (s *Series) Record(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.make()
	_ = s.hist.RecordValue(int64(min(max(d, 0), longest))) // fails outside these bounds only
}

func (s *Series) make() {
	if s.hist == nil {
		s.hist = hdrhistogram.New(int64(step), int64(longest), digits)
	}
}

// Add adds all that other has recorded.
func (s *Series) Add(other *Series) {
	h := other.snapshot()
	if h == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.make()
	s.hist.Merge(h)
}

func (s *Series) snapshot() *hdrhistogram.Histogram {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hist == nil {
		return nil
	}
	return s.hist.Clone()
}

// Count is the number of calls.
func (s *Series) Count() int64 {
	if h := s.snapshot(); h != nil {
		return h.TotalCount()
	}
	return 0
}

// At returns the time that p percent of the calls did not exceed; Max for 100.
func (s *Series) At(p float64) time.Duration {
	h := s.snapshot()
	switch {
	case h == nil:
		return 0
	case p >= 100:
		return time.Duration(h.Max())
	}
	return time.Duration(h.ValueAtPercentile(p))
}

// Percentiles are those that every table shows.
var Percentiles = []struct {
	Name string
	P    float64
}{{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"max", 100}}

// A summary is a Series in JSON. The figures are for readers; HDR is the whole
// histogram in the format that all HdrHistogram libraries read (V2, compressed).
type summary struct {
	Count int64         `json:"count"`
	Mean  time.Duration `json:"mean_ns"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P99   time.Duration `json:"p99_ns"`
	P999  time.Duration `json:"p999_ns"`
	Max   time.Duration `json:"max_ns"`
	HDR   string        `json:"hdr,omitempty"`
}

// MarshalJSON writes the summary.
func (s *Series) MarshalJSON() ([]byte, error) {
	h := s.snapshot()
	if h == nil {
		return json.Marshal(summary{})
	}
	hdr, err := h.EncodeV2()
	if err != nil {
		return nil, fmt.Errorf("encode a histogram: %w", err)
	}
	return json.Marshal(summary{
		Count: h.TotalCount(), Mean: time.Duration(h.Mean()),
		P50: s.At(50), P90: s.At(90), P99: s.At(99), P999: s.At(99.9), Max: s.At(100),
		HDR: string(hdr),
	})
}

// UnmarshalJSON reads the histogram; the figures follow from it.
func (s *Series) UnmarshalJSON(b []byte) error {
	var read summary
	if err := json.Unmarshal(b, &read); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hist = nil
	if read.HDR == "" {
		return nil
	}
	h, err := hdrhistogram.Decode([]byte(read.HDR))
	if err != nil {
		return fmt.Errorf("decode a histogram: %w", err)
	}
	s.hist = h
	return nil
}
