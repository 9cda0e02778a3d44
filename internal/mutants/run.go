// Running many mutants.

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

// runAll shows that the killers of all mutants pass as long as nothing is broken, and
// then tries each mutant. The error says how many were not killed.
func runAll(ctx context.Context, root string, all []mutant, workers int, verbose bool, w io.Writer) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	armed, err := prepare(ctx, root, dir, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "sound     the killers of %d mutants pass; %d mutants are in one program, %.1f s\n",
		len(all), len(armed.armed), time.Since(start).Seconds())
	// Those that build come last, and do not leave the others waiting.
	slices.SortStableFunc(all, func(a, b mutant) int { return min(armed.armed[b.name], 1) - min(armed.armed[a.name], 1) })

	var mu sync.Mutex // for what follows
	var survived, faulty []string
	todo := make(chan mutant)
	var group sync.WaitGroup
	for range max(workers, 1) {
		group.Go(func() {
			var own *lab
			for m := range todo {
				from, l := time.Now(), armed
				var output string
				var err error
				if armed.armed[m.name] == 0 {
					if own == nil {
						own, err = newLab(root, dir)
					}
					l = own
				}
				if err == nil {
					output, err = l.try(ctx, m)
				}
				mu.Lock()
				verdict := "killed"
				if s := new(survivor); errors.As(err, &s) {
					verdict, survived = "SURVIVED", append(survived, m.name)
				} else if err != nil {
					verdict, faulty = "FAULTY", append(faulty, m.name)
				}
				fmt.Fprintf(w, "%-9s %-40s %5.1f s  %s\n", verdict, m.name, time.Since(from).Seconds(), join(m.killers))
				if err != nil || verbose {
					fmt.Fprintf(w, "%v\n%s\n", err, tail(output))
				}
				mu.Unlock()
			}
		})
	}
	for _, m := range all {
		select {
		case todo <- m:
		case <-ctx.Done():
		}
	}
	close(todo)
	group.Wait()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	fmt.Fprintf(w, "%d mutants, %d killed, %.0f s\n", len(all), len(all)-len(survived)-len(faulty), time.Since(start).Seconds())
	if len(survived)+len(faulty) > 0 {
		return fmt.Errorf("survived: %s; faulty: %s", list(survived), list(faulty))
	}
	return nil
}

// prepare returns a lab where all mutants are armed that can be, and the binaries of all
// killers are built, after it has seen that they pass. If one of the mutants does not
// compile none is armed: each is made by itself then, and the one found out.
func prepare(ctx context.Context, root, dir string, all []mutant) (*lab, error) {
	var killers []killer
	for _, m := range all {
		killers = append(killers, m.killers...)
	}
	slices.SortFunc(killers, func(a, b killer) int { return strings.Compare(a.String(), b.String()) })
	killers = slices.Compact(killers)
	for _, arming := range []bool{true, false} {
		l, err := newLab(root, dir)
		if err != nil {
			return nil, err
		}
		if arming {
			if l.armed, err = arm(l.root, all); err != nil {
				continue // by a mutant that fits no more
			}
		}
		for _, k := range killers {
			if _, err = l.build(ctx, k.pkg); err != nil {
				break
			}
		}
		switch {
		case err == nil:
			return l, l.sound(ctx, killers)
		case ctx.Err() != nil || !arming:
			return nil, err
		}
	}
	return nil, errors.New("not reached")
}

// sound returns an error if a killer fails that nothing was done to.
func (l *lab) sound(ctx context.Context, killers []killer) error {
	for _, k := range killers {
		switch end, output, err := l.test(ctx, k, patience, 0); {
		case err != nil:
			return err
		case end != passed:
			return fmt.Errorf("although nothing is broken, %s %v:\n%s", k, end, tail(output))
		}
	}
	return nil
}

func join(killers []killer) string {
	parts := make([]string, len(killers))
	for i, k := range killers {
		parts[i] = k.String()
	}
	return strings.Join(parts, ", ")
}

func list(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// tail returns the end of an output, where it says how a test ended.
func tail(output string) string {
	const most = 3000
	return output[max(0, len(output)-most):]
}
