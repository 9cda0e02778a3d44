// The program as its user runs it.

package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestServes starts the program and reads its metrics over HTTP until all that README.md
// names have been there.
func TestServes(t *testing.T) {
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := make(map[string]bool)
	for _, m := range regexp.MustCompile("(?m)^\\| `(redlock_\\w+)` \\|").FindAllStringSubmatch(string(text), -1) {
		missing[m[1]] = true
	}
	if len(missing) < 15 {
		t.Fatalf("%d metrics in README.md", len(missing))
	}

	program := filepath.Join(t.TempDir(), "program")
	if runtime.GOOS == "windows" {
		program += ".exe"
	}
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-listen", "127.0.0.1:0", "-ttl", "300ms", "-chaos")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		cancel()
		_ = cmd.Wait()
	}()
	lines := bufio.NewScanner(stderr)
	url := ""
	for url == "" && lines.Scan() {
		url = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	go io.Copy(io.Discard, stderr)

	var last string
	for len(missing) > 0 {
		if ctx.Err() != nil {
			t.Fatalf("%v are missing in\n%s", missing, last)
		}
		last = scrape(ctx, t, url)
		for name := range missing {
			if regexp.MustCompile(`(?m)^` + name + `(_count)?[{ ]`).MatchString(last) {
				delete(missing, name)
			}
		}
		pause(ctx, 100*time.Millisecond)
	}
	if strings.Contains(last, "resource-") {
		t.Error("names of mutexes are in a scrape")
	}
}

func scrape(ctx context.Context, t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%v: %v", response.Status, err)
	}
	return string(body)
}
