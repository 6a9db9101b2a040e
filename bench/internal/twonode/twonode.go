// Package twonode is one end of a test between two nodes: a process that reads commands from its
// standard input, exchanges messages with the other end over a channel, and answers with the times.
// Both ends get the same commands in the same order, so the ends negotiate nothing.
package twonode

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

// Channel carries messages of known lengths in order. It is used by one goroutine.
type Channel interface {
	// Send starts a message. data must not change until Flush has returned.
	Send(data []byte) error
	// Flush returns when no message that was sent needs its data any more.
	Flush() error
	// Recv blocks until the next message, of len(buf) bytes, is in buf.
	Recv(buf []byte) error
}

// ByteStream is a reliable stream of bytes as a Channel. A write returns when the data has been copied.
type ByteStream struct{ io.ReadWriter }

// Send implements Channel.
func (s ByteStream) Send(data []byte) error {
	_, err := s.Write(data)
	return err
}

// Flush implements Channel.
func (s ByteStream) Flush() error { return nil }

// Recv implements Channel.
func (s ByteStream) Recv(buf []byte) error {
	_, err := io.ReadFull(s, buf)
	return err
}

// Lossy is a Channel that may lose messages. The leading end numbers its messages, and those of the
// other end answer them. Recv of the leading end repeats its message until an answer arrives, and
// returns nil also when it gives up.
type Lossy interface {
	Channel
	// Lost returns the losses since its last call: at the leading end, messages that were repeated
	// or given up; at the other end, messages that a later one overtook.
	Lost() int
}

// Answer is an end's answer to a command. Times are nanoseconds.
type Answer struct {
	// Least and Median time of a one-way trip, or of a call of Send.
	Least, Median float64 `json:",omitempty"`
	Elapsed       float64 `json:",omitempty"` // of a stream, from its first message to the answer to its last
	Processor     float64 `json:",omitempty"` // processor time of this process, in user mode and in the kernel
	Sleeps        float64 `json:",omitempty"` // of threads of this process
	Lost          int     `json:",omitempty"` // rounds that lost a message; they are not timed
	Error         string  `json:",omitempty"`
}

// Commands.
const (
	// Latency SIZE COUNT: round trips of messages.
	Latency = "latency"
	// Stream SIZE COUNT RATE: messages one way, at most RATE bytes a second (0: no bound), and an
	// answer to the last.
	Stream = "stream"
	// Calls SIZE COUNT: the time of Send itself, with a pause after each call.
	Calls = "calls"
)

// Serve executes commands until in ends. leads is true at the end that measures.
func Serve(c Channel, leads bool, in io.Reader, out io.Writer) error {
	e := &end{channel: c, leads: leads}
	lines, answers := bufio.NewScanner(in), json.NewEncoder(out)
	for lines.Scan() {
		a, err := e.execute(lines.Text())
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

func (e *end) execute(line string) (Answer, error) {
	words := strings.Fields(line)
	var n [3]int
	for i, w := range words[min(1, len(words)):] {
		v, err := strconv.Atoi(w)
		if err != nil || i >= len(n) || v < 0 {
			return Answer{}, errCommand(line)
		}
		n[i] = v
	}
	size, count, rate := n[0], n[1], n[2]
	if size < 1 || count < 1 {
		return Answer{}, errCommand(line)
	}
	if len(e.buffer) < size {
		e.buffer = make([]byte, size)
	}
	processor, sleeps := usage()
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
		err = errCommand(line)
	}
	after, slept := usage()
	a.Processor, a.Sleeps = float64(after-processor), float64(slept-sleeps)
	return a, err
}

func errCommand(line string) error {
	return fmt.Errorf("command %q: want %s, %s or %s, a size, a count and a rate", line, Latency, Stream, Calls)
}

// lost returns the channel's losses since the last call.
func (e *end) lost() int {
	if c, ok := e.channel.(Lossy); ok {
		return c.Lost()
	}
	return 0
}

// latency times half of a round trip, in those rounds that lost nothing.
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
			n += lost // rounds that the other end gave up
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

// spread returns the least and the median of the times.
func (e *end) spread(lost int) (Answer, error) {
	if len(e.times) == 0 {
		return Answer{Lost: lost}, fmt.Errorf("a message was lost in each of %d rounds", lost)
	}
	slices.Sort(e.times)
	return Answer{Least: e.times[0], Median: e.times[len(e.times)/2], Lost: lost}, nil
}

// burst is how many bytes a paced stream sends before it sleeps, which is precise to a millisecond.
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

// callPause is the time after a call of Send for the transfer to end. The caller busy-waits, so that
// it keeps its processor.
const callPause = 100 * time.Microsecond

// calls times Send. The other end receives. Over a lossy channel one more message is sent and
// answered, by which the other end knows the last one.
func (e *end) calls(b []byte, count int) (Answer, error) {
	_, lossy := e.channel.(Lossy)
	if !e.leads {
		return e.receive(b, count, lossy)
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

// receive is the part of the end that does not lead.
func (e *end) receive(b []byte, count int, lossy bool) (a Answer, err error) {
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
