package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/obstacle/internal/report"
	"github.com/p2pdc/p2pdc/solver"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// checkpointFlags are the flags of checkpoints.
type checkpointFlags struct {
	directory string
	every     time.Duration
	saved     map[string]string // flags of the run that a checkpoint holds
}

const defaultCheckpointEvery = time.Minute

func (c *checkpointFlags) add(f *pflag.FlagSet) {
	f.StringVar(&c.directory, "checkpoint", "", "directory for checkpoints, from which obstacle resume continues the run")
	f.DurationVar(&c.every, "checkpoint-every", defaultCheckpointEvery,
		"with --checkpoint: time between two checkpoints (0: write one only if the run ends early)")
}

func (c *checkpointFlags) check(f *pflag.FlagSet) error {
	switch {
	case c.every < 0:
		return usage("--checkpoint-every %v: want a positive time, or 0 for none during the run", c.every)
	case f.Changed("checkpoint-every") && c.directory == "":
		return usage("--checkpoint-every needs --checkpoint DIR")
	}
	c.saved = savedFlags(f)
	return nil
}

// hint says how a run that was lost can be continued.
func (c *checkpointFlags) hint() string {
	if c.directory == "" {
		return ""
	}
	return ", or continue it from its checkpoint: obstacle resume " + spelling.File(c.directory)
}

// methodFlagNames are the flags that belong to a method.
func methodFlagNames() []string { return groups()[0].flags }

// savedFlags returns the flags that a checkpoint holds.
func savedFlags(f *pflag.FlagSet) map[string]string {
	out := map[string]string{}
	f.VisitAll(func(flag *pflag.Flag) {
		always := slices.Contains([]string{"scheme", "tol", "method"}, flag.Name)
		if always || flag.Changed && slices.Contains(methodFlagNames(), flag.Name) {
			out[flag.Name] = flag.Value.String()
		}
	})
	return out
}

// flagsOf returns the flags that the checkpoints of w hold: those that were given, and the method if one of them chose it.
// A method that the program chose remains auto, so that the run that continues alternates as this one.
func (c *checkpointFlags) flagsOf(w *work) map[string]string {
	if !strings.HasPrefix(w.choice.Why, "--") {
		return c.saved
	}
	out := map[string]string{"method": w.method.Name}
	for name, value := range c.saved {
		out[name] = cmp.Or(out[name], value)
	}
	if w.method.Name == problem.Schwarz {
		out["local"] = w.method.Local
	}
	return out
}

// saver writes the checkpoints of a run, those during the run in a goroutine. A nil saver writes none.
type saver struct {
	writer *checkpoint.Writer
	every  time.Duration
	steps  int                 // time steps of the problem
	before checkpoint.Progress // of earlier runs
	common checkpoint.State    // what all checkpoints of the run have in common
	log    zerolog.Logger

	writing sync.WaitGroup

	mu     sync.Mutex
	busy   bool // a checkpoint is being written
	last   time.Time
	at     launch.Progress // newest
	buffer []float64       // of step
	whole  bool            // the directory holds a checkpoint
	limit  time.Duration   // of the wait for the last write, see finish
	done   launch.Saved
}

// newSaver returns the saver of a run, nil without --checkpoint. It makes the directory.
func (a *app) newSaver(q *request, w *work, c *checkpointFlags) (*saver, error) {
	if c.directory == "" {
		return nil, nil
	}
	s := &saver{
		every: c.every, steps: w.problem.Steps(), log: a.log, last: time.Now(), limit: q.PeerTimeout,
		common: checkpoint.State{Spec: w.spec, N: w.problem.N, Cuts: w.partition.Cuts, Flags: c.flagsOf(w)},
		done:   launch.Saved{Directory: c.directory},
	}
	s.done.Host, _ = os.Hostname()
	var err error
	if q.from != nil {
		s.before, s.common.Best = q.from.Progress, q.from.Best
	}
	if s.whole = q.from != nil && c.directory == q.from.Directory; s.whole {
		s.writer, err = q.from.Writer(build.Version())
	} else {
		s.writer, err = checkpoint.Create(c.directory, build.Version())
	}
	return s, badInput(err)
}

