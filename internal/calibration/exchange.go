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

// lengths are the lengths of messages timed without a workload: some of one segment on loopback, and
// some of several.
var lengths = []int{8, 8 << 10, 32 << 10, 56 << 10, 120 << 10, 250 << 10}

// lengthsAround returns lengths for a workload with faces of so many bytes: of agreement messages,
// of faces, and around these. The time of a message is not linear in its length, so the fitted line
// must be close where the workload needs it.
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
	exchangeTime = 50 * time.Millisecond  // time for each length
	wakes        = 200                    // number of times that a thread is woken
	asleep       = 300 * time.Microsecond // how long it has been waiting then
	patience     = 10 * time.Second
)

// exchange is what messages of one length take.
type exchange struct {
	Bytes, Segments int
	Send            time.Duration // of the call that sends one
	// from the sender's return until the receiver has the message and has sent the acknowledgement
	Receive time.Duration
}

// wire is two nodes of this process, connected over loopback or a Path by the protocol and the
// driver of real runs.
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
		if !errors.Is(err, p2psap.ErrBusy) || time.Since(begin) > patience {
			return 0, err
		}
		if err := errors.Join(w.nodes[i].Pump(), w.nodes[1-i].Pump()); err != nil {
			return 0, err
		}
	}
}

// receive receives it at the other end, on the same thread.
func (w *wire) receive(i, tag int) (took time.Duration, err error) {
	sent := time.Now()
	for {
		if err := w.nodes[1-i].Pump(); err != nil {
			return 0, err
		}
		_, fresh, err := w.ends[1-i].Poll(&w.slots[1-i][tag])
		if err != nil {
			return 0, err
		}
		if fresh {
			return time.Since(sent), nil
		}
		if time.Since(sent) > patience {
			return 0, fmt.Errorf("a message did not arrive within %v", patience)
		}
		if err := w.nodes[i].Pump(); err != nil {
			return 0, err
		}
	}
}

// exchanges times messages of every length in both directions. Before each the core does other work,
// and with a Path the message must have arrived.
func (w *wire) exchanges(other func() error) ([]exchange, error) {
	// No other thread of the process handles arrivals, as in a peer of one thread.
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

// waking returns how much later a thread has a message if it has blocked than if it was polling.
// looking is the time of a thread that polls.
func (w *wire) waking(looking time.Duration) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var late []float64
	for range wakes {
		var at time.Time
		errs := make(chan error, 1)
		go func() {
			_, err := w.ends[1].Receive(ctx, &w.slots[1][0])
			at = time.Now()
			errs <- err
		}()
		for begin := time.Now(); time.Since(begin) < asleep; { // the sender has not slept
			runtime.Gosched()
		}
		if _, err := w.send(0, 0); err != nil {
			return 0, err
		}
		sent := time.Now()
		if err := <-errs; err != nil {
			return 0, err
		}
		late = append(late, float64(at.Sub(sent)))
	}
	return max(0, time.Duration(stat.Mean(late, nil))-looking), nil // the mean, since a run pays for rare long delays, too
}

// idlePoll returns the time of a poll that finds nothing, after the core has done other work.
func (w *wire) idlePoll(other func() error) (time.Duration, error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + w.of.threads()))
	var times []float64
	for start := time.Now(); time.Since(start) < exchangeTime; {
		if err := other(); err != nil {
			return 0, err
		}
		begin := time.Now()
		if err := w.nodes[0].Pump(); err != nil {
			return 0, err
		}
		if _, _, err := w.ends[0].Poll(&w.slots[0][0]); err != nil {
			return 0, err
		}
		times = append(times, float64(time.Since(begin)))
	}
	return time.Duration(middle(times)), nil
}
