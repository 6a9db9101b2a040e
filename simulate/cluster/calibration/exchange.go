package calibration

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// lengths of the messages that are timed where nothing is known of a run: a few within one
// segment of loopback, and some of several.
var lengths = []int{8, 8 << 10, 32 << 10, 56 << 10, 120 << 10, 250 << 10}

// lengthsAround are those of a run whose faces have so many bytes: agreement, faces, and what
// lies around them. Costs are a line through what messages of all lengths take, which is not one,
// so it should be close where a run needs it.
func lengthsAround(face int) []int {
	if face == 0 {
		return lengths
	}
	out := []int{8, 1 << 10, 8 << 10}
	for _, n := range []int{face / 4, face / 2, face, 2 * face} {
		out = append(out, max(8, n&^7))
	}
	slices.Sort(out)
	return slices.Compact(out)
}

const (
	exchangeTime = 50 * time.Millisecond  // that each length is timed
	wakes        = 200                    // times that a thread is woken
	asleep       = 300 * time.Microsecond // it has been waiting then
	patience     = 10 * time.Second
)

// exchange is what messages of a length took.
type exchange struct {
	Bytes, Segments int
	Send            time.Duration // the call that sends one
	// from its return until the other end has the message, and its acknowledgement is on its way
	Receive time.Duration
}

// wire is two nodes of this process, joined over loopback or a Path by the protocol and the
// driver that runs have.
type wire struct {
	of      *Path
	mode    microproto.Mode
	lengths []int // by tag
	nodes   [2]*driver.Node
	ends    [2]*driver.Socket
	slots   [2][]p2psap.Slot
}

func open(ctx context.Context, b *Workload, lengths []int) (*wire, error) {
	w := &wire{of: b.Path, mode: microproto.ModeSynchronous, lengths: lengths}
	if b.Asynchronous {
		w.mode = microproto.ModeAsynchronous
	}
	var specs []p2psap.SlotSpec
	for tag, n := range lengths {
		specs = append(specs, p2psap.SlotSpec{Tag: p2psap.Tag(tag), Length: n})
	}
	for i := range w.nodes {
		c := driver.Config{
			Name: name(i), Listen: "127.0.0.1:0", Catalog: ctp.Catalog(), Policy: p2psap.TablePolicy{}, Run: "calibration",
			Version: "1",
		}
		err := w.of.link(&c, i, b.MTU)
		c.Plain = c.Identity == nil // both ends are in this process
		if err != nil {
			return w, err
		}
		if w.nodes[i], err = driver.New(c); err != nil {
			return w, err
		}
		for tag, n := range lengths {
			w.slots[i] = append(w.slots[i], p2psap.Slot{Tag: p2psap.Tag(tag), Data: make([]byte, n)})
		}
	}
	errs := make(chan error, 2)
	for i := range w.nodes {
		go func() {
			other := 1 - i
			err := w.nodes[i].Connect(ctx, name(other), w.nodes[other].ControlAddr().String())
			if err == nil {
				w.ends[i], err = w.nodes[i].Open(ctx, name(other), p2psap.OpenOptions{
					Name: "calibration", Mode: w.mode, Slots: specs,
				})
			}
			errs <- err
		}()
	}
	return w, errors.Join(<-errs, <-errs)
}

func name(i int) string { return fmt.Sprintf("end%d", i) }

func (w *wire) close() {
	for _, n := range w.nodes {
		if n != nil {
			_ = n.Close()
		}
	}
}

// send sends a message of a tag's length from end i.
func (w *wire) send(i, tag int) (took time.Duration, err error) {
	begin := time.Now()
	for label := p2psap.Label(0); ; {
		if w.mode == microproto.ModeAsynchronous {
			label = p2psap.Label(begin.UnixNano())
		}
		_, err = w.ends[i].TrySend(p2psap.Tag(tag), label, w.slots[i][tag].Data)
		if err == nil {
			return time.Since(begin), nil
		}
		if !errors.Is(err, microproto.ErrBusy) || time.Since(begin) > patience {
			return 0, err
		}
		w.nodes[i].Pump()
		w.nodes[1-i].Pump()
	}
}

// receive takes it in at the other end, on the same thread.
func (w *wire) receive(i, tag int) (took time.Duration, err error) {
	sent := time.Now()
	for {
		w.nodes[1-i].Pump()
		_, fresh, err := w.ends[1-i].Poll(&w.slots[1-i][tag])
		if err != nil {
			return 0, err
		}
		if fresh {
			return time.Since(sent), nil
		}
		if time.Since(sent) > patience {
			return 0, errors.New("a message does not come")
		}
		w.nodes[i].Pump()
	}
}

// exchanges times messages of every length, there and back. Before each the core does something
// else, and on a Path until the message must have come.
func (w *wire) exchanges(other func() error) ([]exchange, error) {
	// As in a peer of one thread: nobody else of the process takes in what comes.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + w.of.threads()))
	var out []exchange
	for tag, n := range w.lengths {
		var sends, receives []float64
		before := w.ends[0].Info()
		for begin := time.Now(); time.Since(begin) < exchangeTime; {
			for i := range w.ends {
				if err := other(); err != nil {
					return nil, err
				}
				s, err := w.send(i, tag)
				if err != nil {
					return nil, err
				}
				for due := time.Now().Add(w.of.carries(n)); time.Now().Before(due); {
					if err := other(); err != nil {
						return nil, err
					}
				}
				r, err := w.receive(i, tag)
				if err != nil {
					return nil, err
				}
				sends, receives = append(sends, float64(s)), append(receives, float64(r))
			}
		}
		after := w.ends[0].Info()
		segments := max(1, (n+after.SegmentSize-1)/max(1, after.SegmentSize))
		if after.MessagesSent == before.MessagesSent {
			return nil, errors.New("no message was timed")
		}
		out = append(out, exchange{n, segments, time.Duration(middle(sends)), time.Duration(middle(receives))})
	}
	return out, nil
}

// waking is by how much later a thread has a message when it has blocked than when it was
// looking; looking is what it takes then.
func (w *wire) waking(looking time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	came := make(chan time.Time, 1)
	var late []float64
	for range wakes {
		errs := make(chan error, 1)
		go func() {
			_, err := w.ends[1].Receive(ctx, &w.slots[1][0])
			came <- time.Now()
			errs <- err
		}()
		for begin := time.Now(); time.Since(begin) < asleep; { // who sends has not slept
			runtime.Gosched()
		}
		if _, err := w.send(0, 0); err != nil {
			return 0, err
		}
		sent := time.Now()
		at := <-came
		if err := <-errs; err != nil {
			return 0, err
		}
		late = append(late, float64(at.Sub(sent)))
	}
	return max(0, time.Duration(stat.Mean(late, nil))-looking), nil // a run pays for the rare long ones, too
}

// idlePoll is what it takes to look at the network when nothing has come, after the core has
// done something else.
func (w *wire) idlePoll(other func() error) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + w.of.threads()))
	var times []float64
	for start := time.Now(); time.Since(start) < exchangeTime; {
		if err := other(); err != nil {
			return 0, err
		}
		begin := time.Now()
		w.nodes[0].Pump()
		if _, _, err := w.ends[0].Poll(&w.slots[0][0]); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(begin)))
	}
	return time.Duration(middle(times)), nil
}
