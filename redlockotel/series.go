// The attributes of a measurement, made once for each series.

package redlockotel

import (
	"context"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// Keys of attributes.
const (
	nameKey    = attribute.Key("redlock.name") // of the mutex
	nodeKey    = attribute.Key("redlock.node")
	opKey      = attribute.Key("redlock.op")
	causeKey   = attribute.Key("redlock.cause")  // of a loss
	kindKey    = attribute.Key("error.type")     // absent where there was no error
	reasonKey  = attribute.Key("redlock.reason") // of advice
	attemptKey = attribute.Key("redlock.attempt")
	grantedKey = attribute.Key("redlock.granted")
	roundsKey  = attribute.Key("redlock.rounds")
	fencingKey = attribute.Key("redlock.fencing_token")
	verdictKey = attribute.Key("redlock.verdict")
	secondsKey = attribute.Key("redlock.seconds")
	messageKey = attribute.Key("exception.message")
)

// labels are the values of the attributes of one series, empty for those that it has
// not.
type labels struct{ name, node, op, cause, kind string }

// A series is a set of attributes in the forms that instruments take.
type series struct {
	add    []metric.AddOption
	record []metric.RecordOption
}

// A book of series spares the measurements the making, sorting and comparing of their
// attributes.
type book struct {
	common []attribute.KeyValue
	named  bool // mutex names are attributes

	mu     sync.RWMutex
	series map[labels]*series
}

// mostSeries are kept. Only names of mutexes can be more, and a meter has a limit of
// that order as well.
const mostSeries = 4096

func newBook(c *config) *book {
	return &book{common: c.attributes, named: c.metricsNamed, series: make(map[labels]*series)}
}

// look returns nil if there is no such series yet.
func (b *book) look(l *labels) *series {
	if !b.named {
		l.name = ""
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	return b.series[*l]
}

// news reports that nothing was measured for l yet.
func (b *book) news(l labels) bool { return b.look(&l) == nil }

func (b *book) find(l labels) *series {
	s := b.look(&l)
	if s == nil {
		s = b.enter(l)
	}
	return s
}

func (b *book) enter(l labels) *series {
	all := slices.Clone(b.common)
	for _, a := range []attribute.KeyValue{
		nameKey.String(l.name), nodeKey.String(l.node), opKey.String(l.op), causeKey.String(l.cause), kindKey.String(l.kind),
	} {
		if a.Value.AsString() != "" {
			all = append(all, a)
		}
	}
	set := metric.WithAttributeSet(attribute.NewSet(all...))
	s := &series{add: []metric.AddOption{set}, record: []metric.RecordOption{set}}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.series) < mostSeries {
		b.series[l] = s
	}
	return s
}

// nowhere is the context of what happens in nobody's.
var nowhere = context.Background()

// add is for what happens in no context.
func (b *book) add(c metric.Int64Counter, n int64, l labels) {
	c.Add(nowhere, n, b.find(l).add...)
}

// count adds one.
func (b *book) count(ctx context.Context, c metric.Int64Counter, l labels) {
	c.Add(orNowhere(ctx), 1, b.find(l).add...)
}

// time records d.
func (b *book) time(ctx context.Context, h metric.Float64Histogram, d time.Duration, l labels) {
	h.Record(orNowhere(ctx), d.Seconds(), b.find(l).record...)
}

// orNowhere is for events that somebody makes up.
func orNowhere(ctx context.Context) context.Context {
	if ctx == nil {
		return nowhere
	}
	return ctx
}
