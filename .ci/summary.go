//go:build ignore

// Summary reads the output of "go test -json" and prints what "go test" prints:
// a line per package, and the output of what failed. It also prints each skipped
// test, with its reason, because a skip must not pass for a success. It writes
// the counts to the file that is its argument.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
)

type event struct {
	Action, Package, Test, Output, ImportPath string
}

func main() {
	count := make(map[string]int)      // by action, of tests and subtests
	failedIn := make(map[string]int)   // by package
	output := make(map[event][]string) // by package and test
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil {
				fmt.Print(string(line)) // what is not JSON is a message of the go command
				continue
			}
			key := event{Package: e.Package, Test: e.Test}
			switch e.Action {
			case "output":
				output[key] = append(output[key], e.Output)
			case "build-output":
				fmt.Print(e.Output)
			case "pass", "fail", "skip":
				if e.Action == "fail" {
					failedIn[e.Package]++
				}
				// A package that fails without a failing test, as it does when it
				// is not built, counts as a failure too.
				if e.Test != "" || e.Action == "fail" && failedIn[e.Package] == 1 {
					count[e.Action]++
				}
				show(e, output[key])
				delete(output, key)
			}
		}
		if err != nil {
			break
		}
	}
	for _, lines := range output { // of what never ended
		count["fail"]++
		fmt.Print(strings.Join(lines, ""))
	}
	counts := fmt.Sprintf("%d passed, %d failed, %d skipped\n", count["pass"], count["fail"], count["skip"])
	if err := os.WriteFile(os.Args[1], []byte(counts), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if count["fail"] > 0 {
		fmt.Print(counts)
		os.Exit(1)
	}
}

func show(e event, lines []string) {
	if e.Test == "" && e.Action == "pass" { // of a package that passed, its last line
		lines = lines[max(0, len(lines)-1):]
	}
	if e.Test == "" || e.Action != "pass" {
		lines = slices.DeleteFunc(lines, func(s string) bool { return strings.HasPrefix(s, "=== ") || s == "PASS\n" })
		fmt.Print(strings.Join(lines, ""))
	}
}
