package p2psap

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/mptest"
)

// locations are the two Ethernet columns of synchronous sessions.
func locations() map[string]func(i int, c *NodeConfig) {
	return map[string]func(i int, c *NodeConfig){
		"intra": nil,
		"inter": func(i int, c *NodeConfig) { c.Cluster = string(rune('x' + i)) },
	}
}

// letters opens a synchronous session for messages of up to a number of bytes.
func letters(seed uint64, latency time.Duration, length, queue int, where func(i int, c *NodeConfig)) *twoNodes {
	d := quietTwoNodes(seed, latency)
	d.mtu = 1400
	d.options = &OpenOptions{Name: "s", Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, max(length, 1)}},
		ReceiveBytes: queue}
	d.start(microproto.ModeSynchronous, where)
	return d
}

// pattern returns the content of a message.
func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = seed + byte(i) + byte(i>>8)*7
	}
	return b
}

// post starts a message and reports whether there was room.
func (e *socketUser) post(data []byte) bool {
	label := e.sent[1] + 1
	_, err := e.n.Send(e.d.clock.Now(), e.id, 1, Label(label), data)
	e.settle()
	if errors.Is(err, ErrBusy) {
		return false
	}
	e.d.fail(err)
	e.sent[1] = label
	return true
}

// fetch receives a message; nil: there is none. The next fetch reuses its memory.
func (e *socketUser) fetch(most int) []byte {
	if len(e.scratch) < most {
		e.scratch = make([]byte, most)
	}
	slot := Slot{Tag: 1, Data: e.scratch}
	a, err := e.n.Receive(e.d.clock.Now(), e.id, &slot)
	e.settle()
	if errors.Is(err, ErrNothing) {
		return nil
	}
	e.d.fail(err)
	e.got[1]++
	if err == nil && a.Label != e.got[1] {
		e.d.fail(fmt.Errorf("message %d comes as number %d", a.Label, e.got[1]))
	}
	return slot.Data[:a.Length]
}

// Messages of every length from 0 to 4 MB arrive over a link that loses frames.
func TestLengths(t *testing.T) {
	lengths := []int{0, 1, 7, 8, 1300, 1400, 4096, 65536, 1 << 19, 4 << 20, 0}
	for name, where := range locations() {
		t.Run(name, func(t *testing.T) {
			d := letters(1, 200*time.Microsecond, 4<<20, 9<<20, where)
			d.link.SetFaults(mptest.Faults{Delay: d.latency, Loss: 0.01})
			a, b := d.ends[0], d.ends[1]
			for i, n := range lengths {
				want := pattern(n, byte(i))
				require.True(t, a.post(want))
				var got []byte
				d.until(5*time.Minute, "a message", func() bool { got = b.fetch(4 << 20); return got != nil })
				require.NoError(t, d.fault)
				require.True(t, bytes.Equal(want, got), "%d bytes", n)
			}
			d.until(time.Minute, "acceptance", func() bool { return a.n.Accepted(a.id) == Transfer(len(lengths)) })
			require.NoError(t, d.fault)
		})
	}
}

// Both ends send 512 KB at once, again and again, without a deadlock.
func TestBothEndsSendMuch(t *testing.T) {
	for name, where := range locations() {
		t.Run(name, func(t *testing.T) {
			const length, rounds = 512 << 10, 4
			d := letters(2, 100*time.Microsecond, length, 2<<20, where)
			d.link.SetFaults(mptest.Faults{Delay: d.latency, Rate: 100e6, Capacity: 256})
			data := [2][]byte{pattern(length, 1), pattern(length, 2)}
			d.until(time.Minute, "the messages", func() bool {
				over := true
				for i, e := range d.ends {
					for e.sent[1] < rounds && e.post(data[i]) {
						continue
					}
					if got := e.fetch(length); got != nil {
						require.True(t, bytes.Equal(data[1-i], got))
					}
					over = over && e.got[1] == rounds && e.n.Accepted(e.id) == rounds
				}
				return over
			})
			require.NoError(t, d.fault)
		})
	}
}

