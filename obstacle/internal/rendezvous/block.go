package rendezvous

import "github.com/p2pdc/p2pdc/solver/problem"

// Block says which box the chunks of a stream that follow are of, where planes move from
// peer to peer: StreamSolution, or StreamStep for the end of a time step. The receiver
// checks it.
type Block struct {
	Stream Stream `json:"stream"`
	Lo     [3]int `json:"lo"`
	Hi     [3]int `json:"hi"`
}

// Kind is KindBlock.
func (Block) Kind() Kind { return KindBlock }

// BlockOf names a box.
func BlockOf(s Stream, b problem.Box) Block { return Block{Stream: s, Lo: b.Lo, Hi: b.Hi} }

// Box is the box that is named; any numbers may stand there.
func (b Block) Box() problem.Box { return problem.Box{Lo: b.Lo, Hi: b.Hi} }
