package peer

import (
	"runtime"
)

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
	p.hosted.Go(func() {
		if err := Run(p.process, o); err != nil {
			p.log.Warn().Err(err).Msg("the other peer of this process")
		}
	})
}
