package ctp

import (
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
)

// Controller is a congestion control algorithm: it decides how much may be in flight. The
// rows of Table I around it hold segments, detect losses and send again, in both columns
// between clusters over Ethernet. Amounts are in the unit of the column: bytes in the
// synchronous one, packets in the asynchronous one. A Controller does no I/O, reads no clock,
// allocates nothing after Open and belongs to one composite.
//
// Embed Reno to change a few of its methods. ControllerRow
// makes an optional row of a Controller.
type Controller interface {
	// Open starts with the initial window, or with that of the controller before.
	Open(s ControllerStart)
	// Acked: data was acknowledged for the first time, outside recovery.
	Acked(p Progress)
	// Congested: losses were detected. It is called once for all losses of one window of
	// data. inFlight is FlightSize of RFC 5681 before the detection.
	Congested(now microproto.Instant, inFlight int)
	// Recovered: the losses are repaired; inFlight is the amount in flight now.
	Recovered(now microproto.Instant, inFlight int)
	// TimedOut: the retransmission time-out has passed. again: it has for the same segment
	// before, or after Congested and before Recovered; the threshold must not change.
	TimedOut(now microproto.Instant, inFlight int, again bool)
	// Idled: nothing was in flight or sent for idle, which is longer than rto, and data are
	// about to be sent (RFC 5681 §4.1).
	Idled(now microproto.Instant, idle, rto time.Duration)
	// Underused: for one rto the sender had less to send than the window allows, and at most
	// used in flight (RFC 2861 §3.1, RFC 7661 §4).
	Underused(now microproto.Instant, used int)
	// Window returns the amount that may be in flight (cwnd), Threshold the window at which
	// slow start ends (ssthresh). Both are at least one unit.
	Window() int
	Threshold() int
}

// ControllerStart is the argument of Controller.Open.
type ControllerStart struct {
	Now microproto.Instant
	// Unit is the sender's maximum segment size (SMSS): the bytes of a full segment with its
	// header, or 1 where packets are counted.
	Unit int
	// Window and Threshold are those of the controller before; 0 if nothing was sent yet.
	Window, Threshold int
}

// Progress is the argument of Controller.Acked. A train is acknowledged as one, although its
// segments one by one would be acknowledged in pairs. Acks is the number of acknowledgements
// that there would be, for rules that bound the growth by one acknowledgement.
type Progress struct {
	Now      microproto.Instant
	Count    int           // amount acknowledged for the first time
	Acks     int           // delayed acknowledgements that this one stands for; 0 counts as 1
	InFlight int           // before the acknowledgement
	RTT      time.Duration // smoothed; 0: not known yet
	// Full: the window limited the sender. Otherwise the window must not grow: it is not known
	// whether the path can carry more.
	Full bool
}

// CellCongestion names the cell of type Congestion that WindowCongestionControl and
// DCCPWindowCongestionControl declare.
const CellCongestion = "congestion"

// Congestion is shared by the rows of congestion control. The table's row sets its own
// Controller; a micro-protocol below may set another.
type Congestion struct {
	Controller Controller // nil before the first Use
	Unit       int        // ControllerStart.Unit
	Window     int        // may be in flight now: that of the controller, or of a recovery
	Begun      bool       // data were sent
}

// Use sets the controller. It starts with the initial window if nothing was sent yet,
// otherwise with the window and threshold of the controller before.
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
			return &controllerProtocol{named: named(name), own: c}, nil
		},
	}
}

type controllerProtocol struct {
	named
	own    Controller
	shared *Congestion
}

// Attach implements microproto.MicroProtocol.
func (p *controllerProtocol) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	lookupCell(b, CellCongestion, &p.shared)
	microproto.Bind(b, microproto.OpenSession, microproto.Late,
		func(x *microproto.Exec, _ struct{}) { p.shared.Use(x.Now(), p.own) })
	return nil
}
