// The test binary is also the program, for tests that run it as a user does, and
// ends the servers that the benchmarks share.

package main

import (
	"os"
	"testing"

	"github.com/redis/go-redis/v9/logging"
)

const programEnv = "BENCH_TEST_PROGRAM"

func TestMain(m *testing.M) {
	if os.Getenv(programEnv) != "" {
		main()
	}
	logging.Disable() // as the program does
	code := m.Run()
	if set := started.Load(); set != nil {
		_ = set.Close()
	}
	os.Exit(code)
}
