// Package cluster describes machines and the networks between them as a model for simulations: how
// fast a machine relaxes, what the protocol costs its processor, and what a network does to frames.
// A Description is a family of clusters, and its Model is the one with so many machines. Package
// simulate runs peers on a model.
package cluster

import "time"

// Description is a cluster as a user describes it. Rates are per second, sizes are in bytes.
type Description struct {
	Name  string
	About string
	// Sources are the origins of the figures, one line each.
	Sources  []string
	Classes  []Class
	Networks []Network
	Sites    []Site    // in the order in which ranks fill them
	WAN      []WANLink // between sites; every two sites of a run need one link
	Events   []Event
}

// Class is a kind of machine. A machine runs one peer, unless Group.OneMachine is set.
type Class struct {
	Name string
	// Cores is the number of processors. With one, the protocol takes its time from relaxing; with
	// more it has a core of its own.
	Cores int
	// Relaxation is the number of points that a thread relaxes per second by projected Richardson.
	Relaxation float64
	// Copies makes sending and receiving take the relaxing thread's time whatever the number of
	// cores.
	Copies  bool
	Send    Cost
	Receive Cost
	// Jitter is the standard deviation of a relaxation's time, relative to its mean
	// (log-normal).
	Jitter float64
	// Straggle is how often a relaxation is interrupted by chance, and for how long.
	Straggle Straggle
	// Slow is a factor on the time of relaxations; 0: 1.
	Slow float64
	// Part is the time of each part of a sweep beside that of its points. A peer relaxes its block
	// in parts, faces first, and polls the network after each.
	Part time.Duration
	// Crowding is the relative increase of a relaxation's time for every other core of the machine
	// that relaxes at the same time, since cores share caches and memory.
	Crowding float64
	Wake     Wake
}

// Wake is the cost of blocking. A thread that has waited for longer than After starts Takes later
// than one that was still polling.
type Wake struct{ After, Takes time.Duration }

// Cost is the protocol's processor time at one end.
type Cost struct {
	Message time.Duration // per message
	Segment time.Duration // per segment of it
	Byte    float64       // nanoseconds per byte of payload
}

// Of returns the cost of a message of so many bytes in so many segments.
func (c Cost) Of(segments, bytes int) time.Duration {
	return c.Message + time.Duration(segments)*c.Segment + time.Duration(c.Byte*float64(bytes))
}

// Straggle is a random pause of a relaxing thread.
type Straggle struct {
	PerSecond float64 // on average
	For       time.Duration
}

// Kinds of networks.
const (
	Ether = "ether"
	IB    = "ib" // the adapter recovers losses and controls flow and congestion
)

// Network joins the machines of one site by a switch. Each machine has a full-duplex line to the
// switch, and each port of the switch has a queue to its machine.
type Network struct {
	Name    string
	Kind    string
	Rate    float64       // bytes per second on a machine's line, each way
	Latency time.Duration // one way, adapter to adapter, of the first bit through an idle switch
	Queue   int           // bytes that a port of the switch holds; more is lost (ether), or waits at its sender (ib)
	MTU     int           // largest payload of a frame, headers of IP and UDP included (ether); largest segment (ib)
	Frame   int           // bytes on the line around each frame's payload
	Loss    float64       // of a frame, by chance
	Jitter  time.Duration // largest random addition to a frame's latency, uniform; frames stay in order
	// Backplane bounds what all ports of the switch carry together, in bytes per second; 0: no bound. What it cannot
	// carry at once waits in the queues of all ports.
	Backplane float64
	Shaper    Shaper // ether only
}

// Shaper bounds the rate of each machine by a token bucket, as an operating system with a rate limit
// does. Burst bytes that were not sent earlier may be sent at once. Queue bytes may wait, and more
// is lost at once. Rate 0: there is no shaper.
type Shaper struct {
	Rate         float64 // bytes per second
	Burst, Queue int
	// Outside places the shaper beyond the machine, as in a hypervisor or a router: the machine does
	// not know what waits there. Otherwise that fills the send queue of the machine, which then waits
	// as at a full line.
	Outside bool
}

// Site is a place with its own network.
type Site struct {
	Name    string
	Network string
	// Machines are groups in the order of ranks: see Model.
	Machines []Group
}

// Group is a number of machines of a class. Groups with Count 0 share evenly the machines that the
// others leave.
type Group struct {
	Class string
	Count int
	// OneMachine puts all ranks of the group on one machine, whose cores they share. Otherwise each
	// has a machine.
	OneMachine bool
}

// WANLink is a link between two sites, both ways, with a queue at either end.
type WANLink struct {
	Between [2]string
	Rate    float64       // bytes per second, each way
	Latency time.Duration // one way, in addition to the latencies of the sites' networks
	Queue   int           // bytes
	Loss    float64       // of a frame, by chance
	Jitter  time.Duration
}

// Event changes a cluster during a run. Exactly one of Slow, Lost and Killed is set, or the event is a cut.
type Event struct {
	At     time.Duration // since the first relaxation
	Until  time.Duration // 0: to the end of the run
	Rank   int           // the machine, for Slow, Lost and Killed
	Slow   float64       // factor on the machine's relaxation time
	Lost   bool          // the machine falls silent
	Killed bool          // the peer of the machine is killed, and the machine closes its connections
	Cut    [2]string     // nothing passes between these two sites; with one name, the halves of that site are separated
	Apart  []int         // nothing passes between the machines of these ranks and all others
	// Launcher makes Lost and Killed events of the launcher and its machine, not of a rank. With Apart, or alone, the
	// launcher is on the side of Apart.
	Launcher bool
}

// IsCut reports whether the event separates machines.
func (e *Event) IsCut() bool {
	return e.Cut != [2]string{} || len(e.Apart) > 0 || e.Launcher && !e.Lost && !e.Killed && e.Slow == 0
}
