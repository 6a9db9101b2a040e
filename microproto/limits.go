package microproto

import "fmt"

// MaxHeaderBytes bounds the header of one composite.
const MaxHeaderBytes = 256

// Fixed bounds of one composite.
const (
	maxLocalAttrs = 32
	maxHoldBits   = 32
	maxHandlers   = 256 // of one event
	maxReasons    = 64  // for drops; further ones count as "other"
)

// Limits bound the resources of a composite. Zero fields take the defaults.
type Limits struct {
	Messages   int // live messages (default 65536); beyond it ErrPool
	Timers     int // pending timers (default 65536); beyond it RaiseAfter returns 0, which is counted
	RaiseDepth int // nested raises (default 32); beyond it the composite fails
	Queue      int // enqueued events (default 65536); beyond it the composite fails
	Outputs    int // outputs not yet drained (default 65536); beyond it ErrBusy or a counted drop
}

func (l Limits) withDefaults() (Limits, error) {
	for _, f := range []struct {
		name  string
		value *int
		def   int
	}{
		{"Messages", &l.Messages, 65536},
		{"Timers", &l.Timers, 65536},
		{"RaiseDepth", &l.RaiseDepth, 32},
		{"Queue", &l.Queue, 65536},
		{"Outputs", &l.Outputs, 65536},
	} {
		if *f.value < 0 {
			return l, fmt.Errorf("microproto: limit %s is %d; it must not be negative", f.name, *f.value)
		}
		if *f.value == 0 {
			*f.value = f.def
		}
	}
	return l, nil
}
