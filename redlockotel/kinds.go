// Errors as the few kinds that a series can be made for.

package redlockotel

import (
	"context"
	"errors"

	"github.com/quorumlock/redlock"
)

// other is the semantic conventions' word for an error that has no name.
const other = "_OTHER"

// kind is the error.type of what was done with a lease; empty if there is no error. A
// lease that was lost is that, whatever for: the loss was counted with its cause.
func kind(err error) string {
	if err == nil {
		return ""
	}
	for _, k := range []struct {
		err  error
		name string
	}{
		{redlock.ErrLost, "lost"},
		{redlock.ErrTaken, "taken"},
		{redlock.ErrNotHeld, "not_held"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "canceled"},
		{redlock.ErrClosed, "closed"},
		{redlock.ErrNoQuorum, "no_quorum"},
	} {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return other
}
