package member

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// Effect is something that the decisions of a peer ask for. The decisions of an event append effects to outputs, and the
// shell executes them in their order after the event.
type Effect interface{ effect() }

type (
	// Do begins a job in an epoch. Ended of an event is the answer, with the number.
	Do struct {
		Job    Job
		Number int
		Epoch  int
	}

	// Accept gives the newest work to the epoch that the peer enters.
	Accept struct{}

	// Supersede ends what waits in the epochs that the peer enters and works in, since a newer one has begun.
	Supersede struct{}

	// Abort closes the endpoint of an epoch, which ends every call that blocks on it.
	Abort struct{ Epoch int }

	// Abandon ends the relaxation at once. The answer is the end of the job.
	Abandon struct{}

	// Quit ends the work in an epoch, and frees what it used.
	Quit struct{ Epoch int }

	// Surrender makes an answer of the values that the peer has in an epoch, and of the reason why the run has failed.
	Surrender struct {
		Epoch int
		Why   rendezvous.Lost
	}

	// Stop has the peers agree on an early end of the relaxation, in this epoch and later ones.
	Stop struct{}

	// Send sends a message to the leader.
	Send struct{ Message rendezvous.Message }

	// HangUp ends all that waits for the leader.
	HangUp struct{}

	// BeginSteps begins the time steps of an epoch with the values of its work, which is all that the peer holds then.
	BeginSteps struct{}

	// Hold holds the values at the end of the time step that has ended, whose relaxation then goes on. Drop drops those of
	// the oldest step. The answer, which comes at once if the step was abandoned, is the end of the job.
	Hold struct {
		Number int
		Drop   bool
	}

	// SendEnd sends the values at the end of a time step. Ended of an event is the answer, with the number.
	SendEnd struct {
		Number int
		Step   int
	}

	// Ask asks processes for the place that this peer has in the run, all at once. Asked of an event is the answer.
	Ask struct {
		Addresses []string
		Within    time.Duration
		Epoch     int           // the newest that the peer knows
		Steps     []int         // whose ends the peer holds, and continues to hold
		Silence   time.Duration // of the host of the process that is found, after which it counts as lost
	}

	// Use replaces the connection to the leader by the one to the process that was found at an address. If the peer has
	// ended, closed of an event is the answer.
	Use struct{ Address string }

	// Detect closes the connection to the leader when its host has been silent for some time.
	Detect struct{ Silence time.Duration }

	// Propose proposes the term that follows another one. Decided of an event is the answer.
	Propose struct {
		Base, Want register.Term
		Within     time.Duration
	}

	// Learn has the register of this process, if it keeps one, accept a term that was decided.
	Learn struct {
		Term   register.Term
		Leader bool // sent by its leader, which this process therefore reaches
	}

	// Reach states whether this process has a connection to the leader. If so, its register votes for no other one.
	Reach struct{ Is bool }

	// Lead begins to lead the run in this process.
	Lead struct{ Term register.Term }

	// Logged is a line of the log.
	Logged struct {
		Level  Level
		Text   string
		Fields []any // keys and values in turn
	}
)

func (Do) effect()         {}
func (Accept) effect()     {}
func (Supersede) effect()  {}
func (Abort) effect()      {}
func (Abandon) effect()    {}
func (Quit) effect()       {}
func (Surrender) effect()  {}
func (Stop) effect()       {}
func (Send) effect()       {}
func (HangUp) effect()     {}
func (BeginSteps) effect() {}
func (Hold) effect()       {}
func (SendEnd) effect()    {}
func (Ask) effect()        {}
func (Use) effect()        {}
func (Detect) effect()     {}
func (Propose) effect()    {}
func (Learn) effect()      {}
func (Reach) effect()      {}
func (Lead) effect()       {}
func (Logged) effect()     {}

// Job is work that takes time. The shell does it beside the decisions.
type Job int

const (
	ToOpen     Job = iota + 1 // the endpoint of an epoch
	ToReport                  // the endpoint to the leader
	ToResume                  // from a kept iterate, or from the beginning
	ToRepair                  // the block, which was lost with another peer
	ToConnect                 // to the neighbours
	ToPrepare                 // the block and the sessions
	ToAnnounce                // to the leader that the peer is ready
	ToRelax
	ToAwait  // the end of the relaxations of other peers of this process
	ToKeep   // the values, and to make the answer
	ToAnswer // the leader
	ToHold   // see Hold
	ToSend   // see SendEnd
)

// Level is the severity of a line of the log.
type Level int

const (
	Debugging Level = iota
	Informing
	Warning
)

// outputs collects the effects of an event.
type outputs struct{ effects []Effect }

func (o *outputs) add(e Effect) { o.effects = append(o.effects, e) }

// take returns the effects that were not taken yet.
func (o *outputs) take() []Effect {
	out := o.effects
	o.effects = nil
	return out
}

func (o *outputs) debug(text string, fields ...any) { o.add(Logged{Debugging, text, fields}) }
func (o *outputs) info(text string, fields ...any)  { o.add(Logged{Informing, text, fields}) }
func (o *outputs) warn(text string, fields ...any)  { o.add(Logged{Warning, text, fields}) }
