package peer

import "github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"

// account returns how the peer has spent its time in an epoch; nil before the first relaxation, or if the launcher does
// not want it.
func (p *peer) account(a *rendezvous.Assign) *rendezvous.Account {
	s := p.progress.Load()
	if s == nil || !p.welcome.Spec.Reports {
		return nil
	}
	out := &rendezvous.Account{
		Epoch: a.Epoch, Sweep: uint64(s.Sweep), Seconds: s.Elapsed.Seconds(), Relaxing: s.Busy.Seconds(),
		Waiting: s.Waiting.Seconds(),
	}
	for i := range s.Reads {
		r := &s.Reads[i]
		out.Reads = append(out.Reads, rendezvous.Reads{
			Rank: int(r.Rank), Faces: r.Faces, Sum: r.Sum, Newest: r.Newest, Ages: r.Ages[:],
		})
	}
	return out
}
