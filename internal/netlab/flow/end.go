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

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// samplingInterval is the time between two samples.
const samplingInterval = 20 * time.Millisecond

// end is a flow's end in its own process.
type end struct {
	endConfig
	ctx      context.Context // ends with the command to stop
	commands chan string     // "bulk", "send N"

	received atomic.Uint64 // bytes
	send     func(report)
}

// Main runs an end of a flow and does not return, if this process was started for one. Otherwise it does
// nothing. It must be called at the beginning of main or TestMain.
func Main() {
	text, is := os.LookupEnv(environment)
	if !is {
		return
	}
	if netlab.IsUrgent() { // it inherited the priority of the program that measures
		if err := netlab.UrgentEnd.SetAll(); err != nil {
			fmt.Fprintln(os.Stderr, "flow:", err)
			os.Exit(2)
		}
	}
	var o endConfig
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintln(os.Stderr, "flow:", err)
		os.Exit(2)
	}
	ctx, stop := context.WithCancel(context.Background())
	e := &end{endConfig: o, ctx: ctx, commands: make(chan string, 16)}
	var mu sync.Mutex
	out := json.NewEncoder(os.Stdout)
	e.send = func(r report) {
		mu.Lock()
		defer mu.Unlock()
		if out.Encode(r) != nil {
			stop() // the program has ended
		}
	}
	go e.readCommands(stop)
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
	e.send(report{Sample: &Sample{Now(), e.received.Load()}})
	e.send(report{End: &c})
	os.Exit(0)
}

// readCommands reads commands until stop or the end of the input.
func (e *end) readCommands(stop func()) {
	defer stop()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() && lines.Text() != "stop" {
		e.commands <- lines.Text()
	}
}

func (e *end) sample() {
	if e.Sends {
		return
	}
	for range time.Tick(samplingInterval) {
		e.send(report{Sample: &Sample{Now(), e.received.Load()}})
	}
}

// next returns the number of messages to send next; it is negative for an unlimited number. more is false when
// the end must stop.
func (e *end) next() (messages int, more bool) {
	select {
	case <-e.ctx.Done():
		return 0, false
	case o := <-e.commands:
		if n, is := strings.CutPrefix(o, "send "); is {
			if k, err := strconv.Atoi(n); err == nil {
				return k, true
			}
		}
		return -1, true
	}
}
