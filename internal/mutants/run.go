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
	labs := make([]*lab, min(max(workers, 1), len(all)))
	for i := range labs {
		if labs[i], err = newLab(root, dir); err != nil {
			return err
		}
	}
	start := time.Now()
	if err := labs[0].sound(ctx, all); err != nil {
		return err
	}
	fmt.Fprintf(w, "sound     the killers of %d mutants pass, %.1f s\n", len(all), time.Since(start).Seconds())

	var mu sync.Mutex // for what follows
	var survived, faulty []string
	todo := make(chan mutant)
	var group sync.WaitGroup
	for _, l := range labs {
		group.Go(func() {
			for m := range todo {
				from := time.Now()
				output, err := l.try(ctx, m)
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

// sound returns an error if a killer fails that nothing was done to.
func (l *lab) sound(ctx context.Context, all []mutant) error {
	var killers []killer
	for _, m := range all {
		killers = append(killers, m.killers...)
	}
	slices.SortFunc(killers, func(a, b killer) int { return strings.Compare(a.String(), b.String()) })
	built := ""
	for _, k := range slices.Compact(killers) {
		if k.pkg != built {
			if err := l.build(ctx, k.pkg); err != nil {
				return err
			}
			built = k.pkg
		}
		switch end, output, err := l.test(ctx, k, patience); {
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