// continueSaver returns what writes the checkpoints of a run that this process leads from a term on, as
// launch.Plan.Continue does. If this host does not have the directory, that is logged.
func (a *app) continueSaver(p *launch.Plan, term int) launch.Saver {
	c := &p.Checkpoint
	s := &saver{
		every: time.Duration(c.EveryMS) * time.Millisecond, steps: p.Problem.Steps(), log: a.log, last: time.Now(),
		before: checkpoint.Progress{Step: c.Step, Sweeps: c.Sweeps},
		common: checkpoint.State{Spec: p.ProblemSpec, N: p.Problem.N, Cuts: p.Partition.Cuts, Flags: c.Flags},
		done:   launch.Saved{Directory: c.Directory}, limit: p.PeerTimeout,
	}
	s.done.Host, _ = os.Hostname()
	var w *checkpoint.Writer
	err := limited(context.Background(), p.PeerTimeout, func() (err error) { // the run goes on if storage hangs
		w, err = checkpoint.Continue(c.Directory, build.Version(), c.Run, c.Term+uint64(term))
		return err
	})
	if err != nil {
		a.log.Warn().Str("host", s.done.Host).Msgf("this process leads the run and cannot write its checkpoints: %v", err)
		return nil
	}
	s.writer, s.whole = w, w.Whole()
	a.log.Info().Str("directory", c.Directory).Str("host", s.done.Host).Msg("this process writes the checkpoints of the run")
	return s
}

// record returns what another process needs to go on with the checkpoints.
func (s *saver) record() (c rendezvous.Checkpoint) {
	if s == nil {
		return c
	}
	var err error
	if c.Directory, err = filepath.Abs(s.done.Directory); err != nil {
		return rendezvous.Checkpoint{}
	}
	c.EveryMS, c.Run, c.Term = s.every.Milliseconds(), s.writer.Run(), s.writer.Term()
	c.Flags, c.Step, c.Sweeps = s.common.Flags, s.before.Step, s.before.Sweeps
	return c
}

// Watch records the progress of the run.
func (s *saver) Watch(p launch.Progress) {
	if s != nil {
		s.mu.Lock()
		s.at = p
		s.mu.Unlock()
	}
}

// Due implements launch.Captures: it reports whether it is time for the next checkpoint.
func (s *saver) Due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.every > 0 && !s.busy && time.Since(s.last) >= s.every
}

// Step writes a checkpoint of the end of time step m if it is time for one. The end of the run is none: a step must be
// left for the run that continues.
func (s *saver) Step(m int, u []float64) {
	if s == nil || m <= s.before.Step || m == s.steps || !s.Due() {
		return
	}
	s.buffer = append(s.buffer[:0], u...)
	s.mu.Lock()
	at := s.at
	s.mu.Unlock()
	s.begin(m, s.buffer, at)
}

// Take implements launch.Captures: it writes a checkpoint of a stationary problem.
func (s *saver) Take(u []float64, at launch.Progress) { s.begin(0, u, at) }

// begin writes a checkpoint in a goroutine. u must not change before Due returns true.
func (s *saver) begin(step int, u []float64, at launch.Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy, s.last = true, time.Now()
	p := checkpoint.Progress{Step: step, Sweeps: s.before.Sweeps + at.Sweep, Residual: nullable.Number(at.Residual)}
	s.writing.Go(func() {
		if err := s.write(u, p); err != nil {
			s.log.Warn().Msg(err.Error())
		}
	})
}

func (s *saver) write(u []float64, p checkpoint.Progress) error {
	begin := time.Now()
	state := s.common
	state.U, state.Progress = u, p
	err := s.writer.Write(&state)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err != nil {
		s.done.Failed++
		s.done.Error = err.Error()
		return err
	}
	s.done.Written++
	s.done.Step, s.done.Sweeps = p.Step, p.Sweeps
	s.whole = true
	s.log.Info().Int("step", p.Step).Uint64("sweeps", p.Sweeps).Dur("took", time.Since(begin)).Msg("checkpoint written")
	return nil
}

// end completes the answer of a run and writes a checkpoint if it ended before its tolerance.
func (s *saver) end(ctx context.Context, o *launch.Outcome, answer *report.Solution) error {
	if s == nil {
		return nil
	}
	done, whole, err := s.finish(ctx, o, answer.Converged, answer.RelativeResidual)
	answer.Checkpoint, answer.Resumable = &done, whole && !answer.Converged
	return failed(err)
}

// End implements launch.Saver for a process that does not evaluate the answer.
func (s *saver) End(o *launch.Outcome) error {
	converged := o.Reason == launch.Converged
	done, whole, err := s.finish(context.Background(), o, converged, nullable.Number(s.at.Residual))
	o.Checkpoint, o.Resumable = &done, whole && !converged
	return failed(err)
}

