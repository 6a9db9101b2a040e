package software_test

import (
	"bytes"
	"encoding/binary"
	"sync/atomic"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/p2pdc/p2pdc/ib/internal/verbs/software"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

const (
	programDepth = 8        // of both queues
	slotBytes    = 4096     // memory of one request
	windowAt     = 64 << 10 // offset of writes in the receiver's memory
	maxFaults    = 5        // between two calls of runToEnd: fewer than the retries
)

// program executes random requests on a connection and on the model, and compares the results.
type program struct {
	*rapid.T
	conn     *connection
	model    model
	sends    uint64 // posted
	receives uint64
	freed    int // send requests whose room polling has freed
	received int
	sentAt   int // completions of the model that were compared
	gotAt    int
	faults   atomic.Int32
	faulty   bool // packets get lost; then requests have no flaws, since a lost refusal is not repeated
	payload  map[uint64][]byte
}

// With posts, polls, and faults of requests and packets in any order, requests complete with the
// results, in the order and with the data that the model predicts.
func TestPrograms(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { rapid.SyncTest(r, testProgram) })
}

func testProgram(r *rapid.T) {
	p := &program{T: r, payload: map[uint64][]byte{}}
	p.model.transport = rapid.SampledFrom([]verbs.Transport{verbs.RC, verbs.UC}).Draw(r, "transport")
	w := timers{timeout: 8, retries: 7, rnrTimer: 20, rnrRetries: 7}
	if rapid.Bool().Draw(r, "impatient") {
		w.rnrRetries = 3
	}
	p.model.unlimitedRNR = w.rnrRetries == 7
	f := software.NewFabric(software.Config{MTU: 256})
	p.conn = openConnection(r, f, p.model.transport, programDepth, w)
	p.faulty = p.model.transport == verbs.RC && rapid.Bool().Draw(r, "faulty wire")
	if p.faulty {
		f.SetRule(p.rule(rapid.Uint64().Draw(r, "seed")))
	}
	r.Repeat(map[string]func(*rapid.T){
		"send":     p.send,
		"receive":  p.receive,
		"poll":     p.poll,
		"settle":   p.runToEnd,
		"break":    p.breakOne,
		"fallback": func(*rapid.T) {},
	})
	p.runToEnd(r)
}

// rule applies faults to a few packets and acknowledgements.
func (p *program) rule(seed uint64) software.Rule {
	chance := faultRates{
		Seed: seed, DropRate: 0.2, DelayRate: 0.2, MaxDelay: 3 * time.Millisecond, DuplicateRate: 0.2,
	}.rule()
	return func(k software.Packet) software.Fault {
		f := chance(k)
		if f == (software.Fault{}) || p.faults.Load() >= maxFaults {
			return software.Fault{}
		}
		p.faults.Add(1)
		return f
	}
}

// size draws sizes around the bounds of packets and of receive requests.
func size(t *rapid.T, most int) int {
	return min(rapid.SampledFrom([]int{0, 1, 8, 255, 256, 257, 700, 1024, 4000}).Draw(t, "bytes"), most)
}

func (p *program) send(t *rapid.T) {
	a, b := &p.conn.ends[0], &p.conn.ends[1]
	m := message{
		id: p.sends, bytes: size(t, slotBytes), signaled: rapid.IntRange(0, 3).Draw(t, "signaled") > 0,
		operation: verbs.Operation(rapid.IntRange(0, 3).Draw(t, "operation")),
		flaw:      rapid.SampledFrom([]flaw{sound, sound, sound, sound, sound, sound, localFlaw, remoteFlaw}).Draw(t, "flaw"),
	}
	if p.faulty && m.flaw == remoteFlaw {
		m.flaw = sound
	}
	at := int(m.id%programDepth) * slotBytes
	w := verbs.SendRequest{
		ID: m.id, Operation: m.operation, Elements: a.element(at, m.bytes), Signaled: m.signaled,
		Immediate:  uint32(m.id) ^ 0xabcd,
		RemoteAddr: b.region.Addr() + windowAt + uint64(at), RemoteKey: b.region.RemoteKey(),
	}
	if m.flaw == localFlaw {
		w.Elements[0].Key++
	}
	if m.flaw == remoteFlaw {
		w.RemoteKey++
	}
	if int(p.sends)-p.freed == programDepth {
		n, err := a.pair.PostSend([]verbs.SendRequest{w})
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.Zero(t, n)
		return
	}
	data := a.memory[at : at+m.bytes]
	for i := range data {
		data[i] = byte(int(m.id)*31 + i*7 + i>>8)
	}
	if m.bytes >= 8 {
		binary.LittleEndian.PutUint64(data, m.id)
	}
	p.payload[m.id] = bytes.Clone(data)
	n, err := a.pair.PostSend([]verbs.SendRequest{w})
	require.NoError(t, err)
	require.Equal(t, 1, n)
	p.sends++
	p.model.sends = append(p.model.sends, m)
	p.model.run(false)
}

