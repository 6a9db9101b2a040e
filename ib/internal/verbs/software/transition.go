package software

import (
	"fmt"
	"slices"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// Modify implements verbs.Pair.
func (q *pair) Modify(a verbs.Attributes) error {
	if err := q.check(); err != nil {
		return err
	}
	q.mu.Lock()
	err := q.modify(a)
	q.mu.Unlock()
	q.fabric.processFailures()
	return err
}

func (q *pair) modify(a verbs.Attributes) error {
	from, to := q.currentState(), a.State
	if a.Mask&verbs.MaskState == 0 {
		to = from
	}
	if err := verbs.CheckTransition(q.transport, from, to, a.Mask); err != nil {
		return err
	}
	if err := q.checkValues(a); err != nil {
		return err
	}
	switch to {
	case verbs.Reset:
		q.responderMu.Lock()
		q.reset()
		q.responderMu.Unlock()
		return nil
	case verbs.Error:
		q.fail()
		return nil
	}
	q.responderMu.Lock()
	if q.currentState() != from { // an answer moved it to Error meanwhile
		q.responderMu.Unlock()
		return fmt.Errorf("%w: queue pair %#x went to %v", verbs.ErrState, q.number, q.currentState())
	}
	q.setAttributes(a)
	if from == verbs.Init && to == verbs.ReadyToReceive {
		q.responder.begin(q.attr.ReceivePSN)
	}
	q.responder.attr = q.attr
	q.state.Store(uint32(to))
	q.responderMu.Unlock()
	if from == verbs.ReadyToReceive && to == verbs.ReadyToSend {
		q.requests.begin(q.attr.SendPSN)
	}
	q.transmitPending()
	return nil
}

// values judges the attributes that are given.
func (q *pair) checkValues(a verbs.Attributes) error {
	bad := func(m verbs.Mask, isBad bool, format string, args ...any) error {
		if a.Mask&m == 0 || !isBad {
			return nil
		}
		return fmt.Errorf("%w: %s", verbs.ErrAttributes, fmt.Sprintf(format, args...))
	}
	c := q.fabric.cfg
	for _, err := range []error{
		bad(verbs.MaskPort, a.Port < 1 || a.Port > len(q.adapter.ports), "port %d of %s, which has 1 to %d", a.Port, q.adapter.name, len(q.adapter.ports)),
		bad(verbs.MaskPartitionKey, a.PartitionKey != 0, "partition key index %d of a table of one", a.PartitionKey),
		bad(verbs.MaskPathMTU, !slices.Contains([]int{256, 512, 1024, 2048, 4096}, a.PathMTU) || a.PathMTU > c.MTU, "path MTU of %d bytes at a port of %d", a.PathMTU, c.MTU),
		bad(verbs.MaskRemote, a.Remote>>24 != 0, "queue pair number %#x has more than 24 bits", a.Remote),
		bad(verbs.MaskReceivePSN, a.ReceivePSN>>24 != 0, "receive PSN %#x has more than 24 bits", a.ReceivePSN),
		bad(verbs.MaskSendPSN, a.SendPSN>>24 != 0, "send PSN %#x has more than 24 bits", a.SendPSN),
		bad(verbs.MaskRetries, a.Retries > 7, "%d retries; 7 is the most", a.Retries),
		bad(verbs.MaskRNRRetries, a.RNRRetries > 7, "%d RNR retries; 7 stands for no end", a.RNRRetries),
		bad(verbs.MaskRNRTimer, a.RNRTimer > 31, "RNR timer code %d; 31 is the last", a.RNRTimer),
		bad(verbs.MaskTimeout, a.Timeout > 31, "timeout exponent %d; 31 is the most", a.Timeout),
		bad(verbs.MaskPendingReads, int(a.PendingReads) > q.adapter.limits.PendingReads, "%d pending reads; the most is %d", a.PendingReads, q.adapter.limits.PendingReads),
		bad(verbs.MaskInitiatedReads, int(a.InitiatedReads) > q.adapter.limits.InitiatedReads, "%d initiated reads; the most is %d", a.InitiatedReads, q.adapter.limits.InitiatedReads),
		bad(verbs.MaskPath, c.Layer == verbs.LayerEthernet && !a.Path.Global, "on an Ethernet port the path needs a GID"),
		bad(verbs.MaskPath, a.Path.Global && (a.Path.SourceIndex < 0 || a.Path.SourceIndex >= q.sourceGIDs()), "source GID index %d of a table of %d", a.Path.SourceIndex, q.sourceGIDs()),
	} {
		if err != nil {
			return err
		}
	}
	return nil
}

func (q *pair) sourceGIDs() int {
	if q.attr.Port == 0 {
		return 0
	}
	return len(q.adapter.ports[q.attr.Port-1].gids)
}

// take copies what is given; both locks are held.
func (q *pair) setAttributes(a verbs.Attributes) {
	m, to := a.Mask, &q.attr
	set := func(bit verbs.Mask, f func()) {
		if m&bit != 0 {
			f()
		}
	}
	set(verbs.MaskPort, func() { to.Port = a.Port })
	set(verbs.MaskAccess, func() { to.Access = a.Access })
	set(verbs.MaskPath, func() { to.Path = a.Path; q.destination.Store(nil) })
	set(verbs.MaskPathMTU, func() { to.PathMTU = a.PathMTU })
	set(verbs.MaskTimeout, func() { to.Timeout = a.Timeout })
	set(verbs.MaskRetries, func() { to.Retries = a.Retries })
	set(verbs.MaskRNRRetries, func() { to.RNRRetries = a.RNRRetries })
	set(verbs.MaskReceivePSN, func() { to.ReceivePSN = a.ReceivePSN })
	set(verbs.MaskRNRTimer, func() { to.RNRTimer = a.RNRTimer })
	set(verbs.MaskSendPSN, func() { to.SendPSN = a.SendPSN })
	set(verbs.MaskRemote, func() { to.Remote = a.Remote })
}
