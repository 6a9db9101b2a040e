package software

import (
	"fmt"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

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
	if q.currentState() != from { // an acknowledgement has moved it to Error
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

// maxReads bounds the remote reads of a pair in each direction.
const maxReads = 128

// checkValues checks the attributes that are given.
func (q *pair) checkValues(a verbs.Attributes) error {
	const max24 = 1<<24 - 1
	c := q.fabric.cfg
	for _, f := range []struct {
		mask            verbs.Mask
		value, min, max int
		name            string
	}{
		{verbs.MaskPort, a.Port, 1, 1, "port"},
		{verbs.MaskRemote, int(a.Remote), 0, max24, "queue pair number"},
		{verbs.MaskReceivePSN, int(a.ReceivePSN), 0, max24, "receive PSN"},
		{verbs.MaskSendPSN, int(a.SendPSN), 0, max24, "send PSN"},
		{verbs.MaskRetries, int(a.Retries), 0, 7, "retries"},
		{verbs.MaskRNRRetries, int(a.RNRRetries), 0, 7, "RNR retries"},
		{verbs.MaskRNRTimer, int(a.RNRTimer), 0, 31, "RNR timer code"},
		{verbs.MaskTimeout, int(a.Timeout), 0, 31, "timeout exponent"},
		{verbs.MaskPendingReads, int(a.PendingReads), 0, maxReads, "pending reads"},
		{verbs.MaskInitiatedReads, int(a.InitiatedReads), 0, maxReads, "initiated reads"},
	} {
		if a.Mask&f.mask != 0 && (f.value < f.min || f.value > f.max) {
			return fmt.Errorf("%w: %s %d: must be %d to %d", verbs.ErrAttributes, f.name, f.value, f.min, f.max)
		}
	}
	path := a.Mask&verbs.MaskPath != 0
	switch {
	case a.Mask&verbs.MaskPathMTU != 0 && (!validMTU(a.PathMTU) || a.PathMTU > c.MTU):
		return fmt.Errorf("%w: path MTU of %d bytes at a port of %d", verbs.ErrAttributes, a.PathMTU, c.MTU)
	case path && c.Layer == verbs.LayerEthernet && !a.Path.Global:
		return fmt.Errorf("%w: on an Ethernet port the path needs a GID", verbs.ErrAttributes)
	case path && a.Path.Global && a.Path.SourceIndex != 0:
		return fmt.Errorf("%w: source GID index %d of a table of 1", verbs.ErrAttributes, a.Path.SourceIndex)
	}
	return nil
}

// setAttributes sets the attributes that are given. Both locks are held.
func (q *pair) setAttributes(a verbs.Attributes) {
	m, to := a.Mask, &q.attr
	set(m&verbs.MaskAccess, &to.Access, a.Access)
	set(m&verbs.MaskPath, &to.Path, a.Path)
	set(m&verbs.MaskPathMTU, &to.PathMTU, a.PathMTU)
	set(m&verbs.MaskTimeout, &to.Timeout, a.Timeout)
	set(m&verbs.MaskRetries, &to.Retries, a.Retries)
	set(m&verbs.MaskRNRRetries, &to.RNRRetries, a.RNRRetries)
	set(m&verbs.MaskReceivePSN, &to.ReceivePSN, a.ReceivePSN)
	set(m&verbs.MaskRNRTimer, &to.RNRTimer, a.RNRTimer)
	set(m&verbs.MaskSendPSN, &to.SendPSN, a.SendPSN)
	set(m&verbs.MaskRemote, &to.Remote, a.Remote)
}

// set sets an attribute that is given.
func set[T any](given verbs.Mask, to *T, value T) {
	if given != 0 {
		*to = value
	}
}
