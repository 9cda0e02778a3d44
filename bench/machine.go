// What the figures were measured on.

package main

import (
	"os"
	"runtime"
	"strings"

	"github.com/quorumlock/redlock/bench/internal/result"
)

func machine() result.Machine {
	return result.Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpuModel(), CPUs: runtime.NumCPU(),
		GOMAXPROCS: runtime.GOMAXPROCS(0), Go: runtime.Version(), Load: loadAverage(),
	}
}

// cpuModel is what Linux says; empty elsewhere.
func cpuModel() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// loadAverage is that of the last minute, where Linux tells it.
func loadAverage() string {
	text, _ := os.ReadFile("/proc/loadavg")
	first, _, _ := strings.Cut(string(text), " ")
	return first
}
