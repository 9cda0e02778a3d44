// A trace that logs.

package redlock

import (
	"context"
	"log/slog"
)

// LogTrace returns a trace for [WithTrace] that logs to l what the client does:
// leases that are lost as errors, what may lead to that and what is left behind as
// warnings, and all else for debugging, also a Lock that failed, which its caller is
// told. A level that l does not log costs little. Messages and keys are constant, and
// no owner token is logged.
//
// [WithLogger] is for the little that nobody else is told, and does not need it.
func LogTrace(l *slog.Logger) *Trace {
	t := logTrace{l}
	return &Trace{
		LockDone: t.lockDone, AttemptStart: t.attemptStart, AttemptDone: t.attemptDone, NodeDone: t.nodeDone,
		Wait: t.wait, Called: t.called, Deaf: t.deaf, Renewal: t.renewal, Danger: t.danger,
		Lost: t.lost, Unlocked: t.unlocked, CleanupDropped: t.cleanupDropped,
	}
}

type logTrace struct{ logger *slog.Logger }

// log writes one line, with err and the name in front if there are any.
func (t logTrace) log(ctx context.Context, level slog.Level, message, name string, err error, attrs ...slog.Attr) {
	if name != "" {
		attrs = append(attrs, slog.String("mutex", abbreviate(name)))
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	t.logger.LogAttrs(ctx, level, message, attrs...)
}

func (t logTrace) on(ctx context.Context, level slog.Level) bool {
	return t.logger.Enabled(ctx, level)
}

// levelOf is the level of what is to be debugged only unless it failed.
func levelOf(err error) slog.Level {
	if err != nil {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

func (t logTrace) lockDone(e LockDone) {
	if t.on(e.Context, slog.LevelDebug) {
		message := "redlock: locked"
		if e.Err != nil {
			message = "redlock: not locked"
		}
		t.log(e.Context, slog.LevelDebug, message, e.Name, e.Err,
			slog.Int("attempts", e.Attempts), slog.Duration("elapsed", e.Elapsed), slog.Int64("fencing_token", e.Token))
	}
}

func (t logTrace) attemptStart(e AttemptStart) {
	if t.on(e.Context, slog.LevelDebug) {
		t.log(e.Context, slog.LevelDebug, "redlock: attempt begins", e.Name, nil, slog.Int("attempt", e.Attempt))
	}
}

func (t logTrace) attemptDone(e AttemptDone) {
	if t.on(e.Context, slog.LevelDebug) {
		t.log(e.Context, slog.LevelDebug, "redlock: attempt ended", e.Name, e.Err,
			slog.Int("attempt", e.Attempt), slog.Duration("elapsed", e.Elapsed), slog.Duration("validity", e.Validity),
			slog.Int("granted", e.Granted), slog.Int("rounds", e.Rounds), slog.Int64("fencing_token", e.Token))
	}
}

func (t logTrace) nodeDone(e NodeDone) {
	if t.on(e.Context, slog.LevelDebug) {
		t.log(e.Context, slog.LevelDebug, "redlock: node answered or did not", e.Name, e.Err,
			slog.String("node", e.Node), slog.String("op", e.Op), slog.Duration("elapsed", e.Elapsed),
			slog.String("verdict", e.Verdict.String()), slog.Bool("late", e.Late))
	}
}

func (t logTrace) wait(e Wait) {
	if t.on(e.Context, slog.LevelDebug) {
		t.log(e.Context, slog.LevelDebug, "redlock: waiting", e.Name, e.Err,
			slog.Int("attempt", e.Attempt), slog.Duration("delay", e.Delay))
	}
}

func (t logTrace) called(e Called) {
	if t.on(e.Context, slog.LevelDebug) {
		t.log(e.Context, slog.LevelDebug, "redlock: called by a node", e.Name, nil, slog.String("node", e.Node))
	}
}

func (t logTrace) deaf(e Deaf) {
	t.log(context.Background(), slog.LevelWarn, "redlock: a node cannot be listened to", "", e.Err, slog.String("node", e.Node))
}

func (t logTrace) renewal(e Renewal) {
	if level := levelOf(e.Err); t.on(e.Context, level) {
		message := "redlock: lease renewed"
		if e.Err != nil {
			message = "redlock: lease not renewed"
		}
		t.log(e.Context, level, message, e.Name, e.Err,
			slog.Duration("behind", e.Behind), slog.Duration("elapsed", e.Elapsed),
			slog.Duration("validity", e.Validity), slog.Int("granted", e.Granted))
	}
}

func (t logTrace) danger(e Danger) {
	t.log(e.Context, slog.LevelWarn, "redlock: lease may soon be lost", e.Name, e.Err, slog.Duration("remaining", e.Remaining))
}

func (t logTrace) lost(e Lost) {
	level := slog.LevelError
	if e.Cause == LossClosed || e.Cause == LossMaxHold { // as it was asked for
		level = slog.LevelWarn
	}
	t.log(e.Context, level, "redlock: lease lost", e.Name, e.Err,
		slog.Duration("held", e.Held), slog.String("cause", string(e.Cause)))
}

func (t logTrace) unlocked(e Unlocked) {
	if level := levelOf(e.Err); t.on(e.Context, level) {
		t.log(e.Context, level, "redlock: unlocked", e.Name, e.Err,
			slog.Duration("held", e.Held), slog.Duration("elapsed", e.Elapsed))
	}
}

func (t logTrace) cleanupDropped(e CleanupDropped) {
	t.log(e.Context, slog.LevelWarn, "redlock: key not released", e.Name, e.Err, slog.String("node", e.Node))
}
