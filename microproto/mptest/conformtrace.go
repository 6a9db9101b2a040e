package mptest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/microproto"
	"pgregory.net/rapid"
)

// runsUntraced checks that a trace changes nothing. Without a tracer the kernel and the micro-protocols
// take shorter ways, such as Exec.AsSegment. Random operations are played on two pairs of ends, one of
// them traced: frames, results, counters and the state of every micro-protocol must be the same.
func (s *Subject) runsUntraced(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) { s.samePaths(rt, operations(rt)) })
}

// operation is one step of a user of the ends: a message of length bytes (0: the longest), or a time
// that passes before everything that has arrived is received.
type operation struct {
	end, length int
	wait        time.Duration
}

// play is the input of a run.
type play struct {
	seed, longest uint64
	lossless      bool
	operations    []operation
}

func operations(rt *rapid.T) play {
	return play{
		seed:     rapid.Uint64().Draw(rt, "seed"),
		longest:  rapid.SampledFrom([]uint64{64, 600}).Draw(rt, "longest"),
		lossless: rapid.Bool().Draw(rt, "lossless"),
		operations: rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) operation {
			return operation{rapid.IntRange(0, 1).Draw(rt, "end"), 8 * rapid.IntRange(0, 8).Draw(rt, "words"),
				time.Duration(rapid.IntRange(0, 3).Draw(rt, "ms")) * time.Millisecond}
		}), 1, 20).Draw(rt, "operations"),
	}
}

func (s *Subject) samePaths(t failer, p play) {
	u := *s
	u.Length = int(min(p.longest, uint64(s.Length)))
	f := *s.Faults
	if p.lossless {
		f = Faults{Delay: f.Delay}
	}
	traced, plain := u.bench(t, p.seed, f, NewTraceHash(), NewTraceHash()), u.bench(t, p.seed, f)
	a, b := record(traced), record(plain)
	noError(t, traced.pair.Open(), "Open")
	noError(t, plain.pair.Open(), "Open")
	for i, o := range p.operations {
		for _, r := range []*recorded{a, b} {
			r.note(fmt.Sprint(r.do(o)))
		}
		must(t, slices.Equal(a.lines, b.lines), "operation %d: %s", i, difference(a.lines, b.lines))
		a.lines, b.lines = a.lines[:0], b.lines[:0]
	}
	for end := range traced.ends {
		c, d := traced.ends[end], plain.ends[end]
		must(t, reflect.DeepEqual(c.Counters(), d.Counters()), "end %d: traced %+v, untraced %+v", end, c.Counters(),
			d.Counters())
		for _, name := range c.Names() {
			x, y := stateOf(c.Protocol(name)), stateOf(d.Protocol(name))
			must(t, slices.Equal(x, y), "end %d, state of %s: %s", end, name, difference(x, y))
		}
	}
	traced.close(t)
	plain.close(t)
}

func difference(traced, untraced []string) string {
	for i := range min(len(traced), len(untraced)) {
		if traced[i] != untraced[i] {
			return fmt.Sprintf("traced %s, untraced %s", traced[i], untraced[i])
		}
	}
	return fmt.Sprintf("traced %d entries, untraced %d", len(traced), len(untraced))
}

// recorded is a bench that keeps the frames and the results of a run.
type recorded struct {
	*bench
	lines []string
}

func record(b *bench) *recorded {
	r := &recorded{bench: b}
	limit := b.pair.OnFrame
	b.pair.OnFrame = func(end int, f microproto.Frame) bool {
		r.note(fmt.Sprintf("%v: end %d: frame %x of %d", b.pair.Clock.Now(), end, f.Data, f.Segment))
		return limit(end, f)
	}
	return r
}

func (r *recorded) note(line string) { r.lines = append(r.lines, line) }

