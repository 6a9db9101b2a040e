package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// helped returns the arguments that show a command's help where the call asks for it: --help
// or -h anywhere before --, also where a flag would take it for its value, or the command
// help. Other arguments are returned as they are.
func helped(root *cobra.Command, args []string) []string {
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
	asks := func(arg string) bool { return arg == "--help" || arg == "-h" }
	words := slices.DeleteFunc(slices.Clone(args[:end]), asks)
	switch {
	case len(words) > 0 && words[0] == "help":
		words = words[1:]
	case len(words) == end:
		return args
	}
	c, rest, err := root.Find(words)
	if err != nil || c == root && unknown(root, rest) {
		return words // there is no such command, which is said
	}
	return append(strings.Fields(c.CommandPath())[1:], "--help")
}

// unknown tells whether the words name a command that the root does not have: they begin with
// none of its flags.
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

// addExamples gives examples to the commands that the library has made.
func addExamples(root *cobra.Command) {
	for _, c := range root.Commands() {
		switch c.Name() {
		case "help":
			c.Example = "  obstacle help solve"
		case "completion":
			c.Example = "  obstacle completion bash"
			for _, shell := range c.Commands() {
				shell.Example = "  obstacle completion " + shell.Name()
			}
		}
	}
}
