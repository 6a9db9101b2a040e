package peer

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
)

// effect is something that the decisions of a peer ask for. The decisions of an event append effects to outputs, and the
// shell executes them in their order after the event.
type effect interface{ effect() }

type (
	// ask asks processes for the place that this peer has in the run, all at once. Asked of an event is the answer.
	ask struct {
		addresses []string
		within    time.Duration
		silence   time.Duration // of the host of the process that is found, after which it counts as lost
	}

	// use replaces the connection to the leader by the one to the process that was found at an address. If the peer has
	// ended, closed of an event is the answer.
	use struct{ address string }

	// detect closes the connection to the leader when its host has been silent for some time.
	detect struct{ silence time.Duration }

	// propose proposes the term that follows another one. Decided of an event is the answer.
	propose struct {
		base, want register.Term
		within     time.Duration
	}

	// learn has the register of this process, if it keeps one, accept a term that was decided.
	learn struct {
		term   register.Term
		leader bool // sent by its leader, which this process therefore reaches
	}

	// reach states whether this process has a connection to the leader. If so, its register votes for no other one.
	reach struct{ is bool }

	// lead begins to lead the run in this process.
	lead struct{ term register.Term }

	// logged is a line of the log.
	logged struct {
		level  level
		text   string
		fields []any // keys and values in turn
	}
)

func (ask) effect()     {}
func (use) effect()     {}
func (detect) effect()  {}
func (propose) effect() {}
func (learn) effect()   {}
func (reach) effect()   {}
func (lead) effect()    {}
func (logged) effect()  {}

// level is the severity of a line of the log.
type level int

const (
	debugging level = iota
	informing
	warning
)

// outputs collects the effects of an event.
type outputs struct{ effects []effect }

func (o *outputs) add(e effect) { o.effects = append(o.effects, e) }

// take returns the effects that were not taken yet.
func (o *outputs) take() []effect {
	out := o.effects
	o.effects = nil
	return out
}

func (o *outputs) debug(text string, fields ...any) { o.add(logged{debugging, text, fields}) }
func (o *outputs) info(text string, fields ...any)  { o.add(logged{informing, text, fields}) }
func (o *outputs) warn(text string, fields ...any)  { o.add(logged{warning, text, fields}) }