func (p *program) receive(t *rapid.T) {
	b := &p.conn.ends[1]
	r := modelReceive{id: p.receives, bytes: slotBytes}
	switch rapid.IntRange(0, 9).Draw(t, "receipt") {
	case 0:
		r.flaw = receiveFlaw
	case 1:
		r.bytes = size(t, slotBytes)
	}
	if p.faulty {
		r.flaw, r.bytes = sound, slotBytes
	}
	w := verbs.ReceiveRequest{ID: r.id, Elements: b.element(int(r.id%programDepth)*slotBytes, r.bytes)}
	if r.flaw == receiveFlaw {
		w.Elements[0].Key++
	}
	n, err := b.pair.PostReceive([]verbs.ReceiveRequest{w})
	if int(p.receives)-p.received == programDepth {
		require.ErrorIs(t, err, verbs.ErrQueueFull)
		require.Zero(t, n)
		return
	}
	require.NoError(t, err)
	require.Equal(t, 1, n)
	p.receives++
	p.model.receives = append(p.model.receives, r)
	p.model.run(false)
}

// poll compares some completions. On a slow network there may be fewer than the model predicts, but
// no others.
func (p *program) poll(t *rapid.T) {
	var got [3]verbs.Completion
	n, err := p.conn.ends[0].queue.Poll(got[:rapid.IntRange(1, 3).Draw(t, "most")])
	require.NoError(t, err)
	for _, c := range got[:n] {
		p.compareSent(t, c)
	}
	n, err = p.conn.ends[1].recvs.Poll(got[:rapid.IntRange(1, 3).Draw(t, "most")])
	require.NoError(t, err)
	for _, c := range got[:n] {
		p.compareReceived(t, c)
	}
}

func (p *program) compareSent(t *rapid.T, c verbs.Completion) {
	require.Less(t, p.sentAt, len(p.model.sent), "one completion too many: %+v", c)
	want := p.model.sent[p.sentAt]
	p.sentAt++
	require.Equal(t, want.id, c.ID)
	require.Equal(t, want.status, c.Status, "send %d: %v, not %v", c.ID, c.Status, want.status)
	p.freed = want.freed
	if c.Status == verbs.StatusOK {
		require.Equal(t, want.kind, c.Kind)
	}
}

func (p *program) compareReceived(t *rapid.T, c verbs.Completion) {
	require.Less(t, p.gotAt, len(p.model.received), "one completion too many: %+v", c)
	want := p.model.received[p.gotAt]
	p.gotAt++
	require.Equal(t, want.id, c.ID)
	require.Equal(t, want.status, c.Status, "receive %d: %v, not %v", c.ID, c.Status, want.status)
	p.received = want.freed
	if c.Status != verbs.StatusOK {
		return
	}
	require.Equal(t, want.kind, c.Kind)
	require.EqualValues(t, want.message.bytes, c.Bytes)
	require.Equal(t, want.message.immediate(), c.HasImmediate)
	if c.HasImmediate {
		require.Equal(t, uint32(want.message.id)^0xabcd, c.Immediate)
	}
	if want.kind == verbs.Received {
		at := int(c.ID%programDepth) * slotBytes
		got := p.conn.ends[1].memory[at : at+want.message.bytes]
		require.True(t, bytes.Equal(p.payload[want.message.id], got), "message %d", want.message.id)
	}
}

// runToEnd lets all timers expire and requires all completions.
func (p *program) runToEnd(t *rapid.T) {
	advance(time.Second)
	p.model.run(true)
	p.faults.Store(0)
	var got [1]verbs.Completion
	for {
		n, err := p.conn.ends[0].queue.Poll(got[:])
		require.NoError(t, err)
		if n == 0 {
			break
		}
		p.compareSent(t, got[0])
	}
	for {
		n, err := p.conn.ends[1].recvs.Poll(got[:])
		require.NoError(t, err)
		if n == 0 {
			break
		}
		p.compareReceived(t, got[0])
	}
	require.Equal(t, len(p.model.sent), p.sentAt, "completions of sends are missing")
	require.Equal(t, len(p.model.received), p.gotAt, "completions of receives are missing")
	for i, broken := range []bool{p.model.aBroken, p.model.bBroken} {
		s, err := p.conn.ends[i].pair.State()
		require.NoError(t, err)
		require.Equal(t, broken, s == verbs.Error, "pair %d is in %v", i, s)
	}
}

// breakOne moves a pair to Error while nothing is in flight.
func (p *program) breakOne(t *rapid.T) {
	which := rapid.IntRange(0, 9).Draw(t, "which")
	if which > 1 || p.faulty {
		return // rarely, since little happens afterwards
	}
	p.runToEnd(t)
	require.NoError(t, p.conn.ends[which].pair.Modify(verbs.Attributes{Mask: verbs.MaskState, State: verbs.Error}))
	if which == 0 {
		p.model.aBroken = true
	} else {
		p.model.bBroken = true
	}
	p.model.run(false)
}
