// Package cluster describes machines and the networks between them, as a model that
// runs can be simulated on: how fast a machine relaxes, what the protocol costs its
// processor, what a network does to frames. A Description is a family of clusters; its
// Model is the one of so many machines. Nothing here takes time or happens: package
// virtual does that.
package cluster

import "time"

// Description is a cluster as people write it down. Rates are in units per second, times
// are durations, sizes bytes.
type Description struct {
	Name  string
	About string
	// Sources say where the figures come from, one line each.
	Sources  []string
	Classes  []Class
	Networks []Network
	Sites    []Site    // in the order in which ranks fill them
	WAN      []WANLink // between sites; every two sites of a run need one
	Events   []Event
}

// Class is a kind of machine. A machine runs one peer, unless Group.Together says more.
type Class struct {
	Name string
	// Cores are its processors: with one, the protocol takes its time from relaxing; with
	// more it has a core of its own.
	Cores int
	// Relaxation is how many points a thread relaxes per second by projected Richardson.
	Relaxation float64
	// Copies says that sending and receiving take the relaxing thread's time whatever the
	// number of cores: the machine does nothing else meanwhile.
	Copies  bool
	Send    Cost
	Receive Cost
	// Jitter is the standard deviation of a relaxation's time, relative to its mean
	// (log-normal).
	Jitter float64
	// Straggle is how often a relaxation is held up, by chance per second, and for how long.
	Straggle Straggle
	// Slow is the factor by which it relaxes slower than Relaxation says; 0: 1.
	Slow float64
	// Part is what each part of a sweep takes beside its points: a peer relaxes its block in
	// parts, faces first, and looks at the network after each.
	Part time.Duration
	// Crowding is by how much longer a relaxation takes for every other core of the machine
	// that relaxes meanwhile, relative: they share caches and memory.
	Crowding float64
	Wake     Wake
}

// Wake is the price of blocking: a thread that has waited for longer than After for something
// to come is at work Takes later than one that was still looking.
type Wake struct{ After, Takes time.Duration }

// Cost is the processor time of the protocol, at one end.
type Cost struct {
	Message time.Duration // per message
	Segment time.Duration // per segment of it
	Byte    float64       // nanoseconds per byte of payload
}

// Of is what a message of that many bytes in that many segments costs.
func (c Cost) Of(segments, bytes int) time.Duration {
	return c.Message + time.Duration(segments)*c.Segment + time.Duration(c.Byte*float64(bytes))
}

// Straggle is a pause that befalls a relaxing thread.
type Straggle struct {
	PerSecond float64 // on average
	For       time.Duration
}

// Kinds of networks.
const (
	Ether = "ether"
	IB    = "ib" // the adapter recovers, controls flow and congestion: nothing is lost
)

// Network joins the machines of one site by a switch: every machine has a line to it, full
// duplex, and every port of the switch a queue towards its machine.
type Network struct {
	Name    string
	Kind    string
	Rate    float64       // bytes per second on a machine's line, each way
	Latency time.Duration // one way, adapter to adapter, of the first bit through an idle switch
	Queue   int           // bytes that a port of the switch holds; more is lost (ether), or waits at its sender (ib)
	MTU     int           // largest payload of a frame, IP and UDP headers in it (ether); a segment's largest length (ib)
	Frame   int           // bytes on the line around each frame's payload
	Loss    float64       // of a frame, by chance
	Jitter  time.Duration // added to the latency of a frame at random, uniform; order is kept
	// Backplane is what all ports of the switch carry together, bytes per second; 0: no bound.
	Backplane float64
	Shaper    Shaper // ether
}

// Shaper bounds what each machine sends, as the system of a host does whose rate is limited: a
// token bucket. Of what was not sent, Burst bytes may be sent at once later; Queue bytes wait
// for their turn, and what does not fit is lost at once: unlike a line that is full it makes
// nobody wait. Rate 0: there is none.
type Shaper struct {
	Rate         float64 // bytes per second
	Burst, Queue int
}

// Site is a place with a network of its own.
type Site struct {
	Name    string
	Network string
	// Machines are its machines in order of rank: see Model.
	Machines []Group
}

// Group is so many machines of a class; with Count 0 as many as are asked for: groups of
// that kind share evenly what the others leave.
type Group struct {
	Class string
	Count int
	// Together puts all ranks of the group on one machine, whose cores they share; otherwise
	// each has a machine of its own.
	OneMachine bool
}

// Wide is a line between two sites, both ways, with a queue at either end.
type WANLink struct {
	Between [2]string
	Rate    float64       // bytes per second, each way
	Latency time.Duration // one way, beyond those of the sites' own networks
	Queue   int           // bytes
	Loss    float64       // of a frame, by chance
	Jitter  time.Duration
}

// Event is something that happens to a cluster while it works. Exactly one of Slow, Lost and
// Cut is set.
type Event struct {
	At    time.Duration // since the first relaxation
	Until time.Duration // 0: for good
	Rank  int           // the machine, where it is one
	Slow  float64       // it relaxes so many times slower
	Lost  bool          // it falls silent
	Cut   [2]string     // nothing passes between these two sites; with one name, the site's network is cut in halves
}
