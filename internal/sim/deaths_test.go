package sim

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/simulate/cluster"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
	"github.com/stretchr/testify/require"
)

var (
	deathSeed  = flag.Uint64("death.seed", 1, "first seed of TestDeaths")
	deathCount = flag.Uint64("death.count", 40, "number of seeds of TestDeaths")
)

// deaths is a run that loses peers.
type deaths struct {
	simulate.Config
	what  string
	alone *simulate.Result // without losses
}

// drawDeaths returns the run of a seed: the problem, partition, scheme and method of the scenario of that seed on the
// model of a cluster. nil: it has one peer.
func drawDeaths(seed uint64) (*deaths, error) {
	s, err := Draw(seed)
	if err != nil || s.Peers() == 1 {
		return nil, err
	}
	if s.Problem.Evolution != nil {
		s.Problem.Evolution = nil
	}
	s.Balance, s.Reconfigure = false, false
	r := rand.New(rand.NewPCG(seed, 0x646561746873))
	m := &cluster.Model{Name: "drawn", Sites: []string{"here"}, Networks: []cluster.Network{{
		Name: "eth", Kind: cluster.Ether, Rate: pick(r, 125e6, 1.25e9), MTU: pick(r, 400, 1500, 9000), Queue: 512 << 10,
		Latency: time.Duration(5+r.IntN(200)) * time.Microsecond, Jitter: time.Duration(r.IntN(50)) * time.Microsecond,
		Loss: pick(r, 0, 0, 0, 0.01),
	}}}
	for _, c := range s.Costs {
		m.Hosts = append(m.Hosts, cluster.Host{Class: cluster.Class{
			Name: "drawn", Cores: 2, Relaxation: min(2e6, 1e9/float64(c.Point)), Slow: c.Slow, Jitter: pick(r, 0, 0.2),
		}})
	}
	c := s.config(0, nil)
	d := &deaths{Config: simulate.Config{Model: m, Solver: c, Seed: seed, Recover: &simulate.Recovery{}}}
	d.what = fmt.Sprintf("%s, %d peers %v, %s, %s, tolerance %.0e, at most %d sweeps", s.What, s.Peers(),
		s.Partition.Cuts, s.method(), s.Scheme.Name(), s.Tolerance, s.MaxSweeps)
	if d.alone, err = simulate.Run(context.Background(), d.Config); err != nil {
		return d, fmt.Errorf("%s, without losses: %w", d.what, err)
	}
	d.draw(r)
	d.what += fmt.Sprintf("; suspect %v, %d spares, events %+v", d.Recover.Suspect, d.Recover.Spares, m.Events)
	return d, nil
}

// draw draws deaths: several at once, one after the other, and during recoveries; and silences that end.
func (d *deaths) draw(r *rand.Rand) {
	whole := d.alone.Virtual + 1
	d.Recover.Spares = pick(r, 0, 1, 100)
	d.Recover.Suspect = 1 + whole/time.Duration(pick(r, 2, 10, 50))
	d.Until = 100*whole + time.Hour
	for range 1 + r.IntN(3) {
		at := time.Duration(r.Int64N(int64(whole)))
		all := r.Perm(len(d.Model.Hosts))
		for _, rank := range all[:1+r.IntN(len(all)-1)] {
			e := cluster.Event{At: at, Rank: rank, Lost: true}
			switch r.IntN(4) {
			case 0: // before the other loss is noticed
				e.At += time.Duration(r.Int64N(int64(d.Recover.Suspect)))
			case 1: // during the recovery
				e.At += d.Recover.Suspect + time.Duration(r.Int64N(int64(pick(r, 500*time.Microsecond, 35*time.Millisecond))))
			}
			switch r.IntN(4) {
			case 0:
				e.Lost, e.Killed = false, true
			case 1:
				e.Until = e.At + 1 + time.Duration(r.Int64N(2*int64(d.Recover.Suspect)))
			}
			d.Model.Events = append(d.Model.Events, e)
		}
	}
}

