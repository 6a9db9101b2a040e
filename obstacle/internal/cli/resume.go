package cli

import (
	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/obstacle/internal/checkpoint"
)

func (a *app) resumeCommand() *cobra.Command {
	s := &solveFlags{request: &request{catalog: a.catalog}}
	c := &cobra.Command{
		Use:   "resume DIR",
		Short: "Continue a run from its checkpoint",
		Long: `resume continues a run from the newest whole checkpoint in DIR, which obstacle
solve --checkpoint DIR wrote. The checkpoint holds the problem, its grid and the
values to start from, and the defaults of --scheme, --method and its flags, and
--tol. Every other flag is that of solve, so the number of peers, the partition,
the scheme and the method may be others than before. The answer and the exit codes
are those of solve. --max-sweeps and --max-time bound the resumed run alone.

New checkpoints are written to DIR, or to the directory of --checkpoint.`,
		Example: `  obstacle solve membrane --n 128 --checkpoint run.checkpoint --max-time 1h
  obstacle resume run.checkpoint --peers 3 --scheme async`,
		Args: oneArgument("directory"),
		RunE: func(c *cobra.Command, args []string) error { return a.resume(c, s, args[0]) },
	}
	f := c.Flags()
	s.add(f)
	for _, name := range givenByCheckpoint() {
		_ = f.MarkHidden(name) // it exists
	}
	f.Lookup("checkpoint").Usage = "directory for new checkpoints (default: DIR)"
	return grouped(c)
}

// givenByCheckpoint are flags of solve that resume refuses.
func givenByCheckpoint() []string { return []string{"n", "param", "initial"} }

func (a *app) resume(c *cobra.Command, s *solveFlags, directory string) error {
	done, err := a.asTask(c, s)
	if done || err != nil {
		s.refuse(err)
		return err
	}
	err = a.resumeHere(c, s, directory)
	s.refuse(err)
	return err
}

func (a *app) resumeHere(c *cobra.Command, s *solveFlags, directory string) error {
	var err error
	if s.from, err = checkpoint.Open(directory, a.catalog.Problems); err != nil {
		return badInput(err)
	}
	for _, skipped := range s.from.Skipped {
		a.log.Warn().Msgf("%v; using the older checkpoint %s", skipped, s.from.Name)
	}
	if err := s.adopt(c.Flags()); err != nil {
		return err
	}
	if s.checkpoints.directory == "" {
		s.checkpoints.directory = directory
	}
	return a.solveHere(c, s, "")
}
