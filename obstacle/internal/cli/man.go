package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
)

func (a *app) manCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:   "man",
		Short: "Write the manual pages of all commands",
		Long: `man writes one manual page per command to a directory: obstacle.1, obstacle-solve.1
and so on. Their date is SOURCE_DATE_EPOCH (seconds since 1970) if it is set, else the
time of the commit that the program was built from, so that one source gives the same
bytes at all times.`,
		Example: `  obstacle man --dir man1
  SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) obstacle man --dir man1`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if dir == "" {
				return usage("man needs --dir DIR, the directory that the pages are written to")
			}
			date, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"), build.Describe().CommitTime)
			if err != nil {
				return badInput(err)
			}
			files, err := writePages(c.Root(), dir, date)
			if err != nil {
				return err
			}
			v := struct {
				Directory string   `json:"directory"`
				Date      string   `json:"date"`
				Files     []string `json:"files"`
			}{dir, date.Format(time.DateOnly), files}
			return a.print(v, func(w io.Writer) {
				fmt.Fprintf(w, "%d manual pages in %s; read one with man -l %s\n", len(files), dir,
					filepath.Join(dir, files[len(files)-1]))
			})
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "directory that the pages are written to; it is made if it does not exist")
	return c
}

// sourceDate returns the date of the pages: epoch, the value of SOURCE_DATE_EPOCH, else commit, the time of the
// commit in RFC 3339. Both are "" if unknown.
func sourceDate(epoch, commit string) (time.Time, error) {
	switch {
	case epoch != "":
		s, err := strconv.ParseInt(epoch, 10, 64)
		if err != nil || s < 0 || s > lastSecond {
			return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH=%q: want a number of seconds since 1970", epoch)
		}
		return time.Unix(s, 0).UTC(), nil
	case commit != "":
		t, err := time.Parse(time.RFC3339, commit)
		return t.UTC(), err
	}
	return time.Time{}, errors.New("the date of the pages is unknown, since this program was built outside a Git " +
		"repository: set SOURCE_DATE_EPOCH to a number of seconds since 1970")
}

const lastSecond = 253402300799 // of the year 9999

// writePages writes the pages of c and of the commands below it, and returns the names of the files, that of c last.
func writePages(c *cobra.Command, dir string, date time.Time) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // manual pages are for everybody
		return nil, badInput(fmt.Errorf("--dir %s: %w; give a directory that can be written", dir, pathless(err)))
	}
	var files []string
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		below, err := writePages(sub, dir, date)
		if err != nil {
			return nil, err
		}
		files = append(files, below...)
	}
	name := strings.ReplaceAll(c.CommandPath(), " ", "-") + ".1"
	page, err := manPage(c, date)
	if err != nil {
		return nil, failed(err)
	}
	err = output.Replace(filepath.Join(dir, name), func(w io.Writer) error {
		_, err := w.Write(page)
		return err
	})
	return append(files, name), failed(err)
}

// manPage returns the page of one command in roff.
func manPage(c *cobra.Command, date time.Time) ([]byte, error) {
	c.DisableAutoGenTag = true // its date would be that of today
	var page bytes.Buffer
	err := doc.GenMan(c, &doc.GenManHeader{
		Section: "1", Date: &date, Source: "obstacle " + build.Version(), Manual: "User commands",
	}, &page)
	return ascii(page.Bytes()), err
}

// ascii writes other characters as the escapes of groff and mandoc, which do not depend on the locale.
func ascii(page []byte) []byte {
	var out []byte
	for _, r := range string(page) {
		if r < utf8.RuneSelf {
			out = append(out, byte(r))
		} else {
			out = fmt.Appendf(out, `\[u%04X]`, r)
		}
	}
	return out
}

// pathless returns the reason of an error about a file without the file, which the message names already.
func pathless(err error) error {
	var e *fs.PathError
	if errors.As(err, &e) {
		return cmp.Or(e.Err, err)
	}
	return err
}
