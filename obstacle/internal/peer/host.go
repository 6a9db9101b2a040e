package peer

import (
	"runtime"
	"sync"
)

// hosted are the other peers that a process runs. After wait has begun, no further one is run.
type hosted struct {
	mu      sync.Mutex
	over    bool
	running sync.WaitGroup
}

// run runs f in a goroutine, unless wait has begun.
func (h *hosted) run(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over {
		h.running.Go(f)
	}
}

// wait returns when all have ended.
func (h *hosted) wait() {
	h.mu.Lock()
	h.over = true
	h.mu.Unlock()
	h.running.Wait()
}

// host runs another peer in this process, for a rank.
func (p *peer) host(rank int) {
	o := p.Options
	o.OrSpare = false
	o.Rank, o.OwnProcess, o.Answer, o.rejoins, o.guest = rank, false, nil, false, true
	if p.welcome.Spec.Parts <= 1 { // else they take turns
		p.hosting.Store(true)
		p.claim.Release() // the two peers share the processors of the host
		runtime.GOMAXPROCS(runtime.NumCPU())
	}
	p.log.Info().Int("for", rank).Msg("running another peer in this process")
	p.hosted.run(func() {
		if err := Run(p.process, o); err != nil {
			p.log.Warn().Err(err).Msg("the other peer of this process")
		}
	})
}
