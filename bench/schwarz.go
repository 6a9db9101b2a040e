package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/p2pdc/p2pdc/problems"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// exchangesN is the grid of the table of exchanges, and exchangesMost the bound of a run.
const (
	exchangesN    = 64
	exchangesMost = 200
)

// exchanges counts what the Schwarz method needs to solve the membrane to 1e-6: exchanges
// with the neighbours and, beside them, the work of a peer, in sweeps over its own box.
// A peer does one cycle of multigrid between two exchanges. Nothing of it is a time, so it
// does not depend on the machine.
func exchanges(ctx context.Context, b *bench) error {
	targets := map[[3]int]float64{{2, 2, 2}: 15, {4, 4, 4}: 20}
	for _, parts := range [][3]int{{2, 2, 2}, {4, 4, 4}} {
		for _, coarse := range []int{-1, 0} {
			for _, overlap := range []int{0, 1, 2, 4, 8} {
				if err := ctx.Err(); err != nil {
					return err
				}
				m := problem.MethodConfig{Name: problem.Schwarz, Overlap: overlap, Work: 1, Coarse: coarse}
				o, err := countExchanges(parts, m)
				if err != nil {
					return err
				}
				count, work := exchangeLines(parts, m, o)
				if coarse == 0 && overlap == 4 {
					count = count.atMost(targets[parts])
				}
				b.report.add(count, work)
			}
		}
	}
	if err := b.asynchronousExchanges(ctx); err != nil {
		return err
	}
	return b.chosenWork(ctx)
}

// asynchronousExchanges tells what the coarse correction saves where nobody waits: boxes
// of 16³ points, and a network whose way takes a third of a relaxation.
func (b *bench) asynchronousExchanges(ctx context.Context) error {
	for _, parts := range []int{2, 3, 4} {
		var count, seconds [2][]float64
		for seed := range min(b.rounds, 2) {
			for i, coarse := range []int{-1, 0} {
				if err := ctx.Err(); err != nil {
					return err
				}
				v, err := experiment{
					n: 16 * parts, peers: parts * parts * parts, boxes: true, near: 50 * time.Microsecond, tol: 1e-6, seed: uint64(seed), scheme: fixed(iterate.Asynchronous()),
					method: problem.MethodConfig{Name: problem.Schwarz, Overlap: 4, Work: 1, Coarse: coarse},
				}.run()
				if err != nil {
					return err
				}
				count[i], seconds[i] = append(count[i], v.iterate), append(seconds[i], v.seconds)
			}
		}
		for i, correction := range []string{"no coarse correction", "coarse correction"} {
			name := fmt.Sprintf("%d³, %d peers, overlap 4, asynchronous, %s: ", 16*parts, parts*parts*parts, correction)
			b.report.add(over("schwarz", name+"relaxations of the peer that makes most", "relaxations", count[i]), over("schwarz", name+"virtual time, connecting included", "s", seconds[i]))
		}
	}
	return nil
}

// exchangeLines are the exchanges of a run and, where it converged, its work.
func exchangeLines(parts [3]int, m problem.MethodConfig, o iterate.Outcome) (count, work measurement) {
	correction := "no coarse correction"
	if m.Coarse == 0 {
		correction = "coarse 1/64"
	}
	name := fmt.Sprintf("%d³, %d peers, overlap %d, %s: ", exchangesN, parts[0]*parts[1]*parts[2], m.Overlap, correction)
	if o.Reason != iterate.Converged {
		name = "not solved, " + name
	}
	return over("schwarz", name+"exchanges with the neighbours", "exchanges", []float64{float64(o.Sweeps)}),
		over("schwarz", name+"work of the peer that does most", "sweeps of its box", []float64{o.Work})
}

// countExchanges plays a run in one process, messages arriving at once.
func countExchanges(parts [3]int, m problem.MethodConfig) (iterate.Outcome, error) {
	b, err := problems.Lookup("membrane")
	if err != nil {
		return iterate.Outcome{}, err
	}
	p, err := b.Make([3]int{exchangesN, exchangesN, exchangesN})
	if err != nil {
		return iterate.Outcome{}, err
	}
	part, err := problem.GridOf(p.N, parts)
	if err != nil {
		return iterate.Outcome{}, err
	}
	peers := make([]problem.Peer, part.Peers())
	for r := range peers {
		peers[r], err = solver.New(problem.Config{
			Problem: p, Partition: part, Rank: iterate.Rank(r), Scheme: iterate.Synchronous(), Method: m,
			Tolerance: 1e-6, MaxSweeps: exchangesMost,
		})
		if err != nil {
			return iterate.Outcome{}, err
		}
	}
	if err := takeTurns(peers); err != nil {
		return iterate.Outcome{}, err
	}
	out := peers[0].Outcome()
	for _, q := range peers { // the peer that does most
		out.Work = math.Max(out.Work, q.Outcome().Work)
	}
	return out, nil
}

// takeTurns lets the peers go on in turn, each until it waits, until all are done.
func takeTurns(peers []problem.Peer) error {
	for done := 0; done < len(peers); {
		done = 0
		moved := false
		for r, p := range peers {
			for op := p.Next(0); op.Kind != iterate.OpWait; op = p.Next(0) {
				if op.Kind == iterate.OpDone {
					done++
					break
				}
				moved = true
				if err := obey(peers, iterate.Rank(r), op); err != nil {
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
func obey(peers []problem.Peer, r iterate.Rank, op iterate.Op) error {
	switch op.Kind {
	case iterate.OpRelax:
		peers[r].Relax(op)
	case iterate.OpSend:
		buf := make([]byte, op.Bytes)
		peers[r].Pack(op, buf)
		return peers[op.To].Halo(0, r, op.Tag, op.Label, buf)
	case iterate.OpAgree:
		return peers[op.To].Agree(0, r, op.Message)
	case iterate.OpFail:
		return op.Err
	}
	return nil
}
