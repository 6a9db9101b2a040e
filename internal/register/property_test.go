package register

import (
	"flag"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var seeds = flag.Int("seeds", 1500, "seeds of the simulated network; -short uses a tenth")

// At most one term of each number is decided, it was proposed, and numbers grow by one. Once faults stop, one process
// with retries replaces the term.
func TestNetwork(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newNetwork(t, func(n int) int { return uniform(t, n) })
		for range uniform(t, 400) {
			w.step()
		}
		w.settle()
	})
}

// uniform draws a number below n bit by bit, since rapid prefers small numbers.
func uniform(t *rapid.T, n int) int {
	drawn := 0
	for range bits.Len(uint(n - 1)) {
		drawn *= 2
		if rapid.Bool().Draw(t, "bit") {
			drawn++
		}
	}
	return drawn % n
}

// Histories of compare-and-swap are linearizable. Over all seeds, every kind of outcome occurs.
func TestLinearizable(t *testing.T) {
	n := *seeds
	if testing.Short() {
		n /= 10
	}
	var won, lost, later, unknown, terms int
	for seed := range n {
		r := rand.New(rand.NewPCG(uint64(seed), 0))
		w := newNetwork(t, r.IntN)
		for range 300 {
			w.step()
		}
		w.settle()
		require.True(t, porcupine.CheckOperations(model(w.decided[0]), history(w.calls)), "seed %d", seed)
		for _, c := range w.calls {
			switch {
			case c.end == 0:
				unknown++
			case c.result.Equal(c.want):
				won++
			case c.result.Number == c.want.Number:
				lost++
			default:
				later++
			}
		}
		terms += len(w.decided)
	}
	t.Logf("%d won, %d lost, %d learnt a later term, %d unknown, %d terms", won, lost, later, unknown, terms)
	for _, count := range []int{won, lost, later, unknown} {
		require.Greater(t, count, n/10)
	}
}

// attempt is a compare-and-swap. It succeeds if the newest term is base.
type attempt struct{ base, want Term }

// read is that a term is or was decided.
type read struct{ term Term }

// outcome is whether the wanted term was decided.
type outcome int

const (
	unknown outcome = iota
	success
	failure
)

// history returns the operations of calls. A result is also a read. A call that was abandoned may take effect at any
// later time.
func history(calls []*operation) []porcupine.Operation {
	var out []porcupine.Operation
	for _, c := range calls {
		op := porcupine.Operation{ClientId: len(out), Input: attempt{c.base, c.want}, Call: 2 * c.begin}
		op.Output, op.Return = unknown, math.MaxInt64
		if c.end > 0 {
			op.Return = 2*c.end + 1
			if c.result.Equal(c.want) {
				op.Output = success
			} else if c.result.Number == c.want.Number {
				op.Output = failure
			}
		}
		out = append(out, op)
		if c.end > 0 {
			out = append(out, porcupine.Operation{ClientId: len(out), Input: read{c.result}, Call: op.Call, Return: op.Return})
		}
	}
	return out
}

// model returns the specification of the register. Its state is the list of decided terms. The newest determines the
// others, since all wanted terms differ, and each has one base.
func model(first Term) porcupine.Model {
	same := func(a, b []Term) bool {
		return len(a) == len(b) && a[len(a)-1].Equal(b[len(b)-1])
	}
	return porcupine.Model{
		Init:  func() any { return []Term{first} },
		Equal: func(a, b any) bool { return same(a.([]Term), b.([]Term)) },
		Step: func(state, input, output any) (bool, any) {
			terms := state.([]Term)
			newest := terms[len(terms)-1]
			if r, is := input.(read); is {
				return r.term.Number <= len(terms) && r.term.Equal(terms[r.term.Number-1]), state
			}
			a := input.(attempt)
			replaced := a.base.Equal(newest)
			allowed := output == unknown || replaced == (output == success)
			if replaced {
				state = append(terms[:len(terms):len(terms)], a.want)
			}
			return allowed, state
		},
	}
}