// finish writes the checkpoint of a run that ended before its tolerance, and returns what the directory holds. It waits
// for storage that does not answer at most for the limit, and for the time that slow storage needs, and not after ctx has
// ended: the answer does not depend on it. Only the error of this checkpoint is returned: the run depends on no other.
func (s *saver) finish(
	ctx context.Context, o *launch.Outcome, converged bool, residual nullable.Number,
) (done launch.Saved, whole bool, err error) {
	err = limited(ctx, patience(s.limit, 8*len(o.U)), func() error { return s.writeLast(o, converged, residual) })
	s.mu.Lock()
	defer s.mu.Unlock()
	done, whole = s.done, s.whole
	if _, is := errors.AsType[*unanswered](err); is {
		err = fmt.Errorf("the directory of checkpoints %s: %w", done.Directory, err)
		done.Failed++
		done.Error = err.Error()
		if s.log.Warn().Msg(done.Error); converged {
			err = nil
		}
	}
	return done, whole, err
}

// writeLast does the work of finish, which may block. The run depends on no checkpoint if another process leads it now
// and writes them.
func (s *saver) writeLast(o *launch.Outcome, converged bool, residual nullable.Number) error {
	s.writing.Wait()
	defer s.writer.Close()
	var err error
	nothing := len(o.Missing) == len(o.Peers) && len(o.Filled) == 0 // of the blocks has arrived
	usable := o.Reason != launch.Failed && o.Reason != launch.Diverged
	if !converged && usable && !nothing && o.U != nil {
		p := checkpoint.Progress{Step: o.Steps, Sweeps: s.before.Sweeps, Residual: residual}
		most := uint64(0)
		for _, r := range o.Peers {
			most = max(most, r.Sweeps)
		}
		p.Sweeps += most
		if i := slices.IndexFunc(o.Peers, func(r rendezvous.Result) bool { return r.State != nil }); i >= 0 && len(o.Missing) == 0 {
			p.Method = o.Peers[i].State
		}
		last := o.U
		s.common.Best = nil
		if o.AtStart { // the residual rises first: a run in pieces that went back each time would never end
			last, s.common.Best = o.Ended, o.U
		}
		if err = s.write(last, p); errors.Is(err, checkpoint.ErrSuperseded) {
			s.log.Warn().Msg(err.Error())
			s.mu.Lock()
			s.whole, err = true, nil
			s.mu.Unlock()
		}
	}
	return err
}

// resumed returns what the answer states about the checkpoint from which a run continued, nil if there is none.
func (q *request) resumed() *report.Resumed {
	f := q.from
	if f == nil {
		return nil
	}
	out := &report.Resumed{From: f.Name, Step: f.Step, Sweeps: f.Sweeps}
	for _, err := range f.Skipped {
		out.Skipped = append(out.Skipped, err.Error())
	}
	return out
}

// earlierState returns the state of the method in the checkpoint from which a run continues, nil if there is none.
func (q *request) earlierState() []byte {
	if q.from == nil {
		return nil
	}
	return q.from.Method
}

// adopt sets the flags of a checkpoint that the user has not given. Flags of its method apply unless the user gives
// another method.
func (q *request) adopt(f *pflag.FlagSet) error {
	for _, name := range givenByCheckpoint() {
		if f.Changed(name) {
			return usage("--%s: the checkpoint holds the problem, its grid and the values to start from", name)
		}
	}
	other := f.Changed("method") || q.chooseAgain(f)
	names := append([]string{"scheme", "tol", "method"}, methodFlagNames()...)
	for _, name := range names {
		value, saved := q.from.Flags[name]
		if !saved || f.Changed(name) || other && (name == "method" || slices.Contains(methodFlagNames(), name)) {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return usage("%s: --%s %q: %w", q.from.Name, name, value, err)
		}
		if name == "method" && value != solver.Auto {
			q.method.why = "that of the checkpoint"
		}
	}
	return nil
}

// chooseAgain reports whether the user has given a flag of another method than that of the checkpoint.
func (q *request) chooseAgain(f *pflag.FlagSet) bool {
	saved := q.from.Flags
	m, scheme := problem.MethodConfig{Name: saved["method"], Local: saved["local"]}, saved["scheme"]
	if f.Changed("scheme") {
		scheme = f.Lookup("scheme").Value.String()
	}
	if s, err := q.catalog.Scheme(scheme, nil); err == nil && !s.Lockstep() && m.Name != problem.Richardson && m.Name != problem.FAS {
		m.Name, m.Local = problem.Schwarz, cmp.Or(m.Local, m.Name)
	}
	given := slices.DeleteFunc(slices.Clone(methodFlagNames()), func(name string) bool { return !f.Changed(name) })
	return solver.Unused(given, m) != nil || slices.Contains(given, "order") && m.Name != problem.Richardson
}
