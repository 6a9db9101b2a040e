// Package duel is one end of a comparison of transports: a process that takes orders
// on its standard input, exchanges messages with the other end over whatever channel
// it was given, and answers with what it took. Both ends get the same orders in the
// same order, so that they need not agree about anything themselves.
package duel

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Channel carries messages of known lengths, in order. It is for one goroutine.
type Channel interface {
	// Send starts a message. data must stay as it is until Flush has returned.
	Send(data []byte) error
	// Flush returns when nothing that was sent needs its data any more.
	Flush() error
	// Recv blocks until the next message, of len(buf) bytes, is in buf.
	Recv(buf []byte) error
}

// Lossy is a Channel that takes in every message for itself and may lose some. The end that
// leads numbers its messages, and the other one's are answers to them. Recv of the end that
// leads repeats its message until an answer comes, and returns nil also when it gives up.
type Lossy interface {
	Channel
	// Lost counts the losses since it was called last: at the end that leads, of messages
	// that had to be repeated or were given up; at the other end, of messages that did not
	// come before a later one.
	Lost() int
}

// Answer is what an end says of an order. Times are nanoseconds.
type Answer struct {
	// Least and Median of what was timed: a one-way trip, or a call of Send.
	Least, Median float64 `json:",omitempty"`
	Elapsed       float64 `json:",omitempty"` // of a stream, from its first message to the answer to its last
	Processor     float64 `json:",omitempty"` // time of this process meanwhile, the kernel's part included
	Lost          int     `json:",omitempty"` // rounds in which a message was lost; they are not timed
	Error         string  `json:",omitempty"`
}

// Orders. Both ends get the same.
const (
	// Latency SIZE COUNT: messages there and back.
	Latency = "latency"
	// Stream SIZE COUNT RATE: messages one way, at most RATE bytes a second (0: no
	// bound), and an answer to the last.
	Stream = "stream"
	// Calls SIZE COUNT: the time of Send itself, with a pause after each call.
	Calls = "calls"
)

// Serve obeys orders until in ends. leads is true at the end that times.
func Serve(c Channel, leads bool, in io.Reader, out io.Writer) error {
	e := &end{channel: c, leads: leads}
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		a, err := e.obey(lines.Text())
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
		if err != nil {
			return err
		}
	}
	return lines.Err()
}

type end struct {
	channel Channel
	leads   bool
	buffer  []byte
	times   []float64
}

func (e *end) obey(line string) (Answer, error) {
	words := strings.Fields(line)
	var n [3]int
	for i, w := range words[min(1, len(words)):] {
		v, err := strconv.Atoi(w)
		if err != nil || i >= len(n) || v < 0 {
			return Answer{}, fmt.Errorf("do not understand %q", line)
		}
		n[i] = v
	}
	size, count, rate := n[0], n[1], n[2]
	if size < 1 || count < 1 {
		return Answer{}, fmt.Errorf("do not understand %q", line)
	}
	if len(e.buffer) < size {
		e.buffer = make([]byte, size)
	}
	before := processorTime()
	var a Answer
	var err error
	switch words[0] {
	case Latency:
		a, err = e.latency(e.buffer[:size], count)
	case Stream:
		a, err = e.stream(e.buffer[:size], count, rate)
	case Calls:
		a, err = e.calls(e.buffer[:size], count)
	default:
		err = fmt.Errorf("do not understand %q", line)
	}
	a.Processor = float64(processorTime() - before)
	return a, err
}

// lost counts the channel's losses since it was called last.
func (e *end) lost() int {
	if c, ok := e.channel.(Lossy); ok {
		return c.Lost()
	}
	return 0
}

// latency: half of a round trip, of those rounds in which nothing was lost.
func (e *end) latency(b []byte, count int) (Answer, error) {
	e.times = e.times[:0]
	all := 0
	for n := 0; n < count; n++ {
		begin := time.Now()
		if e.leads {
			if err := e.channel.Send(b); err != nil {
				return Answer{}, err
			}
		}
		if err := e.channel.Recv(b); err != nil {
			return Answer{}, err
		}
		lost := e.lost()
		all += lost
		if !e.leads {
			n += lost // rounds that the other end has given up
			if err := e.channel.Send(b); err != nil {
				return Answer{}, err
			}
		}
		if err := e.channel.Flush(); err != nil {
			return Answer{}, err
		}
		if lost == 0 {
			e.times = append(e.times, float64(time.Since(begin))/2)
		}
	}
	if !e.leads {
		return Answer{Lost: all}, nil
	}
	return e.spread(all)
}

// spread sums up the times of the rounds in which nothing was lost.
func (e *end) spread(lost int) (Answer, error) {
	if len(e.times) == 0 {
		return Answer{Lost: lost}, fmt.Errorf("a message was lost in each of %d rounds", lost)
	}
	slices.Sort(e.times)
	return Answer{Least: e.times[0], Median: e.times[len(e.times)/2], Lost: lost}, nil
}

// burst is how much a paced stream sends before it waits: sleeping is not more
// precise than a millisecond.
const burst = 1 << 20

func (e *end) stream(b []byte, count, rate int) (Answer, error) {
	var done [8]byte
	if !e.leads {
		for range count {
			if err := e.channel.Recv(b); err != nil {
				return Answer{}, err
			}
		}
		if err := e.channel.Send(done[:]); err != nil {
			return Answer{}, err
		}
		return Answer{}, e.channel.Flush()
	}
	begin, sent, ahead := time.Now(), 0, 0
	for range count {
		if err := e.channel.Send(b); err != nil {
			return Answer{}, err
		}
		sent += len(b)
		if ahead += len(b); rate > 0 && ahead >= burst {
			ahead = 0
			time.Sleep(time.Until(begin.Add(time.Duration(float64(sent) / float64(rate) * 1e9))))
		}
	}
	if err := e.channel.Flush(); err != nil {
		return Answer{}, err
	}
	err := e.channel.Recv(done[:])
	return Answer{Elapsed: float64(time.Since(begin))}, err
}

// callPause lets what a call has started come to an end, without giving the
// processor away.
const callPause = 100 * time.Microsecond

// calls times Send. The end that does not lead takes in what comes. Over a channel that may
// lose messages one more is sent and answered, so that it knows the last one.
func (e *end) calls(b []byte, count int) (Answer, error) {
	_, lossy := e.channel.(Lossy)
	if !e.leads {
		return e.called(b, count, lossy)
	}
	e.times = e.times[:0]
	for range count {
		begin := time.Now()
		if err := e.channel.Send(b); err != nil {
			return Answer{}, err
		}
		took := time.Since(begin)
		e.times = append(e.times, float64(took))
		for time.Since(begin) < took+callPause {
			continue
		}
	}
	a, err := e.spread(0)
	if err == nil && lossy {
		if err = e.channel.Send(b); err == nil {
			err = e.channel.Recv(b)
		}
		e.lost() // of the one that is not timed
	}
	if err != nil {
		return Answer{}, err
	}
	return a, e.channel.Flush()
}

func (e *end) called(b []byte, count int, lossy bool) (a Answer, err error) {
	if !lossy {
		return a, e.channel.Recv(b)
	}
	for n := 0; n <= count; n++ {
		if err := e.channel.Recv(b); err != nil {
			return a, err
		}
		lost := e.lost()
		n += lost
		a.Lost += lost
	}
	return a, e.channel.Send(b)
}
