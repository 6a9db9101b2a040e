package mptest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

type (
	exec    = microproto.Exec
	message = microproto.Message
)

// spaced is a micro-protocol that numbers its segments, transmits one every millisecond, and drops
// segments that arrive twice or late. fault selects an error to be detected.
type spaced struct {
	fault   string
	number  microproto.Attr[uint32]
	bit     microproto.HoldBit
	waiting []*message
	sent    uint32
	seen    uint32
	ticking bool
}

var spacedTick = microproto.NewEvent[*spaced]("spaced.tick")

func (s *spaced) Name() string { return "spaced" }

func (s *spaced) Attach(b *microproto.Binder) error {
	s.number = microproto.WireAttr[uint32](b, "number")
	s.bit = b.HoldBit("spaced")
	microproto.Bind(b, microproto.SegmentFromUser, 0, s.out)
	microproto.Bind(b, microproto.SegmentFromNet, 0, s.in)
	microproto.Bind(b, spacedTick, 0, func(x *exec, _ *spaced) { s.tick(x) })
	return nil
}

func (s *spaced) out(x *exec, m *message) {
	if len(s.waiting) >= 64 {
		x.Drop(m, "spaced")
		return
	}
	if s.fault == "trace" {
		x.AsSegment(m)
	}
	s.sent++
	s.number.Set(m, s.sent)
	x.Hold(m, s.bit)
	s.waiting = append(s.waiting, m)
	if s.fault == "foreign header" {
		m.Header()[4] = 0xff
	}
	if s.fault == "own clock" {
		s.number.Set(m, uint32(time.Now().UnixNano()))
	}
	if !s.ticking {
		s.arm(x)
	}
}

func (s *spaced) arm(x *exec) {
	s.ticking = microproto.RaiseAfter(x, spacedTick, time.Millisecond, s) != 0
	if !s.ticking { // no timer: send at once rather than never
		s.tick(x)
	}
}

func (s *spaced) tick(x *exec) {
	s.ticking = false
	if s.fault == "chatter" {
		for range 100 {
			if m, err := x.NewMessage(microproto.Down); err == nil {
				s.number.Set(m, 0)
				x.Forward(m)
			}
		}
		microproto.RaiseAfter(x, spacedTick, time.Millisecond, s)
	}
	if len(s.waiting) == 0 {
		return
	}
	m := s.waiting[0]
	s.waiting = s.waiting[1:]
	x.Release(m, s.bit)
	if len(s.waiting) > 0 {
		s.arm(x)
	}
}

func (s *spaced) in(x *exec, m *message) {
	n := s.number.Get(m)
	switch {
	case s.fault == "trusting" && n > 1000:
		x.Fail(errors.New("number out of range"))
	case s.fault == "swallow":
		x.Halt() // and never done with: nothing arrives
	case n <= s.seen:
		x.Drop(m, "late")
	default:
		s.seen = n
	}
}

// pace is what spaced exports.
type pace time.Duration

func (s *spaced) ExportState() microproto.State { return pace(time.Millisecond) }

func (s *spaced) ImportState(state microproto.State) error {
	if _, ok := state.(pace); !ok && s.fault != "credulous" || s.fault == "forgetful" {
		return fmt.Errorf("state of %T", state)
	}
	return nil
}

// other declares the header byte after that of spaced.
type other struct{}

func (other) Name() string { return "other" }
func (other) Attach(b *microproto.Binder) error {
	b.Header(1)
	return nil
}

func subject(fault string) Subject {
	return Subject{Protocol: "spaced", New: func(int) []microproto.MicroProtocol {
		return []microproto.MicroProtocol{Top(), &spaced{fault: fault}, other{}, Bottom(nil)}
	}}
}

func TestConformAcceptsASoundMicroProtocol(t *testing.T) { Conform(t, subject("")) }

// A micro-protocol that does something else when it is traced is caught, by its frames or by its state.
func TestConformCatchesTheInfluenceOfATrace(t *testing.T) {
	p := play{seed: 1, longest: 64, operations: []operation{{wait: 5 * time.Millisecond}}}
	for fault, wrong := range map[string]bool{"": false, "trace": true} {
		s := subject(fault)
		s.defaults()
		require.Equal(t, wrong, fails(func(t failer) { s.samePaths(t, p) }), fault)
	}
	a, b := &spaced{}, &spaced{}
	require.Equal(t, stateOf(a), stateOf(b))
	a.waiting, b.waiting = []*message{nil}, []*message{nil}
	require.Equal(t, stateOf(a), stateOf(b))
	b.seen = 1
	require.NotEqual(t, stateOf(a), stateOf(b))
}

// coupler numbers the segments of trains, and drops those that arrive twice or late. If faulty, it
// counts a train as one segment.
type coupler struct {
	faulty     bool
	number     microproto.Attr[uint32]
	sent, seen uint32
}

func (*coupler) Name() string { return "coupler" }
func (c *coupler) Attach(b *microproto.Binder) error {
	b.TakesTrains()
	c.number = microproto.SteppedAttr[uint32](b, "number", microproto.StepSegments)
	c.sent = 1
	microproto.Bind(b, microproto.SegmentFromUser, 0, func(_ *exec, m *message) {
		c.number.Set(m, c.sent)
		if c.sent++; !c.faulty {
			c.sent += uint32(m.Segments()) - 1
		}
	})
	microproto.Bind(b, microproto.SegmentFromNet, 0, func(x *exec, m *message) {
		n, k := c.number.Get(m), uint32(m.Segments())
		if n <= c.seen {
			x.Drop(m, "late")
			return
		}
		if c.seen = n; !c.faulty {
			c.seen += k - 1
		}
	})
	return nil
}

func couplerSubject(faulty bool) Subject {
	return Subject{Protocol: "coupler", New: func(int) []microproto.MicroProtocol {
		return []microproto.MicroProtocol{Top(), &coupler{faulty: faulty}, Bottom(nil)}
	}}
}

func TestConformFormsTrains(t *testing.T) {
	Conform(t, couplerSubject(false))
	s := couplerSubject(true)
	s.defaults()
	require.True(t, s.takesTrains())
	s.Config.Train = trainBytes
	require.True(t, fails(s.trains), "who counts a train as one segment is caught")
	s = couplerSubject(false)
	s.defaults()
	require.True(t, fails(s.trains), "a composite that forms no train is caught")
	s = subject("")
	require.False(t, s.takesTrains())
}

// recorder is a failer that stops a check at its first failure.
type recorder struct{}

var errStop = errors.New("stop")

func (recorder) Helper()               {}
func (recorder) Fatalf(string, ...any) { panic(errStop) }

// fails reports whether a check fails.
func fails(run func(t failer)) (failed bool) {
	defer func() {
		p := recover()
		if failed = p == errStop; p != nil && !failed { //nolint:errorlint // identity of the sentinel
			panic(p)
		}
	}()
	run(recorder{})
	return false
}

func TestConformCatchesWhatIsWrong(t *testing.T) {
	for fault, caughtBy := range map[string]string{
		"own clock":      "replays",
		"foreign header": "keeps to its header",
		"swallow":        "accounts for every message",
		"chatter":        "falls quiet",
		"credulous":      "survives a change of composition",
		"forgetful":      "survives a change of composition",
	} {
		t.Run(fault, func(t *testing.T) {
			s := subject(fault)
			s.defaults()
			for _, c := range s.checks() {
				if c.name == caughtBy {
					require.True(t, fails(c.run), "%q is not caught by %q", fault, c.name)
				}
			}
		})
	}
}
