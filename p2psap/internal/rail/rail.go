package rail

import (
	"errors"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap/path"
)

// ErrNoReason is the error of a link that went down without giving a reason.
var ErrNoReason = errors.New("the link gave no reason")

// Link is what a node needs of a microproto.Link: everything but the transfer of frames.
type Link interface {
	microproto.FrameSource
	Caps(m microproto.Mode) microproto.Caps
	Offer(peer string) ([]byte, error)
	Accept(remote []byte) (microproto.LinkAddr, error)
}

// Rail is one link of a node.
type Rail struct {
	Number  int
	Network path.Network
	Link    Link
	Window  Window
	Compare bool // sessions use a path over it only once it is known to be faster than the base rail
	// Standby: its paths connect, and sessions use them, only while the base path to the peer is down. Synchronous:
	// asynchronous sessions use its paths only then.
	Standby, Synchronous bool
	Err                  error // why it is down; nil: it is up
}

// Carries reports whether the rail carries sessions of a mode.
func (r *Rail) Carries(m microproto.Mode) bool { return r.Link.Caps(m).MTU > 0 }

// Release makes the link give up the connection with an address.
func (r *Rail) Release(addr microproto.LinkAddr) {
	if l, ok := r.Link.(interface{ Forget(microproto.LinkAddr) }); ok && addr != 0 {
		l.Forget(addr)
	}
}

// Binding is the round of a path that a channel uses.
type Binding struct {
	Path  *Path // nil: the base rail
	Rail  *Rail
	Round uint32
	Addr  microproto.LinkAddr // of the other end; 0 on the base rail
	Over  bool                // the round is over: nothing passes
}
