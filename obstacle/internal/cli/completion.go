package cli

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/problems/file"
	clusterfile "github.com/p2pdc/p2pdc/simulate/cluster/file"
)

// complete adds the completion of arguments and of the values of flags to all commands.
func (a *app) complete(root *cobra.Command) {
	all := []*cobra.Command{root}
	for i := 0; i < len(all); i++ {
		all = append(all, all[i].Commands()...)
	}
	for _, c := range all {
		switch c.Name() {
		case "solve", "explain", "compare", "simulate", "convergence":
			c.ValidArgsFunction = one(a.problemNames, "yaml", "yml")
		case "check":
			c.ValidArgsFunction = one(nil, "yaml", "yml")
		case "init":
			c.ValidArgsFunction = one(nil, "yaml", "yml")
		case "clusters":
			c.ValidArgsFunction = one(clusterfile.Builtins, "yaml", "yml")
		case "resume", "secret", "help", "completion", "export", "stats":
		default:
			if c != root {
				c.ValidArgsFunction = cobra.NoFileCompletions
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if words := a.flagValues(c.Name(), f.Name); words != nil && f.NoOptDefVal == "" {
				_ = c.RegisterFlagCompletionFunc(f.Name, fromWords(words, f.Value)) // the flag exists
			} else if ends := fileEnds(f.Name); ends != nil {
				_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, word string) (
					[]cobra.Completion, cobra.ShellCompDirective,
				) {
					return files(word, ends), cobra.ShellCompDirectiveNoSpace
				})
			}
		})
	}
}

func (a *app) problemNames() []string { return a.catalog.Problems.Names() }

// flagValues returns the words to complete for a flag of a command, nil if it takes others.
func (a *app) flagValues(command, flag string) []string {
	c := a.catalog
	switch flag {
	case "format":
		if command == "export" {
			return formatNames()
		}
	case "scheme", "schemes":
		if command == "stack" || command == "calibrate" {
			return []string{"sync", "async"}
		}
		return schemeWords(c.Schemes.Names())
	case "method":
		return methodNames(c)
	case "methods":
		return methodNames(c)[1:]
	case "network":
		return append([]string{rail.Auto}, c.Links.Names()...)
	case "congestion":
		return c.Protocols.Labels(ctp.GroupCongestion)
	case "rows":
		return c.Protocols.Labels("")
	case "problem":
		return c.Problems.Names()
	case "from":
		return file.Written()
	case "model":
		return append(clusterfile.Builtins(), "this-machine")
	case "partition":
		return []string{"auto", "slabs", "boxes"}
	case "keepers":
		return []string{"1", "3", "5"}
	}
	return wordsOf(flag)
}

// schemeWords returns the words of schemes. delay is followed by the number of sweeps.
func schemeWords(names []string) []string {
	words := slices.Clone(names)
	if i := slices.Index(words, "delay"); i >= 0 {
		words[i] = "delay:1"
	}
	return words
}

// fileEnds returns the ends of the names of files that a flag takes, nil if it takes none.
func fileEnds(flag string) []string {
	return map[string][]string{
		"initial": {"npy"}, "csv": {"csv"}, "latex": {"tex"}, "topology": {"yaml", "yml"},
	}[flag]
}

// fromWords completes one of the words, or the last word of a list.
func fromWords(words []string, v pflag.Value) cobra.CompletionFunc {
	_, list := v.(pflag.SliceValue)
	return func(_ *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := ""
		if i := strings.LastIndex(word, ","); list && i >= 0 {
			before, word = word[:i+1], word[i+1:]
		}
		var out []cobra.Completion
		for _, w := range words {
			if strings.HasPrefix(w, word) && !slices.Contains(strings.Split(before, ","), w) {
				out = append(out, before+w)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}

// one completes a single argument: one of the names, or a file whose name ends so.
func one(names func() []string, ends ...string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var out []cobra.Completion
		if names != nil {
			for _, n := range names() {
				if strings.HasPrefix(n, word) {
					out = append(out, n)
				}
			}
		}
		found := files(word, ends)
		if len(out) == 0 && len(found) == 1 && strings.HasSuffix(found[0], "/") {
			return found, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
		}
		return append(out, found...), cobra.ShellCompDirectiveNoFileComp
	}
}

// files returns the files and directories whose path begins with word and, if it is a file, has one of the ends.
func files(word string, ends []string) (out []string) {
	all, _ := filepath.Glob(globText(word) + "*") // a pattern that is not valid matches nothing
	for _, name := range all {
		switch ext := strings.TrimPrefix(filepath.Ext(name), "."); {
		case isDirectory(name) && len(ends) > 0:
			out = append(out, name+"/")
		case slices.Contains(ends, ext):
			out = append(out, name)
		}
	}
	return out
}

// globText escapes the characters that have a meaning in patterns.
func globText(word string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(word)
}
