//go:build linux

package flow

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"

	"github.com/p2pdc/p2pdc/internal/netlab"
)

// environment carries an end's order to its process.
const environment = "P2PDC_FLOW_END"

// patience bounds the waits for an end's process, which a busy machine starts late.
const patience = 5 * time.Minute

// Flow is traffic from one host to another. Its methods are for one goroutine.
type Flow struct {
	Spec             Spec
	sender, receiver *process
}

// Start makes the two ends and joins them; nothing is sent until Bulk or Send.
func Start(from, to netlab.End, s Spec) (*Flow, error) {
	f := &Flow{Spec: s}
	fail := func(err error) (*Flow, error) {
		f.kill()
		return nil, fmt.Errorf("flow %v from %s to %s: %w", &s, from.Host.Name, to.Host.Name, err)
	}
	var err error
	here, there := from.IPv4.String(), to.IPv4.String()
	if s.IPv6 {
		here, there = from.IPv6.String(), to.IPv6.String()
	}
	o := order{Spec: s, Listen: there, Peer: here}
	if f.receiver, err = begin(to.Host, o); err != nil {
		return fail(err)
	}
	ready, err := f.receiver.said(func(r report) bool { return r.Ready })
	if err != nil {
		return fail(err)
	}
	o = order{Spec: s, Sends: true, Listen: here, Peer: there, Port: ready.Port}
	if f.sender, err = begin(from.Host, o); err != nil {
		return fail(err)
	}
	for _, p := range []*process{f.sender, f.receiver} {
		if _, err := p.said(func(r report) bool { return r.Open }); err != nil {
			return fail(err)
		}
	}
	return f, nil
}

// Bulk has the sender send as much as it can, until Stop.
func (f *Flow) Bulk() error { return f.sender.tell("bulk") }

// Send has the sender send so many messages and waits until the receiver has accepted
// all that were ever sent.
func (f *Flow) Send(messages int) error { return f.SendIn(messages, patience) }

// SendIn is Send with a limit of its own.
func (f *Flow) SendIn(messages int, limit time.Duration) error {
	f.sender.mu.Lock()
	f.sender.wanted += uint64(messages)
	want := f.sender.wanted
	f.sender.mu.Unlock()
	if err := f.sender.tell(fmt.Sprintf("send %d", messages)); err != nil {
		return err
	}
	_, err := f.sender.saidIn(limit, func(r report) bool { return r.Upto == want })
	return err
}

// Stop ends the flow and says what its ends counted. The error is that of an end.
func (f *Flow) Stop() (sender, receiver Counts, err error) {
	defer f.kill()
	for i, p := range []*process{f.sender, f.receiver} {
		told := p.tell("stop") // an end that has failed is gone, and has said why
		r, lost := p.said(func(r report) bool { return r.End != nil })
		if lost != nil {
			return sender, receiver, errors.Join(err, told, lost)
		}
		if r.End.Error != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", [2]string{"sender", "receiver"}[i], r.End.Error))
		}
		*[2]*Counts{&sender, &receiver}[i] = *r.End
	}
	return sender, receiver, err
}

// kill ends the processes, if they have not ended themselves.
func (f *Flow) kill() {
	for _, p := range []*process{f.sender, f.receiver} {
		if p != nil {
			p.end()
		}
	}
}

// Received is how many bytes had arrived at a time of Now's clock, between the two
// samples around it.
func (f *Flow) Received(at int64) float64 {
	f.receiver.mu.Lock()
	defer f.receiver.mu.Unlock()
	return interpolate(f.receiver.samples, at)
}

func interpolate(samples []Sample, at int64) float64 {
	var last Sample
	for _, s := range samples {
		if s.At >= at {
			if s.At == last.At || last.At == 0 {
				return float64(s.Bytes)
			}
			part := float64(at-last.At) / float64(s.At-last.At)
			return float64(last.Bytes) + part*float64(s.Bytes-last.Bytes)
		}
		last = s
	}
	return float64(last.Bytes)
}

// Goodput is bytes a second that arrived between two times.
func (f *Flow) Goodput(from, to int64) float64 {
	return (f.Received(to) - f.Received(from)) / (float64(to-from) / 1e9)
}

// process is an end.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}

	mu      sync.Mutex
	news    *sync.Cond
	reports []report // but samples
	samples []Sample
	wanted  uint64
	errors  string // the last line of stderr
	over    bool
}

// begin starts an end in its host.
func begin(h *netlab.Host, o order) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command("/proc/self/exe"), done: make(chan struct{})}
	p.news = sync.NewCond(&p.mu)
	p.cmd.Env = append(os.Environ(), environment+"="+string(text))
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	err = h.Do(func() error { // on a thread of its own
		before := netlab.UrgentEnd.Set()
		defer before.Set()
		return p.cmd.Start()
	})
	if err != nil {
		return nil, err
	}
	go p.follow(stdout, stderr)
	return p, nil
}

// follow collects what the end says, until it is gone.
func (p *process) follow(stdout, stderr io.Reader) {
	var both sync.WaitGroup
	both.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.mu.Lock()
			p.errors = lines.Text()
			p.mu.Unlock()
		}
	})
	d := json.NewDecoder(stdout)
	for {
		var r report
		if d.Decode(&r) != nil {
			break
		}
		p.mu.Lock()
		if r.Sample != nil {
			p.samples = append(p.samples, *r.Sample)
		} else {
			p.reports = append(p.reports, r)
			p.news.Broadcast()
		}
		p.mu.Unlock()
	}
	both.Wait()
	_ = p.cmd.Wait() // how it ended, its last report has said
	p.mu.Lock()
	p.over = true
	p.news.Broadcast()
	p.mu.Unlock()
	close(p.done)
}

// said waits for a report.
func (p *process) said(what func(report) bool) (report, error) { return p.saidIn(patience, what) }

func (p *process) saidIn(limit time.Duration, what func(report) bool) (report, error) {
	deadline := time.Now().Add(limit)
	timer := time.AfterFunc(limit, func() {
		p.mu.Lock()
		p.news.Broadcast()
		p.mu.Unlock()
	})
	defer timer.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		for _, r := range p.reports {
			switch {
			case what(r):
				return r, nil
			case r.End != nil && r.End.Error != "":
				return report{}, errors.New(r.End.Error)
			}
		}
		switch {
		case p.over:
			return report{}, fmt.Errorf("the end's process is gone: %s", p.errors)
		case !time.Now().Before(deadline):
			return report{}, fmt.Errorf("no answer within %v: %s", limit, p.errors)
		}
		p.news.Wait()
	}
}

func (p *process) tell(what string) error {
	if _, err := io.WriteString(p.stdin, what+"\n"); err != nil {
		return fmt.Errorf("tell the end to %s: %w", what, err)
	}
	return nil
}

// end ends the process and waits for it.
func (p *process) end() {
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
