package driver

import "github.com/p2pdc/p2pdc/microproto"

// prompt is a link that can be asked without waiting. See ether.Link.TryRecv.
type prompt interface {
	TryRecv(batch []microproto.Frame) (int, error)
}

// joiner is a link that can leave frames together. See ether.Link.RecvTrains.
type joiner interface {
	RecvTrains(batch []microproto.Frame) (int, error)
}

// pumpBatch is how many frames Pump takes from the link at a time, pumpRounds how
// often it asks, so that it returns also under a flood.
const (
	pumpBatch  = 64
	pumpRounds = 8
)

// Pump takes in what has come over the link and runs timers that are due, on the
// caller's goroutine. Nothing has to call it. Whoever computes without pause does, so
// that news does not wait until the receiver's goroutine gets a processor: on a
// machine whose cores are all busy that may take a time slice. It never blocks; it is
// for one goroutine at a time.
func (n *Node) Pump() {
	link, ok := n.config.Link.(prompt)
	if !ok {
		return
	}
	for range pumpRounds {
		k, err := link.TryRecv(n.pumped[:])
		if err != nil {
			return // closed, or the receiver's goroutine will find out
		}
		n.mu.Lock()
		now := n.now()
		if k == 0 && (n.closed || n.core.Deadline() > now) {
			n.mu.Unlock()
			return
		}
		for i := range n.pumped[:k] {
			if n.closed {
				n.pumped[i].Release()
			} else {
				n.core.Frame(now, n.pumped[i])
			}
			n.pumped[i] = microproto.Frame{}
		}
		if !n.closed {
			n.core.Advance(now)
		}
		n.leave()
		if k < pumpBatch {
			return
		}
	}
}
