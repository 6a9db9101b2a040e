package calibration

import (
	"runtime"
	"slices"
	"time"

	"github.com/p2pdc/p2pdc/ether"
	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

// Path is what joins the two ends between which messages are timed, where that is not loopback:
// both ends are on this machine, whose cores carry the frames too.
type Path struct {
	Open     func(end, mtu int) (microproto.Link, error)
	Identity *driver.Identity // of protected sessions, as those between hosts are; nil: they are not
	Rate     float64          // bytes a second, each way
	Queue    int              // bytes that wait for it; more is lost
	Frame    int              // bytes on it around each frame's payload
	Latency  time.Duration
	// Spent is the processor time that carrying frames has taken of threads other than those
	// that send and receive; nil: it takes none.
	Spent func() time.Duration
	// Threads are those of this process that carry frames, and keep a processor of Go's each.
	Threads int
}

// link gives a node's configuration its link.
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

// lag is how long a short message is under way.
func (w *Path) lag() time.Duration {
	if w == nil {
		return 0
	}
	return w.Latency + time.Duration(float64(2*w.Frame)/w.Rate*1e9)
}

// slack is how much later than it should a message may come.
const slack = 200 * time.Microsecond

// carries is how long a message is under way at most.
func (w *Path) carries(bytes int) time.Duration {
	if w == nil {
		return 0
	}
	return w.Latency + time.Duration(1.2*float64(bytes)/w.Rate*1e9) + slack
}

// flooding is what sending costs whoever sends faster than a wire carries.
type flooding struct {
	send  time.Duration // the call, of a face
	carry time.Duration // of processor time, a frame that is carried
}

// floodTime is how long a wire is flooded.
const floodTime = 150 * time.Millisecond

// flood relaxes and sends faces of a tag in turns, as asynchronous peers do, from one end and the
// other, into a wire that is full then both ways. By how much longer relaxing takes is what carrying
// takes of this core.
func (w *wire) flood(tag int, other func() error) (f flooding, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + w.of.threads()))
	runtime.LockOSThread() // timers that send go off on the core that set them
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
	longer := trimmed(relaxing)*float64(len(relaxing)) - trimmed(idle)*float64(len(relaxing))
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

// trimmed is the mean but for the hundredth that took longest: what other guests of the host
// have taken is none of the wire's.
func trimmed(values []float64) float64 {
	slices.Sort(values)
	n, sum := max(1, len(values)*99/100), 0.0
	for _, v := range values[:n] {
		sum += v
	}
	return sum / float64(n)
}

// drain waits until nothing is under way, and takes in what has come.
func (w *wire) drain() error {
	time.Sleep(w.of.carries(w.of.Queue))
	for i := range w.nodes {
		for range 64 {
			w.nodes[i].Pump()
		}
		for tag := range w.lengths {
			if _, _, err := w.ends[i].Poll(&w.slots[i][tag]); err != nil {
				return err
			}
		}
	}
	return nil
}
