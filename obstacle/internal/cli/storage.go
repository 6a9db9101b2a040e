package cli

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/obstacle/internal/engine"
)

// access is what a command does with a file or directory that the command line names.
type access int

const (
	reads access = iota + 1
	writes
)

// fileFlags are the flags that name files or directories.
func fileFlags() map[string]access {
	return map[string]access{
		"checkpoint": writes, "csv": writes, "dir": writes, "latex": writes, "meet": writes, "out": writes, "report": writes,
		"trace": writes, "hosts": reads, "http-token-file": reads, "initial": reads, "model": reads, "of": reads,
		"problem": reads, "secret-file": reads, "topology": reads,
	}
}

// fileArguments are the commands whose arguments name files or directories.
func fileArguments() map[string]access {
	return map[string]access{
		"init": writes, "resume": writes, "secret": writes, "check": reads, "clusters": reads, "compare": reads,
		"convergence": reads, "explain": reads, "export": reads, "simulate": reads, "solve": reads, "stats": reads,
	}
}

// namedFile is a file or directory that the command line names.
type namedFile struct {
	flag, name string // the flag is empty for an argument
	access     access
}

func (n namedFile) String() string {
	if n.flag == "" {
		return n.name
	}
	return "--" + n.flag + " " + n.name
}

// namedFiles returns the files and directories that the command line names, with the host list of the batch system.
func namedFiles(c *cobra.Command, args []string) (all []namedFile) {
	if as := fileArguments()[c.Name()]; as != 0 {
		for _, name := range args {
			all = append(all, namedFile{"", name, as})
		}
	}
	flags := fileFlags()
	c.Flags().Visit(func(f *pflag.Flag) {
		as := flags[f.Name]
		if as == 0 {
			return
		}
		names := []string{f.Value.String()}
		if several, is := f.Value.(pflag.SliceValue); is {
			names = several.GetSlice()
		}
		for _, name := range names {
			if f.Name == "hosts" && name == "auto" {
				if _, name, _ = engine.Source(os.LookupEnv); name == "" {
					continue
				}
			}
			all = append(all, namedFile{f.Name, name, as})
		}
	})
	return all
}

// checkFiles returns an error if an output is -, or if the storage of a file that the command line names does not answer. So
// no later access blocks for ever before the run. A line says what the program waits for, and a signal ends the wait.
func (a *app) checkFiles(c *cobra.Command, args []string) error {
	all := namedFiles(c, args)
	for _, n := range all {
		if n.name == "-" && n.access == writes {
			return usage("%v: outputs do not go to standard output by name: name a file; ./- is one that is called -", n)
		}
	}
	if len(all) == 0 {
		return nil
	}
	limit, why := defaultPeerTimeout, ""
	if f := c.Flags().Lookup("peer-timeout"); f != nil {
		if set, err := time.ParseDuration(f.Value.String()); err == nil && set > 0 {
			limit, why = set, " (--peer-timeout)"
		}
	}
	ctx, stop := signal.NotifyContext(c.Context(), stopSignals()...)
	defer stop()
	for _, n := range all {
		touch := func() error { n.touch(c.Name() == "explain"); return nil }
		if err := a.answers(ctx, n.String(), limit, why, touch); err != nil {
			return err
		}
	}
	return nil
}

// answers calls touch, which blocks until the storage of a file answers. It returns an error after the limit or with ctx.
func (a *app) answers(ctx context.Context, name string, limit time.Duration, why string, touch func() error) error {
	defer a.sayAfter(2*quietTime, "waiting for "+name+": its file system does not answer; Ctrl-C ends the program")()
	err := limited(ctx, limit, touch)
	if _, is := errors.AsType[*unanswered](err); !is {
		return err
	}
	if ctx.Err() != nil {
		return &exitError{ExitStopped, fmt.Errorf("interrupted while it waited for the file system of %s; nothing was run", name)}
	}
	return failed(fmt.Errorf("%s: its file system has not answered for %v%s: check that it is not frozen and that its server "+
		"can be reached, or name a file elsewhere", name, limit, why))
}

// touch blocks until the storage of a file answers, and changes nothing. It opens no pipe: that would release a writer. For a
// file to be written it removes a file that does not exist, which waits on a frozen file system as creating one does. A command that only
// explains never does.
func (n namedFile) touch(explains bool) {
	i, err := os.Stat(n.name)
	if n.access == writes && !explains {
		directory := n.name
		if err != nil || !i.IsDir() {
			directory = filepath.Dir(n.name)
		}
		_ = os.Remove(filepath.Join(directory, "."+rand.Text()))
		return
	}
	if err != nil || !i.Mode().IsRegular() && !i.IsDir() {
		return // the command says what is wrong
	}
	if f, err := os.Open(n.name); err == nil { // a network file system asks its server
		f.Close()
	}
}