// A receiver a hundred times slower than the sender bounds both ends' memory by its queue.
func TestReceiverMuchSlower(t *testing.T) {
	for name, where := range locations() {
		t.Run(name, func(t *testing.T) {
			const length, queue = 8192, 256 << 10
			d := letters(3, 100*time.Microsecond, length, queue, where)
			a, b := d.ends[0], d.ends[1]
			data := pattern(length, 3)
			busy := 0
			for turn := range 4000 {
				if !a.post(data) {
					busy++
				}
				if turn%100 == 99 {
					require.NotNil(t, b.fetch(length))
				}
				d.pass(20 * time.Microsecond)
				require.NoError(t, d.fault)
				x, y := a.n.session(a.id), b.n.session(b.id)
				x.unacked.drop(uint64(x.acceptedNow()))
				require.LessOrEqual(t, x.unacked.cost(), uint64(queue))
				require.LessOrEqual(t, b.n.Unread(b.id)*queueCost(length), uint64(queue))
				require.LessOrEqual(t, len(a.n.Frames(0))+len(b.n.Frames(0)), 64)
				require.LessOrEqual(t, y.channel.composite.Counters().Live, 1024)
			}
			require.Greater(t, busy, 3000, "the sender is held back")
			d.until(time.Minute, "the rest", func() bool { b.fetch(length); return b.got[1] == a.sent[1] })
			require.NoError(t, d.fault)
		})
	}
}

// After two seconds in which nothing arrives the channel continues by itself.
func TestBlackHole(t *testing.T) {
	for name, where := range locations() {
		t.Run(name, func(t *testing.T) {
			const length = 20000
			d := letters(4, time.Millisecond, length, 1<<20, where)
			a, b := d.ends[0], d.ends[1]
			for i := range 10 {
				require.True(t, a.post(pattern(length, byte(i))))
			}
			d.pass(3 * time.Millisecond)
			d.link.Partition(0, true)
			d.link.Partition(1, true)
			for i := range 10 {
				a.post(pattern(length, byte(10+i)))
			}
			d.pass(2 * time.Second)
			require.Less(t, b.n.Arrivals(b.id), a.sent[1])
			d.link.Partition(0, false)
			d.link.Partition(1, false)
			mended := d.clock.Now()
			d.until(time.Minute, "the rest", func() bool {
				for got := b.fetch(length); got != nil; got = b.fetch(length) {
					require.True(t, bytes.Equal(pattern(length, byte(b.got[1]-1)), got))
				}
				return b.got[1] == a.sent[1] && a.n.Accepted(a.id) == Transfer(a.sent[1])
			})
			require.NoError(t, d.fault)
			require.Less(t, d.clock.Now().Sub(mended), 5*time.Second, "the back-off is capped")
		})
	}
}

// The first and the last frame of a session are lost, each way.
func TestFirstAndLastLost(t *testing.T) {
	for name, where := range locations() {
		for lost := range 8 {
			t.Run(fmt.Sprint(name, lost), func(t *testing.T) {
				const length, messages = 3000, 20
				d := letters(5, time.Millisecond, length, 1<<20, where)
				a, b := d.ends[0], d.ends[1]
				seen, last := [2]int{}, false
				d.tap = func(from int, _ []byte) bool {
					seen[from]++
					first := seen[from] == 1 && lost&1 != 0 && from == lost>>1&1
					end := last && lost&4 != 0
					last = last && !end
					return !first && !end
				}
				for i := range messages {
					last = i == messages-1
					require.True(t, a.post(pattern(length, byte(i))))
				}
				d.until(time.Minute, "the messages", func() bool {
					for b.fetch(length) != nil {
						continue
					}
					return b.got[1] == messages && a.n.Accepted(a.id) == messages
				})
				require.NoError(t, d.fault)
			})
		}
	}
}

// A thousand sessions between two nodes: each carries its own messages, changes by itself, and ends.
func TestThousandSessions(t *testing.T) {
	sessions := 1000
	if testing.Short() {
		sessions = 200
	}
	d := quietTwoNodes(6, time.Millisecond)
	d.closing = true
	d.start(microproto.ModeSynchronous, nil)
	ids := [2][]SessionID{}
	for k := range sessions {
		for i, e := range d.ends {
			id, err := e.n.Open(d.clock.Now(), string(rune('b'-i)), OpenOptions{Name: fmt.Sprint(k),
				Mode: microproto.ModeSynchronous, Slots: []SlotSpec{{1, 8}}})
			require.NoError(t, err)
			ids[i] = append(ids[i], id)
		}
		if k%50 == 49 {
			d.ends[0].settle()
			d.ends[1].settle()
			d.pass(10 * time.Millisecond)
		}
	}
	for i, e := range d.ends {
		for k, id := range ids[i] {
			_, err := e.n.Send(d.clock.Now(), id, 1, 1, pattern(8, byte(k)))
			require.NoError(t, err)
			_, err = e.n.Adapt(d.clock.Now(), id, microproto.ModeAsynchronous)
			require.NoError(t, err)
		}
		e.settle()
	}
	d.pass(time.Second)
	for i, e := range d.ends {
		for k, id := range ids[i] {
			slot := Slot{Tag: 1, Data: make([]byte, 8)}
			a, err := e.n.Receive(d.clock.Now(), id, &slot)
			require.NoError(t, err)
			require.True(t, a.Fresh)
			require.Equal(t, pattern(8, byte(k)), slot.Data)
			require.Equal(t, microproto.ModeAsynchronous, e.n.Mode(id))
		}
	}
	for k := range sessions {
		d.ends[k%2].n.Close(d.clock.Now(), ids[k%2][k])
	}
	d.ends[0].settle()
	d.ends[1].settle()
	d.pass(5 * time.Second)
	for i, e := range d.ends {
		for _, id := range ids[i] {
			e.n.Close(d.clock.Now(), id)
			e.n.Close(d.clock.Now(), id)
			require.Nil(t, e.n.session(id))
		}
		require.Empty(t, e.n.Frames(0))
	}
	require.NoError(t, d.fault)
}

