package cli

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// manCommand writes the manual pages, for packages of the program.
func (a *app) manCommand() *cobra.Command {
	directory := ""
	c := &cobra.Command{
		Use:     "man",
		Short:   "Write the manual pages to a directory",
		Example: "  obstacle man --dir man1",
		Hidden:  true,
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if !isDirectory(directory) {
				return usage("--dir %q: there is no such directory; make it first", directory)
			}
			root := c.Root()
			root.DisableAutoGenTag = true // a date, which would differ from day to day
			if err := doc.GenManTree(root, &doc.GenManHeader{Section: "1", Source: "obstacle"}, directory); err != nil {
				return failed(fmt.Errorf("man: %w", err))
			}
			return nil
		},
	}
	c.Flags().StringVar(&directory, "dir", ".", "directory for the pages")
	return c
}
