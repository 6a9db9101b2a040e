//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"fmt"
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

func (p *pair) Modify(a verbs.Attributes) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	from, err := p.query()
	if err != nil {
		return err
	}
	to := a.State
	if a.Mask&verbs.MaskState == 0 {
		to = from
	}
	d := p.domain.device
	if err := verbs.CheckTransition(p.config.Transport, from, to, a.Mask); err != nil {
		return fmt.Errorf("%s: pair %#x: %w", d.name, p.number, err)
	}
	c, err := encode(&a)
	if err != nil {
		return err
	}
	errno := d.lib.invoke(modifyQP, p.c, uintptr(unsafe.Pointer(c)), uintptr(a.Mask))
	switch {
	case errno == syscall.EINVAL:
		return fmt.Errorf("%w: %s: pair %#x (%v) from %v to %v: %w",
			verbs.ErrAttributes, d.name, p.number, p.config.Transport, from, to, errno)
	case errno != 0:
		return d.opError(fmt.Sprintf("move pair %#x from %v to %v", p.number, from, to), errno)
	}
	if a.Mask&verbs.MaskState != 0 {
		p.state.Store(uint32(a.State))
	}
	return nil
}

// encode converts attributes to C's layout.
func encode(a *verbs.Attributes) (*cQPAttr, error) {
	c := &cQPAttr{
		qpState: int32(a.State), rqPSN: a.ReceivePSN, sqPSN: a.SendPSN, destQPNum: a.Remote,
		accessFlags: uint32(a.Access), portNum: uint8(a.Port),
		maxRdAtomic: a.InitiatedReads, maxDestRdAtomic: a.PendingReads,
		minRNRTimer: a.RNRTimer, timeout: a.Timeout, retryCnt: a.Retries, rnrTry: a.RNRRetries,
	}
	if a.Mask&verbs.MaskPathMTU != 0 {
		if c.pathMTU = mtuCode(a.PathMTU); c.pathMTU == 0 {
			return nil, fmt.Errorf("%w: path MTU of %d bytes: must be 256, 512, 1024, 2048 or 4096",
				verbs.ErrAttributes, a.PathMTU)
		}
	}
	if a.Mask&verbs.MaskPort != 0 && (a.Port < 1 || a.Port > 255) {
		return nil, fmt.Errorf("%w: port %d", verbs.ErrAttributes, a.Port)
	}
	for _, n := range []struct {
		mask  verbs.Mask
		value uint32
	}{{verbs.MaskRemote, a.Remote}, {verbs.MaskReceivePSN, a.ReceivePSN}, {verbs.MaskSendPSN, a.SendPSN}} {
		if a.Mask&n.mask != 0 && n.value>>24 != 0 {
			return nil, fmt.Errorf("%w: %v %#x has more than 24 bits", verbs.ErrAttributes, n.mask, n.value)
		}
	}
	if a.Mask&verbs.MaskPath != 0 {
		if err := encodePath(&c.ah, a); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func encodePath(c *cAHAttr, a *verbs.Attributes) error {
	c.dlid = a.Path.LID
	c.portNum = uint8(max(a.Port, 1)) // the path uses the pair's port
	if !a.Path.Global {
		return nil
	}
	if a.Path.SourceIndex < 0 || a.Path.SourceIndex > 255 {
		return fmt.Errorf("%w: source GID index %d", verbs.ErrAttributes, a.Path.SourceIndex)
	}
	c.isGlobal, c.dgid = 1, a.Path.Destination.As16()
	c.sgidIndex, c.hopLimit = uint8(a.Path.SourceIndex), a.Path.HopLimit
	return nil
}