// Every datagram of a session arrives again in a later session of the same name.
func TestReopenedSessionRefusesOldFrames(t *testing.T) {
	d := letters(7, time.Millisecond, 3000, 1<<20, nil)
	d.closing = true
	a, b := d.ends[0], d.ends[1]
	var old [2][][]byte
	d.tap = func(from int, f []byte) bool {
		old[from] = append(old[from], bytes.Clone(f))
		return true
	}
	play := func(seed byte) {
		a.sent, b.got = [3]uint64{}, [3]uint64{}
		for i := range byte(10) {
			require.True(t, a.post(pattern(3000, seed+i)))
		}
		d.until(time.Minute, "the messages", func() bool {
			for from, frames := range old {
				if seed != 0 && len(frames) > 0 {
					f := microproto.NewBuffer(frames[0], nil).Frame(microproto.LinkAddr(from+1), 0, len(frames[0]))
					old[from] = frames[1:]
					d.ends[1-from].n.Input(d.clock.Now(), 0, f)
					d.ends[1-from].settle()
				}
			}
			if got := b.fetch(3000); got != nil {
				require.True(t, bytes.Equal(pattern(3000, seed+byte(b.got[1]-1)), got))
			}
			return b.got[1] == 10
		})
		require.NoError(t, d.fault)
	}
	play(0)
	for _, e := range d.ends {
		e.n.Close(d.clock.Now(), e.id)
		e.settle()
	}
	d.pass(time.Second)
	for _, e := range d.ends {
		e.n.Close(d.clock.Now(), e.id)
	}
	d.tap = nil
	require.Greater(t, len(old[0]), 20)
	d.open(microproto.ModeSynchronous)
	require.NoError(t, d.fault)
	before := b.n.Counters().FramesUnknown
	play(100)
	require.Greater(t, b.n.Counters().FramesUnknown, before+20)
}

// The path silently begins to drop long frames. The session continues in shorter frames. A path that carries
// nothing for a while changes nothing.
func TestPathShrinks(t *testing.T) {
	for name, where := range locations() {
		for _, silent := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " silent ", silent), func(t *testing.T) {
				const length = 30000
				d := letters(8, time.Millisecond, length, 1<<20, where)
				a, b := d.ends[0], d.ends[1]
				shrunk := false
				d.tap = func(_ int, f []byte) bool { return !shrunk || !silent && len(f) <= 1280 }
				exchange := func(messages int, most time.Duration) {
					for range messages {
						require.True(t, a.post(pattern(length, byte(a.sent[1]))))
					}
					d.until(most, "the messages", func() bool {
						for got := b.fetch(length); got != nil; got = b.fetch(length) {
							require.True(t, bytes.Equal(pattern(length, byte(b.got[1]-1)), got))
						}
						return b.got[1] == a.sent[1] && a.n.Accepted(a.id) == Transfer(a.sent[1])
					})
					require.NoError(t, d.fault)
				}
				exchange(5, time.Minute)
				shrunk = true
				if silent {
					require.True(t, a.post(pattern(length, byte(a.sent[1]))))
					d.pass(10 * time.Second)
					shrunk = false
				}
				begin := d.clock.Now()
				exchange(5, time.Minute)
				require.Less(t, d.clock.Now().Sub(begin), 10*time.Second)
				for _, e := range d.ends {
					s := e.n.session(e.id)
					require.Equal(t, !silent, s.info.Changes == 1, "changes: %d", s.info.Changes)
					require.Equal(t, !silent, s.channel.frameBytes == ShortFrame)
				}
				if silent {
					return
				}
				d.closing = true
				for _, e := range d.ends {
					e.adapt(always(microproto.ModeSynchronous))
					e.settle()
				}
				d.until(time.Second, "a change", func() bool {
					a.checkAdapt()
					b.checkAdapt()
					return a.adapting == 0 && b.adapting == 0
				})
				require.Equal(t, ShortFrame, a.n.session(a.id).channel.frameBytes, "the limit outlives a change")
				exchange(2, time.Second)
				// The longest frames that pass are found, and later that the path carries all again. No data is lost.
				for _, longest := range []int{1280, 1400} {
					shrunk = longest == 1280
					s := a.n.session(a.id)
					s.updateCounters()
					changes, again := s.info.Changes, s.info.Retransmitted
					d.pass(2 * raiseAfter)
					exchange(3, 10*time.Second)
					exchange(3, 10*time.Second)
					s.updateCounters()
					require.Equal(t, changes+1, s.info.Changes)
					require.Equal(t, again, s.info.Retransmitted)
					require.LessOrEqual(t, s.channel.frameBytes, longest)
					require.Greater(t, s.channel.frameBytes, longest-searchStep)
				}
			})
		}
	}
}

