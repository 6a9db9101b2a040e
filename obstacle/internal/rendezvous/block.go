package rendezvous

import "github.com/p2pdc/p2pdc/solver/problem"

// Block names the box of the chunks that follow in StreamSolution or StreamStep, if planes move between peers. The
// receiver checks it.
type Block struct {
	Stream Stream `json:"stream"`
	Lo     [3]int `json:"lo"`
	Hi     [3]int `json:"hi"`
}

// BlockOf returns the message that names a box.
func BlockOf(s Stream, b problem.Box) Block { return Block{Stream: s, Lo: b.Lo, Hi: b.Hi} }

// Box returns the box, which is not checked.
func (b Block) Box() problem.Box { return problem.Box{Lo: b.Lo, Hi: b.Hi} }
