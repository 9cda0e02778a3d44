// Commands of many callers in one pipeline.

package redlock

import (
	"context"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// A batch is what a flight is to go-redis.
type batch struct {
	cmds  []*command
	index []int // of cmds in the flight
	send  []redis.Cmder
}

var batches = sync.Pool{New: func() any { return new(batch) }}

// carry makes one pipeline of all. Where the server runs no scripts, or does not know the
// one that is asked for, a command has to go alone.
func (n *redisNode) carry(ctx context.Context, calls []*call, answers []carried) {
	b := batches.Get().(*batch)
	scriptless := n.scriptless.Load()
	all := make([]command, len(calls)) // not kept: a hook may keep them
	for i, c := range calls {
		if scriptless && c.claim().Fence == "" {
			answers[i].alone = true
			continue
		}
		cmd := &all[i]
		cmd.call = c
		cmd.init(ctx, n.request(c), byName)
		b.cmds, b.index, b.send = append(b.cmds, cmd), append(b.index, i), append(b.send, cmd)
	}
	if len(b.cmds) > 0 {
		b.exec(ctx, n.bounded(ctx))
	}
	for j, cmd := range b.cmds {
		c, a := calls[b.index[j]], &answers[b.index[j]]
		a.Reply, a.err = cmd.result(cmd.Err())
		if a.alone = noScript(a.err) || c.claim().Fence == "" && noScripting(a.err); a.alone {
			continue
		}
		if a.err = naming(c.claim(), a.err); c.op == opRelease {
			a.Reply = called(a.Reply)
		}
	}
	clear(b.cmds)
	clear(b.send)
	b.cmds, b.index, b.send = b.cmds[:0], b.index[:0], b.send[:0]
	batches.Put(b)
}

// exec sends a batch.
func (b *batch) exec(ctx context.Context, client redis.UniversalClient) {
	if len(b.cmds) == 1 {
		b.cmds[0].SetErr(client.Process(ctx, b.cmds[0])) // without its connection there is no other word
		return
	}
	pipe := client.Pipeline()
	_ = pipe.BatchProcess(ctx, b.send...) // queues them
	_, err := pipe.Exec(ctx)
	if !slices.ContainsFunc(b.cmds, (*command).returned) {
		for _, cmd := range b.cmds { // nothing has passed a hook, or there is no connection
			cmd.SetErr(err)
		}
	}
}

func (n *redisNode) request(c *call) request {
	switch claim := c.claim(); c.op {
	case opAcquire:
		return acquireRequest(claim)
	case opRaise:
		return raiseRequest(claim, c.number)
	case opRearm:
		return rearmRequest(claim, c.number)
	case opExtend:
		return extendRequest(claim)
	default:
		return releaseRequest(claim, c.bury, n.unaware())
	}
}
