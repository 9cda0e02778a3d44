// What a guard is, and the errors by which it refuses.

package fence

import (
	"context"
	"errors"
	"fmt"
)

// A Guard remembers the highest fencing token that was presented for each
// resource.
type Guard interface {
	// Check presents a token. It returns nil if no higher one was presented for
	// this resource before, and remembers it. Otherwise the error is a
	// *[StaleError], and the caller must not touch the resource. Any other
	// error says that nothing is known: the caller must not go on either.
	Check(ctx context.Context, resource string, token int64) error
}

// The facts. Errors returned by this package wrap them; test with [errors.Is].
var (
	// ErrStale: a higher token was presented before. The lease of whoever
	// presents this one is over; another holder has had the lock since.
	ErrStale = errors.New("stale fencing token")

	// ErrNoToken: the token is not positive. Zero is what a lease has when
	// fencing is off, or when it is nil.
	ErrNoToken = errors.New("not a fencing token")

	// ErrNoResource: the resource has no name.
	ErrNoResource = errors.New("no resource name")
)

// A StaleError is a token refused because of a higher one. It is always used as
// a pointer, and wraps [ErrStale].
type StaleError struct {
	Resource string
	Token    int64 // as presented
	Highest  int64 // presented before, and higher

	_ struct{}
}

func (e *StaleError) Error() string {
	return fmt.Sprintf("fence: check %q: %v: %d, after %d", abbreviate(e.Resource), ErrStale, e.Token, e.Highest)
}

// Unwrap returns [ErrStale].
func (e *StaleError) Unwrap() error { return ErrStale }

// validate refuses what cannot be checked.
func validate(resource string, token int64) error {
	if resource == "" {
		return fmt.Errorf("fence: check: %w", ErrNoResource)
	}
	if token <= 0 {
		hint := ""
		if token == 0 {
			hint = ": is fencing off?"
		}
		return fmt.Errorf("fence: check %q: %w: %d%s", abbreviate(resource), ErrNoToken, token, hint)
	}
	return nil
}

// failed is the error of a check without a verdict. If ctx has ended it also
// wraps why, which for the context of a lease is the reason of the loss.
func failed(ctx context.Context, resource string, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return fmt.Errorf("fence: check %q: %w", abbreviate(resource), err)
}

// abbreviate keeps an error readable when the name is long.
func abbreviate(name string) string {
	const most = 80
	if len(name) <= most {
		return name
	}
	return fmt.Sprintf("%s… (%d bytes)", name[:most], len(name))
}
