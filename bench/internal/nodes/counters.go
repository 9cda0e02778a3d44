// What the nodes say about their own work.

package nodes

import (
	"context"
	"strconv"
	"time"
)

// Counters are what nodes have done. They include the work of other clients, and
// that of reading them.
type Counters struct {
	Commands int64 // executed, those inside scripts included
	CPU      time.Duration
	BytesIn  int64
	BytesOut int64
}

// Minus is the difference.
func (c Counters) Minus(other Counters) Counters {
	return Counters{c.Commands - other.Commands, c.CPU - other.CPU, c.BytesIn - other.BytesIn, c.BytesOut - other.BytesOut}
}

func (c Counters) plus(other Counters) Counters {
	return Counters{c.Commands + other.Commands, c.CPU + other.CPU, c.BytesIn + other.BytesIn, c.BytesOut + other.BytesOut}
}

// A Reading is the counters of each node; nil for one that does not tell.
type Reading []*Counters

// Since is the sum of what happened since an earlier reading, on the nodes that are
// in both. One that was restarted meanwhile counts anew, and is left out.
func (r Reading) Since(earlier Reading) Counters {
	var sum Counters
	for i, now := range r {
		if now == nil || earlier[i] == nil || now.Commands < earlier[i].Commands {
			continue
		}
		sum = sum.plus(now.Minus(*earlier[i]))
	}
	return sum
}

// Read asks all nodes.
func (s *Set) Read(ctx context.Context) Reading {
	all := make(Reading, len(s.Options))
	if s.commands != nil {
		for i := range all {
			all[i] = &Counters{Commands: s.commands(i)}
		}
		return all
	}
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
		all[i] = &Counters{
			Commands: number(stats, "total_commands_processed"),
			BytesIn:  number(stats, "total_net_input_bytes"),
			BytesOut: number(stats, "total_net_output_bytes"),
			CPU:      seconds(cpu, "used_cpu_sys") + seconds(cpu, "used_cpu_user"),
		}
		return nil
	}) // who does not tell is nil, which says enough
	return all
}

func number(info, name string) int64 {
	n, _ := strconv.ParseInt(field(info, name), 10, 64) // 0: not told
	return n
}

func seconds(info, name string) time.Duration {
	n, _ := strconv.ParseFloat(field(info, name), 64) // 0: not told
	return time.Duration(n * float64(time.Second))
}
