package peer

import (
	"time"

	"github.com/p2pdc/p2pdc/internal/register"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// effect is something that the decisions of a peer ask for. The decisions of an event append effects to outputs, and the
// shell executes them in their order after the event.
type effect interface{ effect() }

type (
	// do begins a job in an epoch. Ended of an event is the answer, with the number.
	do struct {
		job    job
		number int
		epoch  int
	}

	// accept gives the newest work to the epoch that the peer enters.
	accept struct{}

	// supersede ends what waits in the epochs that the peer enters and works in, since a newer one has begun.
	supersede struct{}

	// abort closes the endpoint of an epoch, which ends every call that blocks on it.
	abort struct{ epoch int }

	// abandon ends the relaxation at once. The answer is the end of the job.
	abandon struct{}

	// quit ends the work in an epoch, and frees what it used.
	quit struct{ epoch int }

	// surrender makes an answer of the values that the peer has in an epoch, and of the reason why the run has failed.
	surrender struct {
		epoch int
		why   rendezvous.Lost
	}

	// stop has the peers agree on an early end of the relaxation, in this epoch and later ones.
	stop struct{}

	// send sends a message to the leader.
	send struct{ msg rendezvous.Message }

	// hangUp ends all that waits for the leader.
	hangUp struct{}

	// ask asks processes for the place that this peer has in the run, all at once. Asked of an event is the answer.
	ask struct {
		addresses []string
		within    time.Duration
		epoch     int           // the newest that the peer knows
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

func (do) effect()        {}
func (accept) effect()    {}
func (supersede) effect() {}
func (abort) effect()     {}
func (abandon) effect()   {}
func (quit) effect()      {}
func (surrender) effect() {}
func (stop) effect()      {}
func (send) effect()      {}
func (hangUp) effect()    {}
func (ask) effect()       {}
func (use) effect()       {}
func (detect) effect()    {}
func (propose) effect()   {}
func (learn) effect()     {}
func (reach) effect()     {}
func (lead) effect()      {}
func (logged) effect()    {}

// job is work that takes time. The shell does it beside the decisions.
type job int

const (
	toOpen     job = iota + 1 // the endpoint of an epoch, and to report it to the leader
	toResume                  // from a kept iterate, or from the beginning
	toRepair                  // the block, which was lost with another peer
	toConnect                 // to the neighbours
	toPrepare                 // the block and the sessions
	toAnnounce                // to the leader that the peer is ready
	toRelax
	toAwait  // the end of the relaxations of other peers of this process
	toKeep   // the values, and to make the answer
	toDrain  // the ends of time steps to the leader, which come before the answer
	toAnswer // the leader
)

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
