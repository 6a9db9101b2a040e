package peer

import "sync"

// together is what the peers of one process share.
type together struct {
	turn sync.Mutex // see runner.Config.Turn

	mu        sync.Mutex
	iterating int
	none      chan struct{} // closed when none iterates; nil before the first
}

// begin states that a peer iterates, until it calls end.
func (t *together) begin() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.iterating++; t.iterating == 1 {
		t.none = make(chan struct{})
	}
}

// end states that a peer does not iterate any more. The channel is closed when no other one does.
func (t *together) end() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.iterating--; t.iterating == 0 {
		close(t.none)
	}
	return t.none
}
