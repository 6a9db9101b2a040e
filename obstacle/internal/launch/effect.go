package launch

import (
	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// effect is something that the decisions of a run ask for. The decisions of an event append effects to outputs, and the
// shell executes them in their order after the event.
type effect interface{ effect() }

type (
	// relax begins the time of the run. Peers relax from then on.
	relax struct{}

	// send queues a message to a peer. It is dropped if the queue is full.
	send struct {
		to  *member
		msg rendezvous.Message // may be a parcel
	}

	// welcome sends a process that it is a peer of the run, whose messages are read from then on. If that fails, an
	// event with refused has the reason.
	welcome struct {
		of  *member
		msg rendezvous.Welcome
	}

	// refuse ends the connection of a process that cannot take part, and tells it why.
	refuse struct {
		conn  connection
		why   string
		later bool // another attempt may succeed
	}

	// start starts a process for a peer. An event with started is the answer.
	start struct {
		of   *member
		seat int
	}

	// openRegister makes this process a keeper of the register that decides who leads the run. It is the only one in
	// the first term.
	openRegister struct{ first register.Term }

	// propose proposes the term that follows another one. An event with decided is the answer.
	propose struct{ base, want register.Term }

	// look asks the kernel about a silent peer. The answer is a sight, at the next tick.
	look struct{ at *member }

	// beginSteps begins again with the first time step. If they are suspended, blocks are dropped until their peers have
	// begun an epoch.
	beginSteps struct{ suspended bool }

	// collectSteps awaits the end of a time step, of which there are some copies, and then those of the steps after it.
	collectSteps struct {
		first  int
		copies []End
	}

	// displace drops the ends of time steps that a peer sends, as another one has its place. If back is true, it has the
	// place again.
	displace struct {
		of   *member
		back bool
	}

	// restartSteps drops the blocks of incomplete time steps until their peers have begun an epoch. An event with
	// restarted is the answer.
	restartSteps struct{ epoch int }

	// declareAnew accepts blocks of another partition.
	declareAnew struct{ problem.Partition }

	// passOn sends a keeper the blocks of some peers at the end of the time step that is the newest when they are sent.
	passOn struct {
		to    *member
		ranks []int
	}

	// disconnect closes the connection of a peer at once.
	disconnect struct{ of *member }

	// finish sends the messages that are queued for a peer whose part another process runs, and no more.
	finish struct{ of *member }

	// retire ends the connection to a peer. What its process sends later is not read. A process that this one has
	// started is ended, because it could write to the shared answer.
	retire struct{ of *member }

	// logged is a line of the log.
	logged struct {
		level  level
		text   string
		fields []any // keys and values in turn
	}

	// note is an instruction for the user.
	note struct{ text string }

	// updated changes the status of the run.
	updated struct{ change }

	// progress passes the progress of the run to its observer.
	progress struct{ Progress }

	// captured passes an iterate of the whole grid on.
	captured struct {
		u  []float64
		at Progress
	}

	// sampled passes values at some points of the grid on.
	sampled struct {
		of rendezvous.Sample
		u  []float64
		at Progress
	}
)

func (relax) effect()        {}
func (send) effect()         {}
func (welcome) effect()      {}
func (refuse) effect()       {}
func (start) effect()        {}
func (openRegister) effect() {}
func (propose) effect()      {}
func (look) effect()         {}
func (beginSteps) effect()   {}
func (collectSteps) effect() {}
func (displace) effect()     {}
func (restartSteps) effect() {}
func (declareAnew) effect()  {}
func (passOn) effect()       {}
func (disconnect) effect()   {}
func (finish) effect()       {}
func (retire) effect()       {}
func (logged) effect()       {}
func (note) effect()         {}
func (updated) effect()      {}
func (progress) effect()     {}
func (captured) effect()     {}
func (sampled) effect()      {}

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

func (o *outputs) send(to *member, msg rendezvous.Message) { o.add(send{to, msg}) }
func (o *outputs) change(c change)                         { o.add(updated{c}) }
func (o *outputs) debug(text string, fields ...any)        { o.add(logged{debugging, text, fields}) }
func (o *outputs) info(text string, fields ...any)         { o.add(logged{informing, text, fields}) }
func (o *outputs) warn(text string, fields ...any)         { o.add(logged{warning, text, fields}) }
