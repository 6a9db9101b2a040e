package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/rs/zerolog"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/virtual"
	"github.com/p2pdc/p2pdc/obstacle/internal/peer"
	"github.com/p2pdc/p2pdc/obstacle/internal/spawn"
	"github.com/p2pdc/p2pdc/obstacle/internal/tracefile"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/iterate"
	"github.com/p2pdc/p2pdc/trace"
)

// traceFlags are --trace and the flags that say what is kept.
type traceFlags struct {
	file     string // "": no trace
	mib      int
	frames   int // bytes
	steps    bool
	children *traced
}

func (t *traceFlags) add(f *pflag.FlagSet, what string) {
	t.children = &traced{}
	f.StringVar(&t.file, "trace", "", what+" at the end, after a failure and at SIGUSR1; see obstacle trace")
	f.IntVar(&t.mib, "trace-size", trace.DefaultBytes>>20, "with --trace: MiB of the newest records that a peer keeps")
	f.IntVar(&t.frames, "trace-frames", 0, "with --trace: bytes to keep of each frame, for trace export --format pcapng")
	f.BoolVar(&t.steps, "trace-steps", false, "with --trace: record every step of every composite, too; slow")
}

func (t *traceFlags) check() error {
	if t.children == nil { // the command has no such flags
		return nil
	}
	switch dir := filepath.Dir(t.file); {
	case t.file == "" && (t.steps || t.frames != 0 || t.mib != trace.DefaultBytes>>20):
		return usage("--trace-size, --trace-frames and --trace-steps need --trace FILE")
	case t.mib < 1 || t.mib > trace.MaxBytes>>20:
		return usage("--trace-size %d: want 1 to %d MiB", t.mib, trace.MaxBytes>>20)
	case t.frames < 0 || t.frames > trace.MaxFrameBytes:
		return usage("--trace-frames %d: want 0 to %d bytes", t.frames, trace.MaxFrameBytes)
	case strings.HasSuffix(t.file, string(filepath.Separator)):
		return usage("--trace %s names a directory: give a file", t.file)
	case t.file != "" && !isDirectory(dir):
		return usage("--trace %s: there is no directory %s", t.file, dir)
	}
	return nil
}

// checkRanks returns an error if the files of that many peers could not be written.
func (t *traceFlags) checkRanks(peers int) error {
	if t.file == "" {
		return nil
	}
	if output.IsDevice(t.file) {
		return usage("--trace %s is a pipe or a device, and every peer writes a file of its own: make %s of pipes, or give "+
			"the name of a file", t.file, traceName(t.file, 0)+" and so on")
	}
	for rank := range peers {
		if name := traceName(t.file, rank); isDirectory(name) {
			return usage("--trace %s: %s, the file of peer %d, is a directory", t.file, name, rank)
		}
	}
	return checkWritable(traceName(t.file, 0))
}

func (t *traceFlags) options() trace.Options {
	return trace.Options{Bytes: t.mib << 20, FrameBytes: t.frames, Steps: t.steps}
}

// args returns the flags of a peer that traces to a file.
func (t *traceFlags) args(name string) []string {
	args := []string{"--trace", name, "--trace-size", strconv.Itoa(t.mib), "--trace-frames", strconv.Itoa(t.frames)}
	if t.steps {
		args = append(args, "--trace-steps")
	}
	return args
}

// recorded calls run, with a trace in o if there is to be one, and writes the file afterwards and at traceSignals.
func (t *traceFlags) recorded(name string, o *peer.Options, log zerolog.Logger, run func() error) error {
	if t.file == "" {
		return run()
	}
	file, err := tracefile.Create(name, t.options())
	if err != nil {
		return badInput(err)
	}
	o.Trace = file
	stop := traceSignal.listen(func() {
		if err := file.Write(); err != nil {
			log.Warn().Err(err).Msg("the trace was not written")
		}
	})
	defer stop()
	return errors.Join(run(), file.Write())
}

// writeVirtual begins to write a file for each rank of a simulation.
func (t *traceFlags) writeVirtual(r *simulate.Result) *writings {
	all := &writings{}
	if t.file == "" || r == nil {
		return all
	}
	of := map[string][]*trace.Node{}
	for _, n := range r.Traces {
		of[n.Name] = append(of[n.Name], n)
	}
	all.begin(t.file, func() error { // one file after another, for want of memory
		for rank := range r.Ranks {
			nodes := of[virtual.NameOf(iterate.Rank(rank))]
			err := output.Save(traceName(t.file, rank), func(w io.Writer) error {
				_, err := w.Write(trace.Append(nil, nodes...))
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all
}

// traced are the processes that a launcher has started. It passes the signals for traces on to them.
type traced struct {
	mu   sync.Mutex
	all  []*spawn.Process
	once sync.Once
}

// startChild starts a process of this program.
func (a *app) startChild(exe string, args []string, line []byte, files ...*os.File) (p *spawn.Process, err error) {
	err = traceSignal.starting(func() error {
		p, err = spawn.Start(exe, args, line, a.childErrors(), files...)
		return err
	})
	return p, err
}

func (t *traced) add(p *spawn.Process) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, p)
	t.once.Do(func() {
		traceSignal.listen(func() {
			t.mu.Lock()
			defer t.mu.Unlock()
			for _, p := range t.all {
				p.Signal(traceSignals()[0])
			}
		})
	})
}
