package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"gonum.org/v1/gonum/floats"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// trial is a run of obstacle solve whose peers are killed. It follows the log of the program.
type trial struct {
	cmd       *exec.Cmd
	out       bytes.Buffer
	listens   chan string    // address of the rendezvous
	started   chan time.Time // beginning of the first relaxation
	recovered chan time.Time // all peers relax again
	keepers   chan []string  // addresses, that of the launcher first
	done      chan struct{}  // closed when the program has ended
	err       error          // its exit, once it has
	last      string         // line of the log

	mu   sync.Mutex
	pids map[int]int // newest process of each rank
}

// survived is the answer of a trial.
type survived struct {
	measure.Solution
	Losses []struct {
		Detected  float64  `json:"detected"`
		Recovered *float64 `json:"recovered"` // null: the peer was lost again before
		Repair    float64  `json:"repair_seconds"`
	} `json:"losses"`
	Moves []struct {
		Seconds float64 `json:"seconds"`
	} `json:"moves"`
	ByPeer []float64 `json:"sweeps"` // those of the lost processes included
	code   int       // exit code
}

// meanSweeps returns the mean number of sweeps, or cycles, of a peer. Solution.Sweeps is without the points that lost
// processes have relaxed.
func (s *survived) meanSweeps() float64 { return floats.Sum(s.ByPeer) / float64(len(s.ByPeer)) }

// maxUnread bounds the recoveries that nothing has waited for.
const maxUnread = 1 << 10

func newTrial() *trial {
	return &trial{
		listens: make(chan string, 1), started: make(chan time.Time, 1), recovered: make(chan time.Time, maxUnread),
		keepers: make(chan []string, maxUnread),
		done:    make(chan struct{}), pids: map[int]int{},
	}
}

// startTrial starts obstacle solve on the membrane within do, which may change the network namespace of the thread.
func startTrial(
	ctx context.Context, do func(func() error) error, program, n string, args ...string,
) (*trial, error) {
	t := newTrial()
	args = append([]string{"solve", "membrane", "--n", n, "--method", "richardson", "--threads", "1", "--format", "json",
		"--log-level", "info", "--log-format", "json"}, args...)
	t.cmd = exec.CommandContext(ctx, program, args...)
	t.cmd.Stdout, t.cmd.WaitDelay = &t.out, time.Second
	log, err := t.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := do(t.cmd.Start); err != nil {
		return nil, err
	}
	go t.follow(log)
	return t, nil
}

var waitingAt = regexp.MustCompile(`waiting for \d+ peers at (\S+): obstacle`)

// follow handles the lines of the log until the program ends.
func (t *trial) follow(log io.Reader) {
	defer close(t.done)
	for s := bufio.NewScanner(log); s.Scan(); {
		t.handle(s.Bytes())
		t.last = s.Text()
	}
	t.err = t.cmd.Wait()
}

// handle handles a line of the log.
func (t *trial) handle(line []byte) {
	if at := waitingAt.FindSubmatch(line); at != nil {
		t.listens <- string(at[1])
	}
	var said struct {
		Message   string
		Rank, Pid int
		Keepers   []string
	}
	if json.Unmarshal(line, &said) != nil {
		return
	}
	switch said.Message {
	case "peer joined":
		t.mu.Lock()
		t.pids[said.Rank] = said.Pid
		t.mu.Unlock()
	case "started":
		t.started <- time.Now()
	case "keepers agreed":
		t.keepers <- said.Keepers
	case "recovered: all peers relax again":
		t.recovered <- time.Now()
	}
}

// next returns the next event of a trial.
func next[T any](ctx context.Context, t *trial, events <-chan T, what string) (v T, err error) {
	limit := time.NewTimer(answerLimit)
	defer limit.Stop()
	select {
	case v = <-events:
		return v, nil
	case <-t.done:
		return v, fmt.Errorf("obstacle solve ended before it %s: %w: %.200s", what, cmp.Or(t.err, errors.New("exit code 0")), t.last)
	case <-limit.C:
		return v, fmt.Errorf("obstacle solve has not %s within %v", what, answerLimit)
	case <-ctx.Done():
		return v, ctx.Err()
	}
}

// pid returns the process of a rank.
func (t *trial) pid(rank int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pids[rank]
}

// kill kills the process of a rank.
func (t *trial) kill(rank int) error {
	p, err := os.FindProcess(t.pid(rank))
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		return fmt.Errorf("killing peer %d: %w", rank, err)
	}
	return nil
}

// lose kills the process of a rank and waits until the run has recovered.
func (t *trial) lose(ctx context.Context, rank int) error {
	if err := t.kill(rank); err != nil {
		return err
	}
	_, err := next(ctx, t, t.recovered, "recovered")
	return err
}

// stop ends a trial that goes on. It does nothing after the end.
func (t *trial) stop() {
	_ = t.cmd.Process.Signal(os.Interrupt)
	limit := time.AfterFunc(10*time.Second, func() { _ = t.cmd.Process.Kill() })
	defer limit.Stop()
	<-t.done
}

// answer waits for the end of a trial and returns its answer.
func (t *trial) answer() (s survived, err error) {
	<-t.done
	s.code = t.cmd.ProcessState.ExitCode()
	if err := json.Unmarshal(t.out.Bytes(), &s); err != nil {
		return s, fmt.Errorf("obstacle solve, exit code %d: %w in %.200s", s.code, err, t.out.String())
	}
	return s, nil
}

// pause waits for a time, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// direct calls f.
func direct(f func() error) error { return f() }
