package mptest

import (
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// recomposed changes the composition of both ends in the middle of the traffic, as a
// session does: fresh composites continue from the state that the old ones export.
func (s *Subject) recomposed(t failer) {
	for seed := range uint64(4) {
		old := s.bench(t, 200+seed, *s.Faults)
		noError(t, old.pair.Open(), "Open")
		for range 5 {
			_ = old.send(0)
			_ = old.send(1)
			_, err := old.pair.Run(time.Millisecond)
			noError(t, err, "seed %d: before the change", seed)
		}
		for end := range old.ends {
			err := old.pair.Do(end, func(x *microproto.Exec) { microproto.Raise(x, microproto.DrainSession, struct{}{}) })
			noError(t, err, "seed %d, end %d: DrainSession", seed, end)
		}
		next := s.bench(t, 300+seed, *s.Faults)
		s.handOver(t, old, next)
		old.close(t)
		noError(t, next.play(s.Quiet), "seed %d: after the change", seed)
		for end := range next.ends {
			l := next.load[end]
			must(t, l.left == 0, "seed %d, end %d: %d messages could not be sent (%d refusals)", seed, end, l.left,
				l.refused)
			s.arrived(t, seed, l.sent, next.load[1-end].got)
		}
		next.close(t)
	}
}

// handOver opens next with the state that old exports. The messages that have not arrived
// are sent again.
func (s *Subject) handOver(t failer, old, next *bench) {
	var states [2]microproto.HandoverState
	for end := range old.ends {
		from, to := old.ends[end], next.ends[end]
		must(t, from.Fingerprint() == to.Fingerprint(),
			"end %d: two compositions made alike have different fingerprints", end)
		for _, name := range from.Names() {
			e, ok := from.Protocol(name).(microproto.StateExporter)
			if !ok {
				continue
			}
			i := to.Protocol(name).(microproto.StateExporter)
			must(t, i.ImportState(foreign{}) != nil, "%s imports a state of another type", name)
			noError(t, i.ImportState(e.ExportState()), "%s: ImportState", name)
		}
		if e, ok := from.Endpoint().(microproto.Migratable); ok {
			n := len(old.load[1-end].sent)
			if s.Reliable {
				n = int(from.Endpoint().Arrivals())
			}
			next.load[1-end] = old.load[1-end].rest(n, s.Messages)
			e.Export(&states[end])
			noError(t, to.Endpoint().(microproto.Migratable).Import(&states[end]), "end %d: Import", end)
		}
	}
	noError(t, next.pair.Open(), "Open after the change")
	for end, c := range next.ends {
		if e, ok := c.Endpoint().(microproto.Migratable); ok {
			e.SetCredit(states[1-end].Stored, states[1-end].Credit)
		}
	}
}

// foreign is a state that no micro-protocol exports.
type foreign struct{}

// rest returns the load that remains when the first n messages have arrived at the other
// end: the others are sent again, before new ones, more messages in all.
func (l *load) rest(n, more int) *load {
	return &load{rand: l.rand, sent: l.sent[:n:n], again: l.sent[n:], got: l.got, left: len(l.sent) - n + more}
}
