package main

import (
	"context"
	"fmt"
	"math"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
)

// exchangesN is the grid of the table of exchanges, and exchangesMost the bound of a run.
const (
	exchangesN    = 64
	exchangesMost = 200
)

// exchanges counts what the Schwarz method needs to solve the membrane to 1e-6: exchanges
// with the neighbours and, beside them, the work of a peer, in sweeps over its own box.
// Nothing of it is a time, so it does not depend on the machine.
func exchanges(ctx context.Context, b *bench) error {
	targets := map[[3]int]float64{{2, 2, 2}: 15, {4, 4, 4}: 20}
	for _, parts := range [][3]int{{2, 2, 2}, {4, 4, 4}} {
		for _, coarse := range []int{-1, 0} {
			for _, overlap := range []int{0, 1, 2, 4, 8} {
				for _, work := range []int{1, 2} {
					if err := ctx.Err(); err != nil {
						return err
					}
					m := solver.MethodConfig{Name: solver.Schwarz, Overlap: overlap, Work: work, Coarse: coarse}
					o, err := countExchanges(parts, m)
					if err != nil {
						return err
					}
					line := exchangeLine(parts, m, o)
					if coarse == 0 && overlap == 4 {
						line = line.atMost(targets[parts])
					}
					b.report.add(line)
				}
			}
		}
	}
	return nil
}

func exchangeLine(parts [3]int, m solver.MethodConfig, o solver.Outcome) measurement {
	correction := "no coarse correction"
	if m.Coarse == 0 {
		correction = "coarse 1/64"
	}
	name := fmt.Sprintf("exchanges at %d³, %d peers, overlap %d, %s, %d cycles of multigrid each",
		exchangesN, parts[0]*parts[1]*parts[2], m.Overlap, correction, m.Work)
	line := over("schwarz", name, "", []float64{float64(o.Sweeps)})
	note := fmt.Sprintf("work %.0f sweeps", o.Work)
	if o.Reason != solver.Converged {
		note += ", not solved then"
	}
	return line.because(note)
}

// countExchanges plays a run in one process, messages arriving at once.
func countExchanges(parts [3]int, m solver.MethodConfig) (solver.Outcome, error) {
	b, err := problems.Lookup("membrane")
	if err != nil {
		return solver.Outcome{}, err
	}
	p, err := b.Make([3]int{exchangesN, exchangesN, exchangesN})
	if err != nil {
		return solver.Outcome{}, err
	}
	part, err := solver.GridOf(p.N, parts)
	if err != nil {
		return solver.Outcome{}, err
	}
	peers := make([]solver.Peer, part.Peers())
	for r := range peers {
		peers[r], err = solver.New(solver.Config{
			Problem: p, Partition: part, Rank: solver.Rank(r), Scheme: solver.Synchronous(), Method: m,
			Tolerance: 1e-6, MaxSweeps: exchangesMost,
		})
		if err != nil {
			return solver.Outcome{}, err
		}
	}
	if err := takeTurns(peers); err != nil {
		return solver.Outcome{}, err
	}
	out := peers[0].Outcome()
	for _, q := range peers { // the peer that does most
		out.Work = math.Max(out.Work, q.Outcome().Work)
	}
	return out, nil
}

// takeTurns lets the peers go on in turn, each until it waits, until all are done.
func takeTurns(peers []solver.Peer) error {
	for done := 0; done < len(peers); {
		done = 0
		moved := false
		for r, p := range peers {
			for op := p.Next(0); op.Kind != solver.OpWait; op = p.Next(0) {
				if op.Kind == solver.OpDone {
					done++
					break
				}
				moved = true
				if err := obey(peers, solver.Rank(r), op); err != nil {
					return err
				}
			}
		}
		if !moved && done < len(peers) {
			return fmt.Errorf("schwarz: %d of %d peers wait for each other", len(peers)-done, len(peers))
		}
	}
	return nil
}

// obey does an operation of peer r.
func obey(peers []solver.Peer, r solver.Rank, op solver.Op) error {
	switch op.Kind {
	case solver.OpRelax:
		peers[r].Relax(op)
	case solver.OpSend:
		buf := make([]byte, op.Bytes)
		peers[r].Pack(op, buf)
		return peers[op.To].Halo(0, r, op.Tag, op.Label, buf)
	case solver.OpAgree:
		return peers[op.To].Agree(0, r, op.Message)
	case solver.OpFail:
		return op.Err
	}
	return nil
}
