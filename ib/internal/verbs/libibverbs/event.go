//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"syscall"
	"unsafe"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
)

// takeEvent takes an asynchronous event, if there is one. A queue pair cannot be destroyed
// before its event is acknowledged, so that the event's element is valid until then.
func (d *device) takeEvent() (verbs.Event, syscall.Errno) {
	if d.lockOpen() != nil {
		return verbs.Event{}, errnoClosed
	}
	defer d.mu.Unlock()
	c := new(cAsyncEvent)
	call := &call{fn: d.lib[getAsyncEvent], errnoAt: d.lib[errnoLocation]}
	call.args[0], call.args[1] = d.context, uintptr(unsafe.Pointer(c))
	call.do()
	if int32(call.result) != 0 {
		return verbs.Event{}, syscall.Errno(call.errno)
	}
	e := verbs.Event{}
	switch c.eventType {
	case eventPortActive, eventPortErr:
		e.Kind = verbs.EventPortActive
		if c.eventType == eventPortErr {
			e.Kind = verbs.EventPortError
		}
		e.Port = int(int32(c.element))
	case eventDeviceFatal:
		e.Kind = verbs.EventDeviceFatal
	case eventQPFatal, eventQPReqErr, eventQPAccessErr:
		e.Kind = verbs.EventPairFatal
		e.Pair = deref[cQP](c.element).qpNum
	}
	_ = d.lib.invoke(ackAsyncEvent, uintptr(unsafe.Pointer(c)))
	return e, 0
}
