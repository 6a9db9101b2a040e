package iterate

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
)

// PanicError is a panic in the code of a Block or of FixedPoint.Block. It is the error of the peer or of the function that called that
// code. Panics of other code pass.
type PanicError struct {
	Function string // "Relax", "Start" or "Block"
	Rank     Rank   // of the block; −1: it is not known
	Value    any    // of the panic
	Place    string // file and line; "": unknown
}

// Error implements error.
func (e *PanicError) Error() string {
	text := "iterate: " + e.Function
	if e.Rank >= 0 {
		text += fmt.Sprintf(" of rank %d", e.Rank)
	}
	text += fmt.Sprintf(" panicked: %v", e.Value)
	if e.Place != "" {
		text += " (" + e.Place + ")"
	}
	return text
}

// caught sets err if a PanicError is passing, which then ends. It has to be deferred.
func caught(err *error) {
	switch v := recover().(type) {
	case nil:
	case *PanicError:
		*err = errors.Join(*err, v)
	default:
		panic(v)
	}
}

// named gives a panic that is passing the type PanicError. It has to be deferred around a call of a user's function.
func named(function string, rank Rank) {
	v := recover()
	if v == nil {
		return
	}
	if already, is := v.(*PanicError); is {
		panic(already)
	}
	panic(&PanicError{Function: function, Rank: rank, Value: v, Place: panicked()})
}

// panicked returns the place of the panic that the caller recovers: the caller of the runtime's function panic.
func panicked() string {
	pcs := make([]uintptr, 64)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(0, pcs)])
	for passing := false; ; {
		f, more := frames.Next()
		within := strings.HasPrefix(f.Function, "runtime.")
		if passing && !within {
			return fmt.Sprintf("%s:%d", f.File[strings.LastIndexByte(f.File, '/')+1:], f.Line)
		}
		passing = passing || f.Function == "runtime.gopanic"
		if !more {
			return ""
		}
	}
}

// unranked is the rank of a block that is repaired.
const unranked Rank = -1

// guarded is a block whose panics are PanicErrors.
type guarded struct {
	Block
	rank Rank
}

func (g guarded) Start(x []float64) {
	defer named("Start", g.rank)
	g.Block.Start(x)
}

func (g guarded) Relax(next, x, ghosts []float64) {
	defer named("Relax", g.rank)
	g.Block.Relax(next, x, ghosts)
}
