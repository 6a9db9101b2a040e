package mptest

import "github.com/p2pdc/p2pdc/microproto"

// Frames is a FrameSource that counts its frames: Acquired equals Released when all of them were
// released. It is for one goroutine.
type Frames struct {
	Headroom           int
	Acquired, Released int
	// Limit, if positive, bounds the frames in use. Beyond it Acquire returns an empty frame, as
	// a link without free blocks does.
	Limit int
	// Scarce makes the frames scarce; see microproto.Buffer.
	Scarce bool
}

// Acquire implements microproto.FrameSource.
func (s *Frames) Acquire(n int) microproto.Frame {
	if s.Limit > 0 && s.Acquired-s.Released >= s.Limit {
		return microproto.Frame{}
	}
	s.Acquired++
	b := microproto.NewBuffer(make([]byte, s.Headroom+n), func(*microproto.Buffer) { s.Released++ })
	b.Scarce = s.Scarce
	return b.Frame(0, s.Headroom, n)
}
