package peer

import "sync"

// together is what the peers of one process share.
type together struct {
	turn sync.Mutex // see runner.Config.Turn

	mu        sync.Mutex
	iterating int
	none      chan struct{} // closed when none iterates; nil before the first
	over      bool          // one has taken part to the end of the run
}

// finish states that a peer has taken part to the end of the run.
func (t *together) finish() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
}

// finished reports whether a peer has taken part to the end of the run.
func (t *together) finished() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.over
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
