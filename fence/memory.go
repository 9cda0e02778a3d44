// A guard in the memory of one process.

package fence

import (
	"context"
	"strings"
	"sync"
)

// Memory is a [Guard] for data that lives in this process, and for tests. It is
// safe for concurrent use; its zero value is ready.
//
// A check is atomic, but what follows it is not. Whoever checks and then reads
// or writes holds a mutex over both, or another holder can come in between.
//
// It keeps one entry, the name and a number, for every resource ever checked,
// since one that it forgot would be open to stale tokens again. It ends with the
// process, so it cannot guard what outlives the process.
type Memory struct {
	mu      sync.Mutex
	highest map[string]int64
}

// NewMemory returns a guard that has seen no token.
func NewMemory() *Memory { return new(Memory) }

// Check implements [Guard]. It remembers nothing if ctx has ended.
func (m *Memory) Check(ctx context.Context, resource string, token int64) error {
	if err := validate(resource, token); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return failed(ctx, resource, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	highest := m.highest[resource] // 0, below any token, if there is none
	switch {
	case token < highest:
		return &StaleError{Resource: resource, Token: token, Highest: highest}
	case token == highest:
		return nil
	case m.highest == nil:
		m.highest = make(map[string]int64)
	}
	if highest == 0 {
		resource = strings.Clone(resource) // it may be a piece of something large
	}
	m.highest[resource] = token
	return nil
}
