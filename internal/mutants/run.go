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

// runAll tries each mutant, after it has seen that its killers pass as long as nothing is
// broken. The error says which were not killed.
func runAll(ctx context.Context, root string, all []mutant, workers int, verbose bool, w io.Writer) error {
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	start := time.Now()
	armed, unsound, err := prepare(ctx, root, dir, all)
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "prepared  %d mutants, of which %d are in one program, %.1f s\n", len(all), len(armed.armed), time.Since(start).Seconds())
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
				for _, k := range m.killers {
					err = errors.Join(err, unsound[k])
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
// killers are built, and which of them do not pass although nothing is broken. Mutants
// that do not compile are not armed: they are made by themselves then, and found out.
func prepare(ctx context.Context, root, dir string, all []mutant) (*lab, map[killer]error, error) {
	var killers []killer
	for _, m := range all {
		killers = append(killers, m.killers...)
	}
	slices.SortFunc(killers, func(a, b killer) int { return strings.Compare(a.String(), b.String()) })
	killers = slices.Compact(killers)
	bad := make(map[int]bool) // numbers of mutants
	for {
		l, err := newLab(root, dir)
		if err != nil {
			return nil, nil, err
		}
		if l.armed, err = arm(l.root, all, bad); err != nil {
			return nil, nil, err
		}
		for _, k := range killers {
			if _, err = l.build(ctx, k.pkg); err != nil {
				break
			}
		}
		if err == nil || ctx.Err() != nil {
			return l, l.unsound(ctx, killers), ctx.Err()
		}
		culprits := l.culprits(err.Error())
		if len(culprits) == 0 {
			return nil, nil, err
		}
		for _, number := range culprits {
			bad[number] = true
		}
	}
}

// unsound returns the killers that do not pass although nothing is broken, and why.
func (l *lab) unsound(ctx context.Context, killers []killer) map[killer]error {
	bad := make(map[killer]error)
	for _, k := range killers {
		switch end, output, err := l.test(ctx, k, patience, 0); {
		case err != nil:
			bad[k] = err
		case end != passed:
			bad[k] = fmt.Errorf("although nothing is broken, %s %v:\n%s", k, end, tail(output))
		}
	}
	return bad
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
