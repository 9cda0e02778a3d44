// Bad values end the program at once, with an error that names flag and value.

package main

import (
	"strings"
	"testing"
)

func TestBadFlags(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		args []string
		env  string
		want []string // parts of standard error
	}{
		{"no number", []string{"-workers", "many"}, "", []string{`"many"`, "-workers"}},
		{"no workers", []string{"-workers", "0"}, "", []string{"-workers 0: must be from 1 to 64"}},
		{"too many workers", []string{"-workers", "65"}, "", []string{"-workers 65: "}},
		{"no heir", []string{"-workers", "1"}, "", []string{"-workers 1: nobody is left"}},
		{"no customers", []string{"-customers", "-3"}, "", []string{"-customers -3: must be from 1"}},
		{"no invoices", []string{"-invoices", "0"}, "", []string{"-invoices 0: must be from 1"}},
		{"no duration", []string{"-ttl", "2"}, "", []string{`"2"`, "-ttl"}},
		{"short TTL", []string{"-ttl", "50ms"}, "", []string{"-ttl 50ms: must be from 200ms to 1m"}},
		{"broken TTL", []string{"-ttl", "1.0005s"}, "", []string{"-ttl 1.0005s: must be whole milliseconds"}},
		{"no work", []string{"-work", "0s"}, "", []string{"-work 0s: must be from 1ms to 1m"}},
		{"long work", []string{"-work", "2m"}, "", []string{"-work 2m0s: "}},
		{"no seed", []string{"-seed", "-1"}, "", []string{`"-1"`, "-seed"}},
		{"no port", []string{"-redis", "localhost"}, "", []string{`-redis: node 1 "localhost": want a redis:// URL or host:port`}},
		{"empty node", []string{"-redis", "a:1,"}, "", []string{`-redis: node 2 "": `}},
		{"node twice", []string{"-redis", "a:1,redis://a:1"}, "", []string{`-redis: node 2 "a:1": is node 1 again`}},
		{"bad node in the environment", nil, "a:0", []string{nodesEnv + `: node 1 "a:0": port must be from 1`}},
		{"no DSN", []string{"-dsn", "ledger"}, "", []string{"-dsn: ", "`ledger`"}},
		{"chaos without locks", []string{"-chaos", "-no-lock"}, "", []string{"-chaos -no-lock: without locks"}},
		{"chaos without kills", []string{"-chaos", "-no-kill"}, "", []string{"-chaos -no-kill: "}},
		{"chaos without stops", []string{"-chaos", "-no-stop"}, "", []string{"-chaos -no-stop: "}},
		{"no locks, no fence", []string{"-no-lock", "-no-fence"}, "", []string{"-no-lock -no-fence: "}},
		{"chaos without heirs", []string{"-chaos", "-workers", "3"}, "", []string{"-workers 3: -chaos stops 3 at a time", "use 4 or more"}},
		{"chaos without work", []string{"-chaos", "-invoices", "5"}, "", []string{"-invoices 5: -chaos strikes in 6"}},
		{"unknown flag", []string{"-lock"}, "", []string{"-lock"}},
		{"argument", []string{"now"}, "", []string{`unexpected argument "now"`}},
		{"two at once", []string{"-workers", "0", "-ttl", "1h"}, "", []string{"-workers 0: ", "-ttl 1h0m0s: "}},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := runProgram(t, []string{nodesEnv + "=" + test.env}, test.args...)
			if r.code != exitUsage || r.stdout != "" {
				t.Errorf("exit code %d, standard output %q", r.code, r.stdout)
			}
			for _, part := range test.want {
				if !strings.Contains(r.stderr, part) {
					t.Errorf("standard error lacks %q:\n%s", part, r.stderr)
				}
			}
		})
	}
}

// TestSecrets wants no password in an error.
func TestSecrets(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"-redis", "redis://:s3cret@host:99999"},
		{"-redis", "http://:s3cret@host:1"},
		{"-redis", "redis://u:s3cret%@host:1"},
		{"-dsn", "postgres://u:s3cret@host:port/db"},
		{"-dsn", "user=u password=s3cret port=x"},
	} {
		r := runProgram(t, nil, args...)
		if r.code != exitUsage || strings.Contains(r.stderr, "s3cret") {
			t.Errorf("%s: exit code %d, standard error:\n%s", args, r.code, r.stderr)
		}
	}
}

// TestNoQuorum wants a clear end instead of a run that can only wait.
func TestNoQuorum(t *testing.T) {
	t.Parallel()
	r := runProgram(t, nil, "-redis", "127.0.0.1:1,127.0.0.1:2,127.0.0.1:3")
	if r.code != exitFailed || r.stdout != "" || !strings.Contains(r.stderr, "0 of 3 nodes answer, a quorum is 2") ||
		!strings.Contains(r.stderr, "node 3 (127.0.0.1:3) does not answer") {
		t.Errorf("exit code %d, standard output %q, standard error:\n%s", r.code, r.stdout, r.stderr)
	}
}
