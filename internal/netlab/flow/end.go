//go:build linux

package flow

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// sampling is the time between two samples.
const sampling = 20 * time.Millisecond

// end is a flow's end in its own process.
type end struct {
	order
	ctx    context.Context // ends with the order to stop
	orders chan string     // "bulk", "send N"

	received atomic.Uint64 // bytes
	say      func(report)
}

// Main does an end's part and does not return, in a process that was started for
// one; in any other it does nothing. It belongs at the beginning of main, or of TestMain.
func Main() {
	text, is := os.LookupEnv(environment)
	if !is {
		return
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(2)
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &end{order: o, ctx: ctx, orders: make(chan string, 16)}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	e.say = func(r report) {
		mu.Lock()
		defer mu.Unlock()
		if out.Encode(r) != nil {
			stop() // nobody listens any more
		}
	}
	go e.listen(stop)
	go e.sample()
	var c Counts
	var err error
	switch {
	case o.Congestion != "" && o.Sends:
		c, err = e.sendTCP()
	case o.Congestion != "":
		c, err = e.receiveTCP()
	default:
		c, err = e.session()
	}
	if err != nil {
		c.Error = err.Error()
	}
	e.say(report{Sample: &Sample{Now(), e.received.Load()}})
	e.say(report{End: &c})
	os.Exit(0)
}

// listen takes orders until there are no more.
func (e *end) listen(stop func()) {
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "stop" {
		e.orders <- lines.Text()
	}
}

func (e *end) sample() {
	if e.Sends {
		return
	}
	for range time.Tick(sampling) {
		e.say(report{Sample: &Sample{Now(), e.received.Load()}})
	}
}

// next is how many messages to send next; negative: without end. false: stop.
func (e *end) next() (messages int, more bool) {
	select {
	case <-e.ctx.Done():
		return 0, false
	case o := <-e.orders:
		if n, is := strings.CutPrefix(o, "send "); is {
			if k, err := strconv.Atoi(n); err == nil {
				return k, true
			}
		}
		return -1, true
	}
}
