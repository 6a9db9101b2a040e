package microproto

import "fmt"

// MaxHeaderBytes bounds the header of one composite.
const MaxHeaderBytes = 256

// maxLocalAttrs bounds the local attributes of one composite, maxHoldBits the
// hold bits, maxHandlers the handlers of one event, maxReasons the drop reasons
// told apart (further ones count as "other").
const (
	maxLocalAttrs = 32
	maxHoldBits   = 32
	maxHandlers   = 256
	maxReasons    = 64
)

// Limits bound everything a composite may use. Zero fields take the defaults.
type Limits struct {
	Messages   int // messages alive at once (default 65536); past it ErrPool
	Timers     int // timers pending (default 65536); past it RaiseAfter returns 0, counted
	RaiseDepth int // nested raises (default 32); past it the composite fails
	Queue      int // enqueued events (default 65536); past it the composite fails
	Outputs    int // outputs not yet drained (default 65536); past it ErrBusy or a counted drop
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