func (r *recorded) do(o operation) error {
	if err := r.sendLength(o.end, o.length); err != nil {
		return err
	}
	if _, err := r.pair.Run(o.wait); err != nil {
		return err
	}
	for end := range r.ends {
		if err := r.receive(end); err != nil {
			return err
		}
		r.note(fmt.Sprintf("end %d: received %x", end, r.load[end].got))
	}
	return nil
}

// sendLength sends a message of at most so many bytes, 0 for no limit.
func (r *recorded) sendLength(end, most int) error {
	l, ep := r.load[end], r.ends[end].Endpoint()
	if ep == nil {
		return r.send(end)
	}
	length := r.s.Length &^ 7
	if most > 0 {
		length = min(length, most)
	}
	data := l.bytes(length)
	var err error
	failed := r.pair.Do(end, func(x *microproto.Exec) {
		_, err = ep.Send(x, loadTag, uint64(len(l.sent)+1), data)
	})
	if failed != nil {
		return failed
	}
	if err == nil {
		l.sent = append(l.sent, data)
	}
	r.note(fmt.Sprintf("sent %d: %v, accepted %d", length, err, ep.Accepted()))
	return nil
}

// stateOf describes every variable that a micro-protocol can reach, cells included, but not the
// composite.
func stateOf(mp microproto.MicroProtocol) []string {
	w := walk{seen: map[seenPointer]bool{}}
	w.value(mp.Name(), reflect.ValueOf(mp))
	return w.lines
}

type walk struct {
	lines []string
	seen  map[seenPointer]bool
}

type seenPointer struct {
	to  uintptr
	typ reflect.Type
}

func (w *walk) add(path, format string, args ...any) {
	w.lines = append(w.lines, path+" = "+fmt.Sprintf(format, args...))
}

var (
	messageType = reflect.TypeFor[microproto.Message]()
	timerType   = reflect.TypeFor[microproto.TimerID]()
)

func (w *walk) value(path string, v reflect.Value) {
	if v.Type() == timerType { // its number depends on the timers that have ended before
		w.add(path, "set: %v", !v.IsZero())
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		w.pointer(path, v)
	case reflect.Interface:
		if !v.IsNil() {
			w.value(path, v.Elem())
		}
	case reflect.Struct:
		if strings.HasPrefix(v.Type().Name(), "Queue[") {
			w.queue(path, v)
			return
		}
		for i := range v.NumField() {
			w.value(path+"."+v.Type().Field(i).Name, v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		w.add(path, "%d entries", v.Len())
		if v.Type().Elem().Kind() == reflect.Uint8 {
			w.add(path, "%x", v)
			return
		}
		for i := range v.Len() {
			w.value(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
		}
	case reflect.Map, reflect.Chan:
		w.add(path, "%d entries", v.Len())
	case reflect.Func, reflect.UnsafePointer, reflect.Uintptr:
	default:
		w.add(path, "%v", v)
	}
}

func (w *walk) pointer(path string, v reflect.Value) {
	if v.IsNil() || v.Type().Elem() != messageType && v.Type().Elem().PkgPath() == messageType.PkgPath() {
		return // the composite, its chains and events
	}
	if v.Type().Elem() == messageType {
		if m := (*microproto.Message)(v.UnsafePointer()); m.Direction() != 0 { // it has not ended
			w.add(path, "message %d: %x %x", m.ID(), m.Header(), m.Payload)
		}
		return
	}
	if p := (seenPointer{v.Pointer(), v.Type()}); !w.seen[p] {
		w.seen[p] = true
		w.value(path, v.Elem())
	}
}

// queue describes a queue of package fifo by its entries: its ring depends on its history.
func (w *walk) queue(path string, v reflect.Value) {
	ring, first, n := v.FieldByName("ring"), int(v.FieldByName("first").Int()), int(v.FieldByName("n").Int())
	w.add(path, "%d entries", n)
	for i := range n {
		w.value(fmt.Sprintf("%s[%d]", path, i), ring.Index((first+i)&(ring.Len()-1)))
	}
}
