// Docker, by its command.

package nodes

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// docker runs a command and returns the first line that it prints.
func docker(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("docker %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	line, _, _ := strings.Cut(stdout.String(), "\n")
	return strings.TrimSpace(line), nil
}
