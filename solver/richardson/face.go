package richardson

import (
	"encoding/binary"
	"math"

	"github.com/p2pdc/p2pdc/internal/kernel"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// face is the boundary to one neighbour: the peer's outermost layer, the ghosts beyond it, and the channel to
// the neighbour.
type face struct {
	*iterate.Channel
	to  problem.Neighbour
	own kernel.Box // own points of the face, local indices

	base, ghost int    // padded index of the first own point, and of its ghost
	count       [2]int // inner and outer loop
	stride      [2]int
	packed      []byte // halo with label packedAs, packed ahead; there is none if packedAs is 0
	packedAs    uint64

	loadBeyond load // load beyond the cut, received last
	loadSent   load // load of this side, sent last
	loadSentAt iterate.Iteration
	migration  migration
	backOff    backOff
}

// backOff determines when the next move may be proposed at a cut.
type backOff struct {
	sweeps  iterate.Iteration // in the run
	windows int               // of the speed sampler
	factor  int               // of the back-off, 1 after the first move, 0 before
	lastUp  bool              // the last proposed move was up
}

// begin starts the back-off after a proposal.
func (r *backOff) begin(sweeps iterate.Iteration, windows int, up bool) {
	if r.factor > 0 && up != r.lastUp {
		r.factor *= 2
	}
	r.factor, r.lastUp = max(1, min(r.factor, maxBackOff)), up
	r.sweeps, r.windows = sweeps+iterate.Iteration(r.factor*backOffSweeps), windows+r.factor*backOffWindows
}

func (r *backOff) expired(sweeps iterate.Iteration, windows int) bool {
	return sweeps >= r.sweeps && windows >= r.windows
}

func newFace(l kernel.Layout, n problem.Neighbour, s iterate.Scheme) *face {
	f := &face{Channel: iterate.NewChannel(n.Rank, n.FaceBytes, s), to: n}
	f.place(l)
	return f
}

// place computes the indices of the face in a block with a layout.
func (f *face) place(l kernel.Layout) {
	a, ghost := f.to.Axis, -1
	if f.own = f.to.Layer(l); f.to.Side > 0 {
		ghost = l.N[a]
	}
	at := f.own.Lo
	f.base = l.Index(at[0], at[1], at[2])
	at[a] = ghost
	f.ghost = l.Index(at[0], at[1], at[2])
	stride := [3]int{1, l.Row, l.Plane}
	inner, outer := 0, 2
	switch a {
	case 0:
		inner = 1
	case 2:
		outer = 1
	}
	f.count = [2]int{l.N[inner], l.N[outer]}
	f.stride = [2]int{stride[inner], stride[outer]}
}

// packAhead packs the halo that will be sent with a label, while its values are in the caches.
func (f *face) packAhead(label uint64, src []float64) {
	if len(f.packed) != f.to.FaceBytes {
		f.packed = make([]byte, f.to.FaceBytes)
	}
	f.packedAs = label
	f.pack(f.packed, src, f.base)
}

// pack writes the layer of src parallel to the face whose first point is at base, [z][y][x], little endian.
func (f *face) pack(dst []byte, src []float64, base int) {
	for o := range f.count[1] {
		at := base + o*f.stride[1]
		if f.stride[0] == 1 {
			kernel.PutFloats(dst, src[at:at+f.count[0]])
			dst = dst[8*f.count[0]:]
			continue
		}
		for range f.count[0] {
			binary.LittleEndian.PutUint64(dst, math.Float64bits(src[at]))
			dst = dst[8:]
			at += f.stride[0]
		}
	}
}

// unpack reads values written by pack, in pieces of whole values, into the layer of dst whose first point is at base.
func (f *face) unpack(dst []float64, pieces [][]byte, base int) {
	row, from := base, 0 // the first point of the row in progress, and how many of its points are done
	for _, data := range pieces {
		for len(data) >= 8 {
			n := min(f.count[0]-from, len(data)/8)
			at := row + from*f.stride[0]
			if f.stride[0] == 1 {
				kernel.ReadFloats(dst[at:at+n], data)
				data = data[8*n:]
			} else {
				for range n {
					dst[at] = math.Float64frombits(binary.LittleEndian.Uint64(data))
					data = data[8:]
					at += f.stride[0]
				}
			}
			if from += n; from == f.count[0] {
				row, from = row+f.stride[1], 0
			}
		}
	}
}