// check checks the end of the run: with an answer within the tolerance, after a recovery from every loss. It may fail
// only if all ranks were silent.
func (d *deaths) check(r *simulate.Result, err error) error {
	if err != nil {
		silent := map[int]bool{}
		for _, e := range d.Model.Events {
			silent[e.Rank] = silent[e.Rank] || e.At <= r.Virtual
		}
		for rank := range d.Model.Hosts {
			if !silent[rank] || !strings.Contains(err.Error(), "the last machine is lost") {
				return err
			}
		}
		return nil
	}
	p := d.Solver.Problem
	e, err := verify.Evaluate(p, r.U, nil)
	switch {
	case err != nil:
		return err
	case r.Reason == iterate.Converged && !(e.RelativeResidual <= d.Solver.Tolerance):
		return fmt.Errorf("false termination: the residual is %v", e.RelativeResidual)
	case r.Reason != iterate.Converged && (r.Reason != iterate.ReachedSweeps || d.Solver.MaxSweeps == 0):
		return fmt.Errorf("the run ended because it %v, after %v; without losses after %v", r.Reason, r.Virtual, d.alone.Virtual)
	}
	for _, l := range r.Losses {
		if l.Resumed == 0 && r.Reason == iterate.Converged || l.Resumed != 0 && l.Resumed < l.Noticed+l.Repair {
			return fmt.Errorf("not recovered: %+v", l)
		}
	}
	return d.checkNoticed(r)
}

// checkNoticed checks that every silence that was long enough before the end was noticed.
func (d *deaths) checkNoticed(r *simulate.Result) error {
	for _, e := range d.Model.Events {
		if e.Until > 0 && e.Until-e.At <= d.Recover.Suspect || e.At+d.Recover.Suspect+time.Millisecond > r.Virtual {
			continue
		}
		noticed := false
		for _, l := range r.Losses {
			noticed = noticed || l.Rank == e.Rank && l.Noticed >= e.At
		}
		if !noticed {
			return fmt.Errorf("%+v was not noticed", e)
		}
	}
	return nil
}

// Random runs that lose peers end, and end with an answer within the tolerance.
func TestDeaths(t *testing.T) {
	if testing.Short() {
		*deathCount = min(*deathCount, 10)
	}
	losses, during, failed, methods := 0, 0, 0, map[string]int{}
	for seed := *deathSeed; seed < *deathSeed+*deathCount; seed++ {
		d, err := drawDeaths(seed)
		if d == nil {
			require.NoError(t, err)
			continue
		}
		var r *simulate.Result
		if err == nil {
			var failure error
			r, failure = simulate.Run(context.Background(), d.Config)
			if failure != nil {
				failed++
			}
			err = d.check(r, failure)
		}
		if err == nil && seed%16 == 1 {
			one := d.Config
			one.Threads = 1
			if again, _ := simulate.Run(context.Background(), one); !reflect.DeepEqual(r, again) {
				err = fmt.Errorf("another result on one thread")
			}
		}
		require.NoError(t, err,
			"seed %d: %s\nreplay: go test ./internal/sim -run 'TestDeaths$' -count=1 -v -death.seed=%d -death.count=1", seed,
			d.what, seed)
		if *deathCount == 1 {
			t.Logf("%s: %v, %+v", d.what, r.Virtual, r.Losses)
		}
		for i, l := range r.Losses {
			if i > 0 && l.Resumed == r.Losses[i-1].Resumed && l.Noticed > r.Losses[i-1].Noticed {
				during++
			}
		}
		losses += len(r.Losses)
		methods[d.Solver.Method.Name+" "+d.Solver.Scheme.Name()]++
	}
	t.Logf("%d seeds: %d losses, %d of them during a recovery; %d runs lost all peers; %v", *deathCount, losses, during,
		failed, methods)
	if *deathCount >= 40 {
		require.Positive(t, losses)
		require.Positive(t, during)
		for _, name := range []string{problem.SOR, problem.Multigrid} {
			require.Positive(t, methods[name+" "+iterate.Synchronous().Name()])
		}
		require.Positive(t, methods[" "+iterate.Asynchronous().Name()])
	}
}