// Links with different largest frames do not look like a path that drops long frames.
func TestUnevenLinks(t *testing.T) {
	d := quietTwoNodes(9, ms)
	d.uneven = true
	d.start(microproto.ModeSynchronous, nil)
	for range 300 {
		for _, e := range d.ends {
			e.send()
			for tag := 1; tag <= testSlots; tag++ {
				for e.receive(tag) {
					continue
				}
			}
			e.settle()
		}
		d.pass(5 * ms)
	}
	require.NoError(t, d.fault)
	for _, e := range d.ends {
		s := e.n.session(e.id)
		require.Zero(t, s.info.Changes)
		require.Equal(t, 512, s.channel.frameBytes)
	}
}

// An asynchronous session sends nothing again, and no other session sends long frames. It continues in shorter
// frames all the same, whether its values end in a short frame or not. A path that carries nothing for a while, or
// loses at random, changes nothing.
func TestAsynchronousPathShrinks(t *testing.T) {
	for name, where := range locations() {
		for i, c := range []struct {
			lost   string
			length int
		}{{"long frames", 29000}, {"long frames", 30000}, {"all frames", 29000}, {"frames at random", 29000}} {
			if testing.Short() && (name == "intra") != (i%2 == 0) {
				continue
			}
			t.Run(fmt.Sprintf("%s %s %d", name, c.lost, c.length), func(t *testing.T) {
				d := quietTwoNodes(11, time.Millisecond)
				d.mtu = 1400
				d.options = &OpenOptions{Name: "s", Mode: microproto.ModeAsynchronous, Slots: []SlotSpec{{1, c.length}}}
				d.start(microproto.ModeAsynchronous, func(i int, nc *NodeConfig) {
					longHeartbeat(i, nc)
					if where != nil {
						where(i, nc)
					}
				})
				a, b := d.ends[0], d.ends[1]
				lossy, frames := false, 0
				d.tap = func(_ int, f []byte) bool {
					frames++
					switch {
					case !lossy:
						return true
					case c.lost == "long frames":
						return len(f) <= 1280
					case c.lost == "all frames":
						return false
					}
					return frames%3 > 0
				}
				// play has one end send, and returns how long before the end the other one received a whole value.
				slot := Slot{Tag: 1, Data: make([]byte, c.length)}
				play := func(span time.Duration) time.Duration {
					end, whole := d.clock.Now().Add(span), d.clock.Now()
					for k := byte(0); d.clock.Now() < end; k++ {
						require.True(t, a.post(pattern(c.length, k)))
						d.pass(10 * time.Millisecond)
						arrival, err := b.n.Receive(d.clock.Now(), b.id, &slot)
						b.settle()
						if err == nil && arrival.Fresh && slot.Data[0] == k {
							whole = d.clock.Now()
						}
					}
					require.NoError(t, d.fault)
					return d.clock.Now().Sub(whole)
				}
				require.Less(t, play(3*time.Second), 100*time.Millisecond)
				lossy = true
				last, limited := play(12*time.Second), c.lost == "long frames"
				if limited {
					require.Less(t, last, 100*time.Millisecond, "no value arrives after 12 s")
				} else {
					lossy = false
					require.Less(t, play(20*time.Second), 100*time.Millisecond)
				}
				for _, e := range d.ends {
					s := e.n.session(e.id)
					require.Equal(t, limited, s.channel.frameBytes == ShortFrame, "%d changes", s.info.Changes)
				}
			})
		}
	}
}
