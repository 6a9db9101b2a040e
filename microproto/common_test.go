package microproto_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// counted numbers segments, adds up those that arrive in order, and is top and bottom of its composite.
type counted struct {
	number   microproto.Attr[uint32]
	sent     uint32
	sum      uint32
	handlers int // that have run
	refuse   bool
}

// undeclared is a micro-protocol that does nothing.
type undeclared struct{ declare bool }

func (undeclared) Name() string { return "undeclared" }

func (u undeclared) Attach(b *binder) error {
	if u.declare {
		always := func(*exec, *message) bool { return true }
		b.Common(microproto.CommonCase{Send: always, Expect: always})
	}
	return nil
}

func (*counted) Name() string { return "counted" }

func (c *counted) Attach(b *binder) error {
	c.number = microproto.WireAttr[uint32](b, "number")
	b.Common(microproto.CommonCase{
		Send:   func(_ *exec, m *message) bool { c.number.Set(m, c.sent+1); return !c.refuse },
		Expect: func(_ *exec, m *message) bool { return c.number.Get(m) == c.sum+1 && !c.refuse },
		Take:   func(_ *exec, m *message) { c.add(m) },
	})
	microproto.Bind(b, microproto.SegmentToNet, 0, func(x *exec, m *message) {
		c.handlers++
		if x.Transmit(m) != nil {
			x.Drop(m, "no room")
			return
		}
		x.Done(m)
	})
	microproto.Bind(b, microproto.SegmentToUser, 0, func(x *exec, m *message) {
		c.handlers++
		if c.number.Get(m) != c.sum+1 {
			x.Drop(m, "out of order")
			return
		}
		c.add(m)
		x.Done(m)
	})
	return nil
}

func (c *counted) add(m *message) { c.sum += uint32(len(m.Payload)) }

func (c *counted) send(x *exec, payload string) {
	if x.SendCommon([]byte(payload), 1) {
		c.sent++
		return
	}
	m, err := x.NewMessage(microproto.Down)
	if err != nil {
		return
	}
	c.sent++
	m.Payload = []byte(payload)
	c.number.Set(m, c.sent)
	x.Forward(m)
}

// commonEnd sends "a", "b" and "c", and receives them and one of another number.
func commonEnd(t *testing.T, c *counted, config microproto.Config, below ...microproto.MicroProtocol) (
	end *microproto.Composite, frames []string, handlers int,
) {
	t.Helper()
	memory := &mptest.Frames{}
	config.Frames = memory
	end = composite(t, config, append([]microproto.MicroProtocol{c}, below...)...)
	for _, payload := range []string{"a", "b", "c"} {
		do(t, end, func(x *exec) { c.send(x, payload) })
	}
	out := end.Drain(nil)
	for i := range out {
		require.Equal(t, config.Gather > 0, out[i].Frame.Body != nil)
		out[i].Frame = out[i].Frame.Flatten(memory)
		frames = append(frames, string(out[i].Frame.Data))
		require.NoError(t, end.Input(0, out[i].Frame))
	}
	require.NoError(t, end.Input(0, microproto.Frame{Data: []byte("\x00\x00\x00\x09d")}))
	require.True(t, end.Counters().Balanced())
	require.Equal(t, memory.Acquired, memory.Released)
	m, err := end.Message()
	require.NoError(t, err)
	require.EqualValues(t, 8, m.ID(), "three sent, four received")
	end.Recycle(m)
	return end, frames, c.handlers
}

// The common path has the effect of the chains, and no handler runs.
func TestCommonPath(t *testing.T) {
	common, got, handlers := commonEnd(t, &counted{}, microproto.Config{}, undeclared{declare: true})
	require.True(t, common.HasCommonPath())
	require.Equal(t, 1, handlers, "for the segment that is not expected")
	require.Equal(t, []string{"\x00\x00\x00\x01a", "\x00\x00\x00\x02b", "\x00\x00\x00\x03c"}, got)
	for name, chains := range map[string]struct {
		end    counted
		config microproto.Config
		below  []microproto.MicroProtocol
	}{
		"a tracer":               {config: microproto.Config{Tracer: mptest.NewTraceHash()}},
		"one declares none":      {below: []microproto.MicroProtocol{undeclared{}}},
		"not the case":           {end: counted{refuse: true}},
		"a link that gathers it": {config: microproto.Config{Gather: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			end, want, handlers := commonEnd(t, &chains.end, chains.config, chains.below...)
			require.GreaterOrEqual(t, handlers, 4)
			require.Equal(t, end.Counters(), common.Counters())
			require.Equal(t, want, got)
		})
	}
}

// Limits hold on the common path as in the chains.
func TestCommonPathWithinLimits(t *testing.T) {
	for name, config := range map[string]microproto.Config{
		"outputs": {Limits: microproto.Limits{Outputs: 2}},
		"mtu":     {MTU: 4},
	} {
		var counters [2]microproto.Counters
		for i, tracer := range []microproto.Tracer{nil, mptest.NewTraceHash()} {
			config.Tracer = tracer
			c := &counted{}
			end := composite(t, config, c)
			for range 3 {
				do(t, end, func(x *exec) { c.send(x, "a") })
			}
			counters[i] = end.Counters()
		}
		require.Equal(t, counters[1], counters[0], name)
		require.NotZero(t, counters[0].Dropped, name)
	}
	c := &counted{}
	end := composite(t, microproto.Config{Limits: microproto.Limits{Messages: 2}}, c)
	do(t, end, func(x *exec) {
		m, err := x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.False(t, x.SendCommon(nil, 2))
		require.True(t, x.SendCommon(nil, 1))
		_, err = x.NewMessage(microproto.Down)
		require.NoError(t, err)
		require.False(t, x.SendCommon(nil, 1))
		x.Done(m)
	})
}

// A handler that is bound later by somebody who declares no common case ends the common path.
func TestCommonPathEndsWithForeignHandlers(t *testing.T) {
	c := &counted{}
	end := composite(t, microproto.Config{}, c)
	seen := 0
	do(t, end, func(x *exec) {
		c.send(x, "a")
		_, err := microproto.BindNow(x, microproto.SegmentToNet, microproto.First, func(*exec, *message) { seen++ })
		require.NoError(t, err)
		c.send(x, "b")
	})
	require.False(t, end.HasCommonPath())
	require.Equal(t, 1, seen)
}

func TestCommonCaseIsComplete(t *testing.T) {
	_, err := microproto.NewComposite(microproto.Config{Name: "end", MTU: 100},
		of("half", func(b *binder) { b.Common(microproto.CommonCase{}) }))
	require.ErrorContains(t, err, "half declares a common case without")
	require.False(t, composite(t, microproto.Config{}).HasCommonPath(), "nobody takes a message")
}

// A segment longer than a declared common case is not tried.
func TestCommonPathOfShortSegments(t *testing.T) {
	tried := 0
	end := composite(t, microproto.Config{}, of("short", func(b *binder) {
		b.Common(microproto.CommonCase{
			Send:    func(*exec, *message) bool { return false },
			Expect:  func(*exec, *message) bool { tried++; return true },
			Longest: 3,
		})
	}))
	for _, data := range []string{"", "abc", "abcd"} {
		require.NoError(t, end.Input(0, microproto.Frame{Data: []byte(data)}))
	}
	require.Equal(t, 2, tried)
	require.EqualValues(t, 1, end.Counters().Dropped)
}
