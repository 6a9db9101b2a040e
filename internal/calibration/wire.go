package calibration

import (
	"runtime"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Path connects the two ends between which messages are timed, in place of loopback. Both ends are
// on this machine, whose cores carry the frames as well.
type Path struct {
	Open     func(end, mtu int) (microproto.Link, error)
	Identity *driver.Identity // for protected sessions, as between hosts; nil: no protection
	Rate     float64          // bytes per second, each way
	Queue    int              // bytes that may wait; more is lost
	Frame    int              // bytes on it around each frame's payload
	Latency  time.Duration
	// Spent returns the processor time that carrying frames has taken of threads other than those
	// that send and receive; nil: none.
	Spent func() time.Duration
	// Threads is the number of threads of this process that carry frames; each occupies a processor
	// of the Go runtime.
	Threads int
}

// link opens the link of a node's configuration.
func (w *Path) link(c *driver.Config, end, mtu int) error {
	open := func() (microproto.Link, error) { return ether.Open(ether.Config{Listen: "127.0.0.1", MTU: mtu}) }
	if w != nil {
		open = func() (microproto.Link, error) { return w.Open(end, mtu) }
		if w.Identity != nil {
			c.Identity, c.Protect = w.Identity, p2psap.ProtectAlways
		}
	}
	link, err := open()
	if err != nil {
		return err
	}
	c.Rails = []driver.Rail{{Link: link}}
	return nil
}

func (w *Path) threads() int {
	if w == nil {
		return 0
	}
	return w.Threads
}

// lag returns how long a short message is in transit.
func (w *Path) lag() time.Duration {
	if w == nil {
		return 0
	}
	return w.Latency + time.Duration(float64(2*w.Frame)/w.Rate*1e9)
}

// slack is how much later than expected a message may arrive.
const slack = 200 * time.Microsecond

// carries returns how long a message is in transit at most.
func (w *Path) carries(bytes int) time.Duration {
	if w == nil {
		return 0
	}
	return w.Latency + time.Duration(1.2*float64(bytes)/w.Rate*1e9) + slack
}

// flooding is the cost of sending faster than a path carries.
type flooding struct {
	send  time.Duration // of the call that sends a face
	carry time.Duration // processor time of carrying a frame
}

// floodTime is how long a path is flooded.
const floodTime = 150 * time.Millisecond

// flood relaxes and sends faces of a tag in turn from both ends, as asynchronous peers do, over a
// path that is then full both ways. The increase of the relaxation's time is the core's cost of
// carrying frames.
func (w *wire) flood(tag int, other func() error) (f flooding, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + w.of.threads()))
	runtime.LockOSThread() // timers of a send fire on the core that set them
	defer runtime.UnlockOSThread()
	cycle := func(sends bool, until time.Duration) (relaxing, sending []float64, took time.Duration, err error) {
		begin := time.Now()
		for last := begin; last.Sub(begin) < until && err == nil; {
			err = other()
			now := time.Now()
			relaxing, last = append(relaxing, float64(now.Sub(last))), now
			if sends && err == nil {
				_, err = w.send(len(sending)%2, tag)
				last = time.Now()
				sending = append(sending, float64(last.Sub(now)))
			}
		}
		return relaxing, sending, time.Since(begin), err
	}
	idle, _, _, err := cycle(false, floodTime)
	if err != nil {
		return f, err
	}
	fill := time.Duration(2 * float64(w.of.Queue) / w.of.Rate * 1e9)
	if _, _, _, err = cycle(true, fill); err != nil {
		return f, err
	}
	spent := w.of.spent()
	relaxing, sending, took, err := cycle(true, floodTime)
	if err != nil {
		return f, err
	}
	spent = w.of.spent() - spent
	frame := float64(w.ends[0].Info().SegmentSize + w.of.Frame)
	carried := 2 * took.Seconds() * w.of.Rate / frame
	longer := (trimmed(relaxing) - trimmed(idle)) * float64(len(relaxing))
	f.send = time.Duration(middle(sending))
	f.carry = time.Duration((max(0, longer) + float64(spent)) / carried)
	return f, w.drain()
}

func (w *Path) spent() time.Duration {
	if w == nil || w.Spent == nil {
		return 0
	}
	return w.Spent()
}

// trimmed returns the mean without the longest hundredth, which other guests of the host cause.
func trimmed(values []float64) float64 {
	slices.Sort(values)
	return stat.Mean(values[:max(1, len(values)*99/100)], nil)
}

// drain waits until no message is in transit, and receives all of them.
func (w *wire) drain() error {
	time.Sleep(w.of.carries(w.of.Queue))
	for i := range w.nodes {
		for range 64 {
			if err := w.nodes[i].Pump(); err != nil {
				return err
			}
		}
		for tag := range w.lengths {
			if _, _, err := w.ends[i].Poll(&w.slots[i][tag]); err != nil {
				return err
			}
		}
	}
	return nil
}
