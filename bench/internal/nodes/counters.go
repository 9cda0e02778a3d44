// What the nodes say about their own work.

package nodes

import (
	"context"
	"strconv"
	"sync"
	"time"
)

// Counters are sums over the nodes that answer. They include the work of other
// clients of the nodes, and that of reading them.
type Counters struct {
	Commands int64 // executed, those inside scripts included
	CPU      time.Duration
	BytesIn  int64
	BytesOut int64
}

// Minus is what happened since earlier.
func (c Counters) Minus(earlier Counters) Counters {
	return Counters{c.Commands - earlier.Commands, c.CPU - earlier.CPU, c.BytesIn - earlier.BytesIn, c.BytesOut - earlier.BytesOut}
}

// Counters reads them. A node that does not tell is left out: then its figures
// are missing in both readings, and the difference is too low but not wrong.
func (s *Set) Counters(ctx context.Context) Counters {
	if s.commands != nil {
		return Counters{Commands: s.commands()}
	}
	var mu sync.Mutex
	var sum Counters
	_ = s.each(ctx, func(ctx context.Context, i int) error {
		if s.down[i] != nil {
			return nil
		}
		stats, err := s.admins[i].Info(ctx, "stats").Result()
		if err != nil {
			return err
		}
		cpu, err := s.admins[i].Info(ctx, "cpu").Result()
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		sum.Commands += number(stats, "total_commands_processed")
		sum.BytesIn += number(stats, "total_net_input_bytes")
		sum.BytesOut += number(stats, "total_net_output_bytes")
		sum.CPU += seconds(cpu, "used_cpu_sys") + seconds(cpu, "used_cpu_user")
		return nil
	})
	return sum
}

func number(info, name string) int64 {
	n, _ := strconv.ParseInt(field(info, name), 10, 64) // 0: not told
	return n
}

func seconds(info, name string) time.Duration {
	n, _ := strconv.ParseFloat(field(info, name), 64) // 0: not told
	return time.Duration(n * float64(time.Second))
}
