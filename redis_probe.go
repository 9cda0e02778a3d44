// What a server tells about itself and about a lock, over go-redis.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"weak"

	"github.com/redis/go-redis/v9"

	"github.com/quorumlock/redlock/clock"
)

// Connections counts those that the client has dialed since the first call. A
// client that cannot be watched is taken to have a new one each time: one of
// another kind, and one that was never seen to dial, since it may have its
// connections from elsewhere as a clone made by WithTimeout has.
func (n *redisNode) Connections() uint64 {
	if n.plain != nil {
		if dials := dialsOf(n.plain).Load(); dials > 0 {
			return dials
		}
	}
	return 1<<63 | n.unwatched.Add(1)
}

// dialCounts has a counter for each client that is watched, by a weak pointer to
// it: a hook cannot be taken out again, so that there must be one only.
var dialCounts sync.Map

func dialsOf(c *redis.Client) *atomic.Uint64 {
	key := weak.Make(c)
	count, loaded := dialCounts.LoadOrStore(key, new(atomic.Uint64))
	n := count.(*atomic.Uint64)
	if !loaded {
		c.AddHook(dialHook{n})
		runtime.AddCleanup(c, func(key weak.Pointer[redis.Client]) { dialCounts.Delete(key) }, key)
	}
	return n
}

// A dialHook counts connections.
type dialHook struct{ count *atomic.Uint64 }

func (h dialHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := next(ctx, network, addr)
		if err == nil {
			h.count.Add(1) // when it leads somewhere, and before it is used
		}
		return conn, err
	}
}

func (dialHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook { return next }

func (dialHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// Probe asks one server, or each master of a cluster.
func (n *redisNode) Probe(ctx context.Context) ([]ServerInfo, error) {
	cluster, ok := n.client.(*redis.ClusterClient)
	if !ok {
		info, err := probe(ctx, n.bounded(ctx))
		return []ServerInfo{info}, err
	}
	var mu sync.Mutex
	var all []ServerInfo
	err := cluster.ForEachMaster(ctx, func(ctx context.Context, c *redis.Client) error {
		info, err := probe(ctx, c)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, info)
		return err
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the cluster has no master")
	}
	return all, err
}

// probe asks one server in two trips: the clock alone, so that its reading is
// exact, and then the rest.
func probe(ctx context.Context, c redis.UniversalClient) (info ServerInfo, err error) {
	ask := newOnce(ctx, "time")
	before := clock.System.Now()
	if err := c.Process(ctx, ask); err == nil {
		info.readTime(ask, before, clock.System.Now())
	} else if !refused(err) {
		return info, err
	}
	text, fsync := newOnce(ctx, "info"), newOnce(ctx, "config", "get", "appendfsync")
	sendAll(ctx, c.Pipeline(), text, fsync)
	for _, o := range []*once{text, fsync} {
		err := o.Err()
		if err != nil && !refused(err) {
			return info, err
		}
		switch {
		case info.Refused != nil && err != nil:
			info.Refused = fmt.Errorf("%w; %w", info.Refused, err)
		case err != nil:
			info.Refused = err
		}
	}
	if s, err := text.Text(); err == nil {
		info.read(s)
	}
	switch pairs := fsync.Val().(type) {
	case []any: // of RESP2
		if len(pairs) == 2 {
			info.AppendFsync = fmt.Sprint(pairs[1])
		}
	case map[any]any:
		if v, ok := pairs["appendfsync"]; ok {
			info.AppendFsync = fmt.Sprint(v)
		}
	}
	return info, nil
}

// refused reports whether a server has answered, with an error that concerns
// nothing but the question.
func refused(err error) bool {
	return redis.HasErrorPrefix(err, "NOPERM") || redis.HasErrorPrefix(err, "unknown command")
}

// readTime takes the answer to TIME for the server's clock half way between the
// question and the answer.
func (s *ServerInfo) readTime(ask *once, before, after time.Time) {
	parts, err := ask.Slice()
	if err != nil || len(parts) != 2 {
		return
	}
	seconds, err1 := strconv.ParseInt(fmt.Sprint(parts[0]), 10, 64)
	micros, err2 := strconv.ParseInt(fmt.Sprint(parts[1]), 10, 64)
	if err1 != nil || err2 != nil {
		return
	}
	s.Accuracy = after.Sub(before) / 2
	s.Time = time.Unix(seconds, micros*1000)
	s.Offset = s.Time.Sub(before.Add(s.Accuracy))
}

// read takes what matters out of the text of INFO.
func (s *ServerInfo) read(text string) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		number, _ := strconv.ParseInt(value, 10, 64)
		switch key {
		case "run_id":
			s.RunID = value
		case "redis_version":
			s.Version = value
		case "role":
			s.Role = value
		case "connected_slaves":
			s.Replicas = int(number)
		case "uptime_in_seconds":
			s.Uptime = time.Duration(number) * time.Second
		case "maxmemory":
			s.MaxMemory = number
		case "maxmemory_policy":
			s.MaxMemoryPolicy = value
		case "aof_enabled":
			s.AppendOnly = value == "1"
		}
	}
}

// Inspect reads all in one trip.
func (n *redisNode) Inspect(ctx context.Context, lock, fence string) (LockState, error) {
	asked := []*once{newOnce(ctx, "get", lock), newOnce(ctx, "pttl", lock)}
	if fence != "" {
		asked = append(asked, newOnce(ctx, "get", fence))
	}
	sendAll(ctx, n.bounded(ctx).Pipeline(), asked...)
	s, err := stored(asked[0], asked[1])
	if err != nil {
		return s, naming(&Claim{Lock: lock}, err)
	}
	if fence == "" {
		return s, nil
	}
	text, err := asked[2].Text()
	switch {
	case errors.Is(err, redis.Nil):
		return s, nil
	case err != nil:
		return s, fmt.Errorf("%w: key %q", err, abbreviate(fence))
	}
	if s.Counter, err = strconv.ParseInt(text, 10, 64); err != nil {
		err = fmt.Errorf("the counter is not a number: key %q", abbreviate(fence))
	}
	return s, err
}
