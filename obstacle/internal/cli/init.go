package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/problems/file"
)

// initFlags are the flags of init.
type initFlags struct {
	kind, from string
	dimension  int
	params     []string
	force      bool
}

func (a *app) initCommand() *cobra.Command {
	o := &initFlags{}
	c := &cobra.Command{
		Use:   "init FILE",
		Short: "Write a commented problem file to start from",
		Long: `init writes a problem file with a comment for every key. It solves as it is. --kind
selects what it describes, --from a built-in problem whose formulas are written. A
file that exists is not changed without --force.`,
		Example: `  obstacle init my.yaml
  obstacle init put.yaml --kind option
  obstacle init mine.yaml --from torsion --param c=8`,
		Args: oneArgument("file"),
		RunE: func(c *cobra.Command, args []string) error {
			for _, name := range []string{"kind", "dimension"} {
				if o.from != "" && c.Flags().Changed(name) {
					return usage("--from and --%s: give one of them; %s has a kind and a dimension", name, o.from)
				}
			}
			return a.init(o, args[0])
		},
	}
	f := c.Flags()
	f.StringVar(&o.kind, "kind", "membrane", "what the file describes: "+catalog.Words(file.Kinds())+
		" (moving: an obstacle that depends on time; option: an American option)")
	f.IntVar(&o.dimension, "dimension", 0, "1, 2 or 3 (0: 2, of an option 1); of an option the number of assets")
	f.StringVar(&o.from, "from", "", "write this built-in problem: "+strings.Join(file.Written(), ", "))
	f.StringArrayVar(&o.params, "param", nil, "with --from: NAME=VALUE, a parameter of the built-in problem; repeatable")
	f.BoolVar(&o.force, "force", false, "replace a file that exists")
	return c
}

func (a *app) init(o *initFlags, name string) error {
	text, err := o.text(a.catalog)
	if err != nil {
		return err
	}
	if ext := filepath.Ext(name); ext != ".yaml" && ext != ".yml" {
		return usage("%s: problem files end in .yaml; give for example %s.yaml", name, strings.TrimSuffix(name, ext))
	}
	if err := checkWritable(name); err != nil {
		return err
	}
	if output.IsDevice(name) {
		return usage("%s is a pipe or a device: a problem is written to a regular file, which is read again", name)
	}
	if err := writeNew(name, text, o.force); err != nil {
		return err
	}
	s, err := file.Read(name)
	if err != nil {
		return failed(err)
	}
	v := struct {
		File      string `json:"file"`
		Dimension int    `json:"dimension"`
		Next      []try  `json:"next"`
	}{name, s.Dimension(), []try{
		{"obstacle explain " + spelling.File(name), "what it means, and what would be chosen to solve it"},
		{"obstacle solve " + spelling.File(name), "its solution"},
	}}
	return a.print(v, func(w io.Writer) {
		fmt.Fprintf(w, "%s: written\n", spelling.Visible(name))
		for _, t := range v.Next {
			fmt.Fprintf(w, "  %s   # %s\n", t.Command, t.Shows)
		}
	})
}

// text returns the text of the file. Its errors are bad input.
func (o *initFlags) text(c *catalog.Set) (string, error) {
	if o.from == "" {
		if err := checkWord("kind", o.kind); err != nil {
			return "", err
		}
		switch {
		case len(o.params) > 0:
			return "", usage("--param is for --from; edit the numbers in the file instead")
		case o.dimension < 0 || o.dimension > 3:
			return "", usage("--dimension %d: want 1, 2 or 3", o.dimension)
		}
		text, err := file.Sample(o.kind, o.dimension)
		return text, failed(err)
	}
	b, err := c.Problems.Lookup(o.from)
	if err == nil {
		b, err = b.With(o.params)
	}
	if err != nil {
		return "", badInput(fmt.Errorf("--from: %w", err))
	}
	text, err := file.SampleOf(b)
	if err != nil {
		return "", usage("--from: %w; give one of %s", err, strings.Join(file.Written(), ", "))
	}
	return text, nil
}

// writeNew writes a file. One that exists is replaced only by force.
func writeNew(name, text string, force bool) error {
	put := func(w io.Writer) error { _, err := io.WriteString(w, text); return err }
	if force {
		return failed(output.Save(name, put))
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666) //nolint:gosec // subject to the umask
	switch {
	case errors.Is(err, fs.ErrExist):
		return usage("%s exists already: give another name, or --force to replace it", name)
	case err != nil:
		return failed(fmt.Errorf("%s cannot be written: %w", name, pathless(err)))
	}
	if err := errors.Join(put(f), f.Close()); err != nil {
		return failed(fmt.Errorf("%s cannot be written: %w", name, pathless(err)))
	}
	return nil
}
