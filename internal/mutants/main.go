// Mutants breaks the library in ways that are written down, one at a time and in a
// copy, and shows that a named test notices each. A mutant that survives is a test
// that is missing.
//
//	go run ./internal/mutants                  all, which takes minutes
//	go run ./internal/mutants -run 'quorum-.*' those whose whole name matches
//	go run ./internal/mutants -shard 2/4       a fourth of them
//	go run ./internal/mutants -list            writes docs/mutants.md
//
// The mutants are in the folder table, a file for each package; parse.go says how they
// are written. To add one, write it down there, run it, and run -list. To add a killer to
// one, add a line.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
)

func main() {
	pattern := flag.String("run", ".*", "regular `expression` of the names of the mutants to run")
	shard := flag.String("shard", "1/1", "`i/n`: run every n-th mutant, from the i-th on")
	workers := flag.Int("workers", max(1, runtime.GOMAXPROCS(0)/2), "mutants at a time")
	list := flag.Bool("list", false, "write docs/mutants.md instead")
	verbose := flag.Bool("v", false, "show what killed, too")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx, *pattern, *shard, *workers, *list, *verbose); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1) //nolint:gocritic // the signals end with the process
	}
}

func start(ctx context.Context, pattern, shard string, workers int, list, verbose bool) error {
	root, err := moduleRoot()
	if err != nil {
		return err
	}
	all, err := readTable()
	if err != nil {
		return err
	}
	if list {
		return os.WriteFile(filepath.Join(root, document), []byte(describe(all)), 0o644)
	}
	some, err := choose(all, pattern, shard)
	if err != nil {
		return err
	}
	return runAll(ctx, root, some, workers, verbose, os.Stdout)
}

// choose returns the mutants of a shard whose names match.
func choose(all []mutant, pattern, shard string) ([]mutant, error) {
	names, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	var i, n int
	if _, err := fmt.Sscanf(shard, "%d/%d", &i, &n); err != nil || i < 1 || i > n {
		return nil, fmt.Errorf("-shard %s: want i/n, with i from 1 to n", shard)
	}
	var some []mutant
	for j, m := range all {
		if j%n == i-1 && names.MatchString(m.name) {
			some = append(some, m)
		}
	}
	if len(some) == 0 {
		return nil, fmt.Errorf("there is no mutant like %s in shard %s", pattern, shard)
	}
	return some, nil
}

// moduleRoot returns the folder of the module that the process was started in.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("start it in the repository")
		}
		dir = parent
	}
}
