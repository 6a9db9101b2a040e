package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helped returns the arguments that show the help of a command if args ask for it: by the command help, or by --help,
// -h or --help-all anywhere before --, even where a flag would take it as its value. Otherwise it returns args.
func helpArgs(root *cobra.Command, args []string) []string {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd(args...)
	addExamples(root)
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // __complete, of a shell
		return args
	}
	end := slices.Index(args, "--")
	if end < 0 {
		end = len(args)
	}
	asks := func(arg string) bool { return arg == "--help" || arg == "-h" || arg == "--"+helpAll }
	words := slices.DeleteFunc(slices.Clone(args[:end]), asks)
	switch {
	case len(words) > 0 && words[0] == "help":
		words = words[1:]
	case len(words) == end:
		return args
	}
	c, rest, err := root.Find(words)
	if err != nil || c == root && unknown(root, rest) {
		return words // the error names the unknown command
	}
	words = append(strings.Fields(c.CommandPath())[1:], "--help")
	if slices.Contains(args[:end], "--"+helpAll) && c.Flags().Lookup(helpAll) != nil {
		words = append(words, "--"+helpAll)
	}
	return words
}

// unknown reports whether the words, after flags of the root, name a command that does not exist.
func unknown(root *cobra.Command, words []string) bool {
	for i := 0; i < len(words); i++ {
		name, isFlag := strings.CutPrefix(words[i], "--")
		if !isFlag {
			return true
		}
		if f := root.PersistentFlags().Lookup(name); f != nil && f.NoOptDefVal == "" {
			i++ // its value
		}
	}
	return false
}

func addExamples(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  obstacle help solve"
		case "completion":
			c.Example = "  obstacle completion bash"
			c.Args = knownSubcommand
			c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
			for _, shell := range c.Commands() {
				shell.Example = "  obstacle completion " + shell.Name()
			}
		}
	}
}
