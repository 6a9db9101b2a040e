package microproto

import "errors"

// Errors of the kernel and of endpoints. Compare with errors.Is.
var (
	ErrBusy    = errors.New("microproto: no credit or no room now; try again later")
	ErrNothing = errors.New("microproto: nothing to receive")
	ErrShort   = errors.New("microproto: destination too short")
	ErrPool    = errors.New("microproto: message pool exhausted")
	// ErrNotOpen: the composite has not been opened, or has been closed.
	ErrNotOpen = errors.New("microproto: composite is not open")
	// ErrReentrant: an entry point was called from a handler of the same composite.
	ErrReentrant = errors.New("microproto: entry point called from inside the composite")
	// ErrLimit: a bound was exceeded where dropping would not keep the composite correct
	// (raise depth, event queue), or a declaration exceeds a bound.
	ErrLimit = errors.New("microproto: limit exceeded")
	// ErrTooLong: header and payload do not fit the MTU.
	ErrTooLong = errors.New("microproto: message longer than the MTU")
	// ErrMessage: a message was used after its end, or by a caller that does not own it.
	ErrMessage = errors.New("microproto: message used after its end or by a caller that does not own it")
)
