// Skewed under arbitrary changes, against a slow and exact model.

package clock

import (
	"encoding/binary"
	"math"
	"math/big"
	"testing"
	"testing/synctest"
	"time"
)

// An op is one change of a Skewed or of its base.
type op struct {
	kind byte
	n    int64
}

// decode reads one op in nine bytes.
func decode(data []byte) (op, []byte) {
	var buf [9]byte
	n := copy(buf[:], data)
	return op{buf[0] % 5, int64(binary.LittleEndian.Uint64(buf[1:]))}, data[n:]
}

// encode is the inverse of decode, for seeds.
func encode(ops ...op) []byte {
	var data []byte
	for _, o := range ops {
		data = append(data, o.kind)
		data = binary.LittleEndian.AppendUint64(data, uint64(o.n))
	}
	return data
}

const (
	opAdvance = iota
	opRate
	opStep
	opSuspend
	opTimer

	opsAtMost = 50 // the rest of the data is not used
)

// FuzzSkewed changes a clock over a base that is moved by hand, as far as it
// will go. Elapsed must not decrease, must be what the sum of rate times time
// says, and must not depend on steps.
func FuzzSkewed(f *testing.F) {
	rate := func(r float64) op { return op{opRate, int64(math.Float64bits(r))} }
	f.Add(encode(op{opAdvance, 1e9}, rate(1.5), op{opAdvance, 7}, op{opSuspend, 1e10}, op{opAdvance, 1e9}))
	f.Add(encode(rate(1e300), op{opAdvance, 1e9}, rate(0.1), op{opAdvance, 1 << 62}, op{opStep, -1 << 62}))
	f.Add(encode(op{opAdvance, 1 << 62}, rate(math.NaN()), op{opStep, 1 << 62}, op{opSuspend, -1 << 62}))
	f.Add(encode(rate(-1), op{opAdvance, 1 << 60}, rate(3.7e-9), op{opAdvance, 1 << 60}, rate(1), op{opSuspend, 1 << 62}))
	f.Fuzz(func(t *testing.T, data []byte) {
		const start = earliest / 4
		base := &manual{now: start}
		c := NewSkewed(base, Skew{})
		exact, rate := new(big.Float).SetPrec(300), 1.0
		var last time.Duration
		var most float64 // what rounding may have cost
		for range opsAtMost {
			var o op
			o, data = decode(data)
			switch o.kind {
			case opAdvance:
				d := min(o.n&math.MaxInt64, int64(latest+start-base.now)) // 292 years in all
				base.now += time.Duration(d)
				part := new(big.Float).SetPrec(300).SetInt64(d)
				exact.Add(exact, part.Mul(part, big.NewFloat(rate)))
			case opRate:
				rate = math.Float64frombits(uint64(o.n))
				c.SetRate(rate)
				if math.IsNaN(rate) || math.IsInf(rate, 0) || rate <= 0 {
					rate = 1
				}
				most++
			case opStep:
				before := c.Elapsed()
				c.Step(time.Duration(o.n))
				if after := c.Elapsed(); after != before {
					t.Fatalf("a step of the wall clock moved Elapsed from %d to %d", before, after)
				}
			case opSuspend:
				c.Suspend(time.Duration(o.n))
				exact.Add(exact, big.NewFloat(math.Max(float64(o.n), 0)))
			}
			c.Now()

			now := c.Elapsed()
			if now < last {
				t.Fatalf("%d after %d", now, last)
			}
			last = now
			want := math.MaxInt64 - 0.0
			if x, _ := exact.Float64(); x < want {
				want = x
			}
			if diff := math.Abs(float64(now) - want); diff > 1+most+want/(1<<50) {
				t.Fatalf("%d, want %.0f", now, want)
			}
		}
	})
}

// FuzzTimer sets timers in a bubble and changes the clock while they wait. None
// may fire before it is due, and none late: without suspends, each fires at the
// first nanosecond at which the clock has reached its time.
func FuzzTimer(f *testing.F) {
	f.Add(encode(op{opTimer, 1e9}, op{opRate, 5}, op{opAdvance, 7}, op{opTimer, 3}, op{opAdvance, 1e9}))
	f.Add(encode(op{opRate, 99}, op{opTimer, 1e9}, op{opSuspend, 1e12}, op{opRate, 3}, op{opAdvance, 1e10}))
	f.Add(encode(op{opTimer, 1e6}, op{opAdvance, 999999}, op{opRate, 1}, op{opAdvance, 1}))
	f.Fuzz(func(t *testing.T, data []byte) {
		synctest.Test(t, func(t *testing.T) {
			c := NewSkewed(System, Skew{})
			running := func() time.Duration {
				c.mu.Lock()
				defer c.mu.Unlock()
				return c.running(c.base.Elapsed())
			}
			set, fired := 0, make(chan struct{}, opsAtMost)
			step := time.Duration(1) // what the clock may move by in a nanosecond
			for range opsAtMost {
				var o op
				o, data = decode(data)
				n := time.Duration(o.n & (1<<40 - 1)) // up to 18 minutes
				switch o.kind {
				case opAdvance:
					time.Sleep(n)
				case opRate:
					rate := float64(1+uint16(o.n)) / 1000 // 0.001 to 65.5
					c.SetRate(rate)
					step = max(step, time.Duration(rate)+1)
				case opSuspend:
					c.Suspend(n)
				case opTimer:
					set++
					elapsed, due := c.Elapsed()+n, running()+n
					c.AfterFunc(n, func() {
						if now := c.Elapsed(); now < elapsed {
							t.Errorf("fired at %d, due at %d", now, elapsed)
						}
						// step is the highest rate so far, since SetRate may have
						// come in the same nanosecond.
						if over := running() - due; over < 0 || over > step {
							t.Errorf("fired %d ns off, at most %d are due to rounding", over, step)
						}
						fired <- struct{}{}
					})
				}
				synctest.Wait()
			}
			c.SetRate(1)
			for range set {
				<-fired
			}
			if len(c.timers) != 0 {
				t.Errorf("%d timers are left", len(c.timers))
			}
		})
	})
}
