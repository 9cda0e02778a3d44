// Chaos, from the worker's side: the moments at which it can be hit.

package main

// A moment is a place in the work on an invoice.
type moment string

const (
	charging  moment = "charging"  // in the middle of the charge, nothing written
	checked   moment = "checked"   // after the last look at the lease, before the transaction
	written   moment = "written"   // in the transaction, everything written, nothing committed
	committed moment = "committed" // all is committed, and the lock still held
)

// poise waits at a moment of the plan for what the parent has in mind. It says
// so first: who is stopped or killed then is so exactly here, not about here.
// Nothing else ends the wait, not even the lease, since whoever is stopped here
// would not see that either.
func (w *worker) poise(m moment, inv invoice) {
	if w.Plan[inv.id] != m {
		return
	}
	w.say(event{Kind: poised, Customer: inv.customer, Invoice: inv.id, Moment: m})
	<-w.goOn
}
