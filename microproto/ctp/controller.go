package ctp

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Controller is a congestion control algorithm alone: how much may be in flight.
// Everything else (holding segments back, finding out what was lost, sending it
// again) is done by the rows of Table I around it, in both inter-cluster Ethernet
// columns. Amounts are in a unit that the column chooses: bytes in the synchronous
// one, packets in the asynchronous one. A Controller does no I/O, reads no clock,
// allocates nothing after Open and is used by one composite only.
//
// Reno may be embedded by one that differs in a few methods. ControllerRow
// makes an optional row of a Controller.
type Controller interface {
	// Open begins, with the initial window or with what another one leaves.
	Open(s ControllerStart)
	// Acked: data was acknowledged for the first time, outside recovery.
	Acked(p Progress)
	// Congested: an episode of losses begins; raised once for all losses of one
	// window of data. inFlight is RFC 5681's FlightSize before the loss was noticed.
	Congested(now microproto.Instant, inFlight int)
	// Recovered: the episode has ended; inFlight is what is in flight now.
	Recovered(now microproto.Instant, inFlight int)
	// TimedOut: the retransmission time-out has passed. again: for the same segment
	// as last time, or in an episode that Congested told of; the threshold stays.
	TimedOut(now microproto.Instant, inFlight int, again bool)
	// Idled: nothing was in flight and nothing was sent for idle, more than one
	// rto; data is about to go (RFC 5681 §4.1).
	Idled(now microproto.Instant, idle, rto time.Duration)
	// Underused: for one rto the sender had less to send than the window allows, and
	// never more than used in flight (RFC 2861 §3.1, RFC 7661 §4).
	Underused(now microproto.Instant, used int)
	// Window is what may be in flight (cwnd), Threshold where slow start ends
	// (ssthresh). Both are at least one unit.
	Window() int
	Threshold() int
}

// ControllerStart is what Open is told.
type ControllerStart struct {
	Now microproto.Instant
	// Unit is the sender's maximum segment size (SMSS): bytes of a full segment with
	// its header, or 1 where packets are counted.
	Unit int
	// Window and Threshold are those of the controller that was in use before; 0:
	// nothing has been sent yet.
	Window, Threshold int
}

// Progress is what Acked is told. Where a train arrives as one it is acknowledged as
// one, where its segments would have been acknowledged two by two: Acks says how many
// acknowledgements that would have been, for rules that bound the growth of one.
type Progress struct {
	Now      microproto.Instant
	Count    int           // acknowledged now for the first time
	Acks     int           // delayed acknowledgements that this one stands for; 0: 1
	InFlight int           // before that
	RTT      time.Duration // smoothed; 0: not known yet
	// Full: the window was what held the sender back. Where it was not, the window
	// must not grow: nobody knows whether the path bears it.
	Full bool
}

// CellCongestion names the cell of type Congestion that WindowCongestionControl and
// DCCPWindowCongestionControl declare.
const CellCongestion = "congestion"

// Congestion is what the rows of congestion control share. The table's row puts its
// own Controller in; a micro-protocol attached behind it may put in another.
type Congestion struct {
	Controller Controller // nil: none yet
	Unit       int        // ControllerStart.Unit
	Window     int        // may be in flight now: the controller's, or what recovery makes of it
	Begun      bool       // data was sent under it
}

// Use puts a controller in: it starts with the initial window before anything was
// sent, and with the present one's window and threshold afterwards.
func (c *Congestion) Use(now microproto.Instant, next Controller) {
	s := ControllerStart{Now: now, Unit: c.Unit}
	if c.Begun && c.Controller != nil {
		s.Window, s.Threshold = c.Controller.Window(), c.Controller.Threshold()
	}
	next.Open(s)
	c.Controller, c.Window = next, next.Window()
}

// GroupCongestion is the group of the rows of congestion controllers.
const GroupCongestion = "congestion"

// ControllerRow returns the row of a congestion controller, for Catalog.AddRow. name is
// that of its micro-protocol, which replaces the controller of the rows above it. The row
// is composed in both columns between clusters over Ethernet; set Columns for fewer.
func ControllerRow(name, help string, controller func(microproto.Options) (Controller, error)) microproto.Row {
	return microproto.Row{
		Protocol: name, Help: help, Group: GroupCongestion,
		Columns: []microproto.Column{{Mode: microproto.ModeSynchronous}, {Mode: microproto.ModeAsynchronous}},
		New: func(o microproto.Options) (microproto.MicroProtocol, error) {
			c, err := controller(o)
			if err != nil {
				return nil, err
			}
			if c == nil {
				return nil, fmt.Errorf("ctp: the constructor of %s returned no controller", name)
			}
			return &controllerProtocol{name: name, own: c}, nil
		},
	}
}

type controllerProtocol struct {
	name   string
	own    Controller
	shared *Congestion
}

// Name implements microproto.MicroProtocol.
func (p *controllerProtocol) Name() string { return p.name }

// Attach implements microproto.MicroProtocol.
func (p *controllerProtocol) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	p.shared = microproto.LookupCell[Congestion](b, CellCongestion)
	microproto.Bind(b, microproto.OpenSession, microproto.Late, func(x *microproto.Exec, _ struct{}) { p.shared.Use(x.Now(), p.own) })
	return nil
}
