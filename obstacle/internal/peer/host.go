package peer

import (
	"runtime"
)

// host runs another peer in this process, which the launcher puts in the place of a lost one.
func (p *peer) host() {
	o := p.Options
	o.Rank, o.OwnProcess, o.Answer, o.Tracer = -1, false, nil, nil
	p.claim.Release() // the two peers share the processors of the host
	runtime.GOMAXPROCS(runtime.NumCPU())
	p.log.Info().Msg("running another peer in place of a lost one")
	p.hosted.Go(func() {
		if err := Run(p.hosting, o); err != nil {
			p.log.Warn().Err(err).Msg("the other peer of this process")
		}
	})
}
