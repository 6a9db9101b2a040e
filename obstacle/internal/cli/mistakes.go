package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/p2pdc/p2pdc/internal/spelling"
)

// flagMistake returns the error of a flag that could not be parsed: it names the flag and says what would be right.
func flagMistake(c *cobra.Command, err error) error {
	see := "; see " + c.CommandPath() + " --help"
	if e, is := errors.AsType[*pflag.NotExistError](err); is {
		name, given := e.GetSpecifiedName(), "--"+e.GetSpecifiedName()
		if short := e.GetSpecifiedShortnames(); short != "" { // -tol is -t -o -l, none of which exists
			name, given = short, "-"+short
			if _, err := os.Stat(given); err == nil {
				return usage("unknown flag: %s; the file of this name is %s", given, spelling.File(given))
			}
		}
		return usage("unknown flag: %s%s%s", given, intended(c, name), see)
	}
	if e, is := errors.AsType[*pflag.InvalidValueError](err); is {
		f := e.GetFlag()
		want := map[string]string{
			"int": "a whole number", "uint64": "a whole number, not negative", "float64": "a number, such as 0.5 or 1e-6",
			"duration": "a time with its unit, such as 90s or 5m", "bool": "true or false",
			"intSlice": "whole numbers, such as 2,4", "float64Slice": "numbers, such as 1,2.5",
		}[f.Value.Type()]
		return usage("--%s %q: want %s%s", f.Name, e.GetValue(), cmp.Or(want, f.Usage), see)
	}
	if e, is := errors.AsType[*pflag.ValueRequiredError](err); is {
		return usage("--%s needs a value: %s%s", e.GetFlag().Name, e.GetFlag().Usage, see)
	}
	return usage("%w%s", err, see)
}

// synonyms are the names of flags in other programs, and what these flags are called here, with a value where one flag has several.
var synonyms = map[string]string{
	"accuracy": "tol", "async": "scheme async", "asynchronous": "scheme async", "cores": "threads", "eps": "tol", "epsilon": "tol", "grid": "n", "iterations": "max-sweeps",
	"j": "threads", "json": "format json", "maxiter": "max-sweeps", "max-iterations": "max-sweeps", "mode": "scheme",
	"np": "peers", "nproc": "peers", "nprocs": "peers", "o": "out", "p": "peers",
	"points": "n", "processes": "peers", "procs": "peers", "quiet": "log-level", "resolution": "n", "rtol": "tol",
	"size": "n", "solver": "method", "t": "tol", "timeout": "max-time", "v": "log-level", "verbose": "log-level",
	"workers": "peers",
}

// intended suggests the flag that a name without its dashes may stand for: one of this name, one that other programs
// call so, a similar one, or one of another command. It returns "" if there is none.
func intended(c *cobra.Command, name string) string {
	known := flagNames(c)
	for _, same := range []string{name, synonyms[strings.ToLower(name)]} {
		if flag, _, _ := strings.Cut(same, " "); slices.Contains(known, "--"+flag) {
			return spelling.Suggest("--"+same, []string{"--" + same})
		}
	}
	if len(name) == 1 {
		return ""
	}
	return cmp.Or(spelling.Suggest("--"+name, known), others(c, name))
}

func flagNames(c *cobra.Command) (names []string) {
	for _, set := range []*pflag.FlagSet{c.LocalFlags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, "--"+f.Name)
			}
		})
	}
	return names
}

// others names the other commands that have a flag.
func others(c *cobra.Command, flag string) string {
	var have []string
	for _, o := range c.Root().Commands() {
		if f := o.Flags().Lookup(flag); o != c && f != nil && !f.Hidden {
			have = append(have, o.Name())
		}
	}
	if len(have) == 0 {
		return ""
	}
	more := ""
	if len(have) > 3 {
		have, more = have[:3], ", …"
	}
	return " (it is a flag of obstacle " + strings.Join(have, ", ") + more + ")"
}

// openMistake returns the error of a file that cannot be opened, with what to do if it does not exist.
func openMistake(what, name string, err error, otherwise string) error {
	if _, stopped := errors.AsType[*exitError](err); stopped {
		return err
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s %s: %w", what, name, pathless(err))
	}
	return fmt.Errorf("%s %s: there is no such file%s; %s", what, name, similarFile(name), otherwise)
}

// similarFile suggests a file with a similar name in the same directory.
func similarFile(name string) string {
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil {
		return ""
	}
	var known []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == filepath.Ext(name) && e.Type().IsRegular() {
			known = append(known, e.Name())
		}
	}
	return spelling.Suggest(filepath.Base(name), known)
}

// checkProblemFile returns an error with a hint for a problem file that does not exist.
func checkProblemFile(ref string) error {
	if ext := filepath.Ext(ref); ext != ".yaml" && ext != ".yml" {
		return nil
	}
	if _, err := os.Stat(ref); errors.Is(err, fs.ErrNotExist) {
		return usage("%s: there is no such file%s; obstacle init %s writes one to start from", ref, similarFile(ref),
			spelling.File(ref))
	}
	return nil
}

// checkAddress validates the address that a flag gives.
func checkAddress(flag, address string) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" || strings.ContainsAny(address, " \t") {
		return usage("%s %q: want HOST:PORT, such as 10.0.0.1:7000", flag, address)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return usage("%s %q: there is no port %s; want a number up to 65535", flag, address, port)
	}
	return nil
}

// needsText are the flags without meaning if their text is empty, as that of a variable of the shell that is not set.
var needsText = []string{
	"checkpoint", "csv", "hosts", "http", "http-token-file", "initial", "latex", "live", "meet", "metrics", "model", "of", "peer",
	"rendezvous", "report", "secret-file", "status", "topology", "trace",
}

// checkGiven returns an error for an argument or a flag that is given without a text.
func checkGiven(c *cobra.Command, args []string) (err error) {
	if strings.HasPrefix(c.Name(), "__") { // a shell completes an empty word
		return nil
	}
	if slices.Contains(args, "") {
		return usage("an argument of %s is empty; see %s --help", c.CommandPath(), c.CommandPath())
	}
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Value.String() == "" && slices.Contains(needsText, f.Name) {
			err = usage("--%s is empty: give a value, or leave the flag out", f.Name)
		}
	})
	return err
}

// listenMistake returns the error of an address where a server cannot listen.
func listenMistake(flag, address string, err error) error {
	if e := checkAddress(flag, address); e != nil {
		return e
	}
	return usage("%s %s: %w; give an address of this host with a free port, or port 0 for any", flag, address,
		listenReason(err))
}

// listenReason removes the address, which the message has, from an error of net.Listen.
func listenReason(err error) error {
	if e, is := errors.AsType[*os.SyscallError](err); is {
		return e.Err
	}
	if e, is := errors.AsType[*net.OpError](err); is {
		return e.Err
	}
	return err
}

// knownSubcommand is the check of the arguments of a command that has subcommands only.
func knownSubcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	names := commandNames(c)
	slices.Sort(names)
	return usage("%s has no %q%s; it has %s", c.CommandPath(), args[0], spelling.Suggest(args[0], names),
		strings.Join(names, ", "))
}
