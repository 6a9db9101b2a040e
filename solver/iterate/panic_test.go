package iterate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/solver/iterate"
)

// faulty is a block of two values that panics where it is told to.
type faulty struct {
	where   string
	relaxed int
}

func (f *faulty) Values() int                     { return 2 }
func (f *faulty) Neighbours() []iterate.Neighbour { return nil }

func (f *faulty) Start([]float64) {
	if f.where == "Start" {
		panic("a mistake")
	}
}

func (f *faulty) Relax(next, x, _ []float64) {
	if f.relaxed++; f.where == "Relax" && f.relaxed > 1 {
		x[7] = 1
	}
	for i := range next {
		next[i] = x[i]/2 + 1
	}
}

// A panic in a user's code is an error of the peer that ran it, with its place.
func TestPanicsOfABlockAreErrors(t *testing.T) {
	for _, where := range []string{"Block", "Start", "Relax"} {
		t.Run(where, func(t *testing.T) {
			f := iterate.FixedPoint{Unknowns: 2, Block: func([]int, iterate.Rank) (iterate.Block, error) {
				if where == "Block" {
					panic("a mistake")
				}
				return &faulty{where: where}, nil
			}}
			requirePanic := func(err error) {
				t.Helper()
				var panicked *iterate.PanicError
				require.ErrorAs(t, err, &panicked)
				require.Equal(t, where, panicked.Function)
				require.Regexp(t, `^iterate: `+where+`( of rank 0)? panicked: `+
					`(a mistake|runtime error: index out of range \[7\] with length 2) \(panic_test\.go:\d+\)$`, err)
			}
			x := make([]float64, 2)
			_, _, err := f.Residual(x)
			requirePanic(err)
			if where != "Relax" {
				requirePanic(f.Start(x))
			}
			if where == "Block" {
				requirePanic(f.CheckCuts([]int{0, 2}))
			} else {
				_, _, _, err = iterate.Repair(must(f.Part([]int{0, 2}, 0)), nil, 0, 9, nil)
				requirePanic(err)
			}
			c := iterate.Config{Peers: 1, Scheme: iterate.Synchronous(), Tolerance: 1e-9}
			p, err := f.NewPeer(c, []int{0, 2}, nil)
			if where != "Relax" {
				requirePanic(err)
				return
			}
			require.NoError(t, err)
			for now := time.Duration(0); ; now++ {
				switch op := p.Next(now); op.Kind {
				case iterate.OpRelax:
					p.Relax(op)
				default:
					require.Equal(t, iterate.OpFail, op.Kind)
					requirePanic(op.Err)
					require.Equal(t, op, p.Next(now+1), "it stays so")
					return
				}
			}
		})
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
