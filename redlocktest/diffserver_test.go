// The real server of the differential test.

package redlocktest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/internal/redisproc"
)

type server struct {
	redlock.Waker
	client *redis.Client
	heard  <-chan string // on the channel that somebody listens to
}

func startServer(t testing.TB) server {
	client := redis.NewClient(&redis.Options{Addr: redisproc.Start(t).Addr()})
	t.Cleanup(func() { _ = client.Close() })
	waker := redlock.NewRedisNode("real", client).(redlock.Waker)
	heard, stop := hears(t, waker)
	t.Cleanup(stop)
	return server{waker, client, heard}
}

// do executes the step, and returns the milliseconds between which it did.
func (r server) do(t *testing.T, s step) (o outcome, from, to int64) {
	ctx := t.Context()
	from = time.Now().UnixMilli()
	var err error
	switch s.op {
	case "set", "set other", "set for ever", "counter":
		err = r.client.Set(ctx, s.key, s.value(), s.ttl).Err()
	case "list":
		_, err = r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, s.key)
			p.RPush(ctx, s.key, "element")
			return nil
		})
	case "del":
		err = r.client.Del(ctx, s.key).Err()
	case "crowd":
		_, err = r.client.TxPipelined(ctx, func(p redis.Pipeliner) error {
			p.Del(ctx, s.key)
			for fields := strings.Fields(s.text); len(fields) > 0; fields = fields[2:] {
				p.Do(ctx, "zadd", s.key, fields[1], fields[0])
			}
			return nil
		})
	}
	if err != nil {
		t.Fatalf("%v: %v", s, err)
	}
	o = s.call(ctx, r)
	to = time.Now().UnixMilli()
	o.told = told(o, r.heard)
	return o, from, to
}

// look reads everything in one step. Servers before 7.2 look at the clock again
// and again during a script, so each PTTL stands between two readings.
var look = redis.NewScript(`
local function ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local found = {ms()}
for i, key in ipairs(KEYS) do
  local kind = redis.call('TYPE', key).ok
  local before = ms()
  local left = redis.call('PTTL', key)
  local after = ms()
  local value = ''
  if kind == 'string' then value = redis.call('GET', key) end
  if kind == 'zset' then value = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ') end
  found[i + 1] = {kind, value, before, left, after}
end
return found`)

// dump returns what the server stores, and a time by which everything that had
// expired before is not part of it. The expiries are exact.
func (r server) dump(t *testing.T) (data, int64) {
	for {
		d, at, exact := r.tryDump(t.Context(), t)
		if exact {
			return d, at
		}
	}
}

func (r server) tryDump(ctx context.Context, t *testing.T) (d data, at int64, exact bool) {
	found, err := look.Run(ctx, r.client, keys).Slice()
	if err != nil {
		t.Fatal(err)
	}
	d, exact = data{}, true
	for i, key := range keys {
		f := found[i+1].([]any)
		k := datum{kind: f[0].(string), value: f[1].(string), when: never}
		before, left, after := f[2].(int64), f[3].(int64), f[4].(int64)
		switch {
		case k.kind == "none":
			continue
		case left >= 0:
			k.when = before + left
			// A zero may also be what is left of a key that expired during the
			// script.
			exact = exact && before == after && left > 0
		}
		d[key] = k
	}
	return d, found[0].(int64), exact
}

// await returns in the given millisecond, or as soon as possible after it. For
// the last bit it does not sleep, since a sleep ends late.
func await(ms int64) {
	time.Sleep(time.Until(time.UnixMilli(ms)) - 2*time.Millisecond)
	for time.Now().UnixMilli() < ms {
	}
}
