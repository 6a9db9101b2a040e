package launch

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// slab returns planes lo to hi of the rehearsal's grid.
// ranges returns a box as Filled holds it.
func ranges(b problem.Box) (out [][2]int) {
	for a := range b.Lo {
		out = append(out, [2]int{b.Lo[a], b.Hi[a]})
	}
	return out
}

func slab(lo, hi int) problem.Box { return problem.Box{Lo: [3]int{0, 0, lo}, Hi: [3]int{4, 4, hi}} }

// declare sends the box of the player's block.
func (p *player) declare(b problem.Box) {
	_ = p.conn.Send(rendezvous.Block{Stream: rendezvous.StreamSolution, Box: b})
}

func balanced(p *Plan) { p.Balance = true }

func TestMovedBlocks(t *testing.T) {
	r := rehearse(t, balanced)
	all := r.join()
	require.True(t, all[0].spec.Balance)
	for rank, box := range []problem.Box{slab(0, 3), slab(3, 4)} {
		all[rank].box = box
		all[rank].declare(box)
		all[rank].block()
		all[rank].result(Converged, "", -1)
	}
	o := r.end()
	require.Equal(t, Converged, o.Reason)
	require.Equal(t, []problem.Box{slab(0, 3), slab(3, 4)}, o.Boxes)
	for i, v := range o.U {
		require.Equal(t, float64(1+4*i/len(o.U)/3), v)
	}
}

// Boxes are checked before any value is stored.
func TestOwnership(t *testing.T) {
	wide := slab(2, 4)
	wide.Lo[0] = 1
	p := Plan{Problem: &problem.Problem{Dimension: 3, N: [3]int{4, 4, 4}}, Spec: rendezvous.Spec{Balance: true}}
	var err error
	p.Partition, err = problem.Slabs(p.Problem.N, 2, nil)
	require.NoError(t, err)
	all := func(int) bool { return true }
	for name, c := range map[string]struct {
		box  problem.Box
		want string
	}{
		"as it was":    {slab(2, 4), ""},
		"a gap":        {slab(3, 4), ""},
		"overlap":      {slab(1, 4), "overlap those of peer 0"},
		"outside":      {slab(3, 5), "planes 3 to 5"},
		"negative":     {slab(-1, 1), "planes -1 to 1"},
		"empty":        {slab(3, 3), "planes 3 to 3"},
		"upside down":  {slab(4, 2), "planes 4 to 2"},
		"too many":     {slab(0, 4), "at most 3 are allowed"},
		"another axis": {wide, "of a peer that had"},
	} {
		t.Run(name, func(t *testing.T) {
			claims := newOwnership(&p)
			require.Equal(t, []problem.Box{slab(0, 4)}, claims.unowned(all), "nothing is declared")
			require.NoError(t, claims.declare(0, slab(0, 2)))
			err := claims.declare(1, c.box)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				require.Equal(t, []problem.Box{slab(2, 4)}, claims.unowned(all), "nothing is declared for peer 1")
				return
			}
			require.NoError(t, err)
			require.ErrorContains(t, claims.declare(1, c.box), "declared twice")
			if lo := c.box.Lo[2]; lo > 2 {
				require.Equal(t, []problem.Box{slab(2, lo)}, claims.unowned(all))
			} else {
				require.Empty(t, claims.unowned(all))
			}
			require.Equal(t, []problem.Box{slab(0, c.box.Lo[2])}, claims.unowned(func(rank int) bool { return rank == 1 }))
			claims.reset()
			require.NoError(t, claims.declare(1, slab(1, 4)))
		})
	}
	p.Balance = false
	claims := newOwnership(&p)
	require.Equal(t, slab(2, 4), claims.box(1))
	require.ErrorContains(t, claims.declare(1, slab(2, 4)), "no planes move")
}

// After an invalid or missing box of one peer, the launcher keeps the block of the other and names the fault.
func TestInvalidBoxes(t *testing.T) {
	for name, c := range map[string]struct {
		fault func(p *player)
		want  string
	}{
		"too many": {func(p *player) { p.declare(slab(0, 4)) }, "at most 3 are allowed"},
		"too late": {func(p *player) {
			p.declare(slab(3, 4))
			p.chunk(rendezvous.StreamSolution, 0, 8)
			p.declare(slab(3, 4))
		}, "part of the block has already arrived"},
		"not at all": {func(p *player) { p.chunk(rendezvous.StreamSolution, 0, 8) }, "invalid part of its block"},
		"of a step":  {func(p *player) { _ = p.conn.Send(rendezvous.Block{Stream: rendezvous.StreamStep, Box: slab(3, 4)}) }, "part of the block has already arrived"},
		"out of box": {func(p *player) { p.declare(slab(3, 4)); p.chunk(rendezvous.StreamSolution, 0, 8*17) }, "invalid part of its block"},
		"a gap": {func(p *player) {
			p.box = slab(3, 4)
			p.declare(p.box)
			p.block()
			p.result(Converged, "", -1)
		}, "no peer sent planes 2 to 3"},
	} {
		t.Run(name, func(t *testing.T) {
			r := rehearse(t, balanced)
			all := r.join()
			all[0].declare(slab(0, 2))
			all[0].block()
			all[0].result(Converged, "", -1)
			c.fault(all[1])
			o := r.end()
			require.Equal(t, Failed, o.Reason)
			require.Contains(t, o.Failure, c.want)
			require.Equal(t, 1.0, o.U[0], "the block of the other peer is kept")
			require.Len(t, o.Filled, 1)
			want := map[bool]problem.Box{true: slab(2, 3), false: slab(2, 4)}[name == "a gap"]
			require.Equal(t, ranges(want), o.Filled[0].Box)
		})
	}
}
