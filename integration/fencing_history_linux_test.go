// The history of many processes that lock one name, and two judges of it: one of
// our own, and Porcupine, which checks histories for linearizability.

package integration_test

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"golang.org/x/sys/unix"
)

// An acquisition is one Lock: when it was called, when it returned, and the
// fencing token. The times are nanoseconds of CLOCK_MONOTONIC, which is one for
// all processes of a machine.
type acquisition struct {
	process   int
	call, ret int64
	token     int64
}

// monotonic reads the clock.
func monotonic() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err)
	}
	return ts.Nano()
}

func (a acquisition) writeTo(w io.Writer) error {
	_, err := fmt.Fprintln(w, a.call, a.ret, a.token)
	return err
}

// readHistory reads what one process has written.
func readHistory(t *testing.T, path string, process int) []acquisition {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var history []acquisition
	for lines := bufio.NewScanner(f); lines.Scan(); {
		a := acquisition{process: process}
		if _, err := fmt.Sscan(lines.Text(), &a.call, &a.ret, &a.token); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		history = append(history, a)
	}
	return history
}

// disorder returns what is wrong with the tokens: one is there twice, or is not
// above all those of acquisitions that had returned before it was asked for.
func disorder(history []acquisition) error {
	called := slices.SortedFunc(slices.Values(history), func(a, b acquisition) int { return cmp.Compare(a.call, b.call) })
	returned := slices.SortedFunc(slices.Values(history), func(a, b acquisition) int { return cmp.Compare(a.ret, b.ret) })
	seen := make(map[int64]bool, len(history))
	var before acquisition // with the highest token of those that had returned
	for _, a := range called {
		for ; len(returned) > 0 && returned[0].ret < a.call; returned = returned[1:] {
			if returned[0].token > before.token {
				before = returned[0]
			}
		}
		switch {
		case a.token <= 0:
			return fmt.Errorf("token %d", a.token)
		case seen[a.token]:
			return fmt.Errorf("token %d was given out twice", a.token)
		case a.token <= before.token:
			return fmt.Errorf("process %d got token %d, %v after process %d had got %d",
				a.process, a.token, time.Duration(a.call-before.ret), before.process, before.token)
		}
		seen[a.token] = true
	}
	return nil
}

// linearizable asks Porcupine whether there is one order of all acquisitions that
// agrees with real time and in which each token is above the one before. A
// question that takes too long has no answer, which is not a yes.
//
// The state is the last token. Only the order of the tokens can work, so none may
// be left out either: without that hint Porcupine tries, for each step, all
// subsets of the sixteen acquisitions that are waiting.
func linearizable(history []acquisition) porcupine.CheckResult {
	tokens := make([]int64, len(history))
	operations := make([]porcupine.Operation, len(history))
	for i, a := range history {
		tokens[i] = a.token
		operations[i] = porcupine.Operation{ClientId: a.process, Call: a.call, Return: a.ret, Output: a.token}
	}
	slices.Sort(tokens)
	next := make(map[int64]int64, len(tokens)) // the least token above one
	last := int64(0)
	for _, token := range slices.Compact(tokens) {
		next[last], last = token, token
	}
	model := porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(state, _, output any) (bool, any) {
			last, token := state.(int64), output.(int64)
			return token > last && token == next[last], token
		},
	}
	return porcupine.CheckOperationsTimeout(model, operations, time.Minute)
}

// judge fails the test unless both judges find nothing.
func judge(t *testing.T, history []acquisition) {
	t.Helper()
	if err := disorder(history); err != nil {
		t.Error(err)
	}
	if result := linearizable(history); result != porcupine.Ok {
		t.Errorf("Porcupine says %s", result)
	}
}

// bites checks that both judges find what is wrong once the history is spoilt.
func bites(t *testing.T, what string, history []acquisition, spoil func(h []acquisition)) {
	t.Helper()
	spoilt := slices.Clone(history)
	spoil(spoilt)
	if err := disorder(spoilt); err == nil {
		t.Errorf("%s: our own judge finds nothing", what)
	}
	if result := linearizable(spoilt); result != porcupine.Illegal {
		t.Errorf("%s: Porcupine says %s", what, result)
	}
}

// TestFencingJudges: on histories small enough to be judged by eye.
func TestFencingJudges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		history []acquisition
		want    bool
	}{
		"in order":         {[]acquisition{{0, 1, 2, 1}, {1, 3, 4, 2}, {0, 5, 6, 9}}, true},
		"overlapping":      {[]acquisition{{0, 1, 4, 2}, {1, 3, 6, 1}}, true},
		"touching":         {[]acquisition{{0, 1, 3, 2}, {1, 3, 6, 1}}, true},
		"twice":            {[]acquisition{{0, 1, 4, 2}, {1, 3, 6, 2}}, false},
		"swapped":          {[]acquisition{{0, 1, 2, 2}, {1, 3, 4, 1}}, false},
		"swapped far away": {[]acquisition{{0, 1, 2, 5}, {1, 3, 100, 6}, {2, 4, 5, 7}, {3, 6, 7, 4}}, false},
		"three ways":       {[]acquisition{{0, 1, 9, 3}, {1, 2, 3, 2}, {2, 4, 5, 1}}, false},
	} {
		if err := disorder(c.history); (err == nil) != c.want {
			t.Errorf("%s: our own judge says %v", name, err)
		}
		if result := linearizable(c.history); (result == porcupine.Ok) != c.want || result == porcupine.Unknown {
			t.Errorf("%s: Porcupine says %s", name, result)
		}
	}
}
