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

// environment is the variable with the configuration of an end.
const environment = "P2PDC_FLOW_END"

// waitLimit bounds the waits for an end's process. A busy machine may start it late.
const waitLimit = 5 * time.Minute

// Flow is traffic from one host to another. It must not be used by several goroutines at once.
type Flow struct {
	sender, receiver *process
	wanted           uint64 // messages
}

// Start starts the two ends and connects them. They send no messages until Bulk or Send.
func Start(from, to netlab.End, s Spec) (*Flow, error) {
	f := &Flow{}
	fail := func(err error) (*Flow, error) {
		f.kill()
		return nil, fmt.Errorf("flow %v from %s to %s: %w", &s, from.Host.Name, to.Host.Name, err)
	}
	var err error
	here, there := from.IPv4.String(), to.IPv4.String()
	if s.IPv6 {
		here, there = from.IPv6.String(), to.IPv6.String()
	}
	o := endConfig{Spec: s, Listen: there, Peer: here}
	if f.receiver, err = startProcess(to.Host, o); err != nil {
		return fail(err)
	}
	ready, err := f.receiver.waitFor(func(r report) bool { return r.Ready })
	if err != nil {
		return fail(err)
	}
	o = endConfig{Spec: s, Sends: true, Listen: here, Peer: there, Port: ready.Port}
	if f.sender, err = startProcess(from.Host, o); err != nil {
		return fail(err)
	}
	for _, p := range []*process{f.sender, f.receiver} {
		if _, err := p.waitFor(func(r report) bool { return r.Open }); err != nil {
			return fail(err)
		}
	}
	return f, nil
}

// Bulk makes the sender send at full rate until Stop.
func (f *Flow) Bulk() error { return f.sender.command("bulk") }

// Send sends that many messages and waits until the receiver has accepted all messages of the flow.
func (f *Flow) Send(messages int) error {
	f.wanted += uint64(messages)
	if err := f.sender.command(fmt.Sprintf("send %d", messages)); err != nil {
		return err
	}
	_, err := f.sender.waitFor(func(r report) bool { return r.Upto == f.wanted })
	return err
}

// Stop ends the flow and returns the counts of its ends. The error is that of an end.
func (f *Flow) Stop() (sender, receiver Counts, err error) {
	defer f.kill()
	for i, p := range []*process{f.sender, f.receiver} {
		failed := p.command("stop") // fails if the end has ended; its report has the reason
		r, lost := p.waitFor(func(r report) bool { return r.End != nil })
		if lost != nil {
			return sender, receiver, errors.Join(err, failed, lost)
		}
		if r.End.Error != "" {
			err = errors.Join(err, fmt.Errorf("%s: %s", [2]string{"sender", "receiver"}[i], r.End.Error))
		}
		*[2]*Counts{&sender, &receiver}[i] = *r.End
	}
	return sender, receiver, err
}

// kill ends the processes that still run.
func (f *Flow) kill() {
	for _, p := range []*process{f.sender, f.receiver} {
		if p != nil {
			p.end()
		}
	}
}

// Received returns the bytes that had arrived at a time of Now's clock, interpolated between two samples.
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

// Goodput returns the bytes per second that arrived between two times.
func (f *Flow) Goodput(from, to int64) float64 {
	return (f.Received(to) - f.Received(from)) / (float64(to-from) / 1e9)
}

// process is the process of an end.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	done  chan struct{}

	mu        sync.Mutex
	changed   *sync.Cond
	reports   []report // except samples
	samples   []Sample
	lastError string // last line of stderr
	ended     bool
}

// startProcess starts an end in its host.
func startProcess(h *netlab.Host, o endConfig) (*process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	p := &process{cmd: exec.Command("/proc/self/exe"), done: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
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
	if err := h.Do(p.cmd.Start); err != nil {
		return nil, err
	}
	go p.readReports(stdout, stderr)
	return p, nil
}

// readReports collects the reports of the end until its process ends.
func (p *process) readReports(stdout, stderr io.Reader) {
	var both sync.WaitGroup
	both.Go(func() {
		lines := bufio.NewScanner(stderr)
		for lines.Scan() {
			p.mu.Lock()
			p.lastError = lines.Text()
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
			p.changed.Broadcast()
		}
		p.mu.Unlock()
	}
	both.Wait()
	_ = p.cmd.Wait() // the last report has the result
	p.mu.Lock()
	p.ended = true
	p.changed.Broadcast()
	p.mu.Unlock()
	close(p.done)
}

// waitFor waits for a report that satisfies the condition.
func (p *process) waitFor(what func(report) bool) (report, error) {
	late := false
	timer := time.AfterFunc(waitLimit, func() {
		p.mu.Lock()
		late = true
		p.changed.Broadcast()
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
		case p.ended:
			return report{}, fmt.Errorf("the process has ended: %s", p.lastError)
		case late:
			return report{}, fmt.Errorf("no report within %v: %s", waitLimit, p.lastError)
		}
		p.changed.Wait()
	}
}

func (p *process) command(what string) error {
	if _, err := io.WriteString(p.stdin, what+"\n"); err != nil {
		return fmt.Errorf("send the command %q: %w", what, err)
	}
	return nil
}

// end ends the process and waits for its end.
func (p *process) end() {
	_ = p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(time.Second):
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}
