// Command release builds the files of a release from the checkout that it runs in: for each target an archive with the
// program, manual pages, completions and an SBOM, Debian packages, and SHA256SUMS. The bits depend on the commit, the
// version of Go and the versions in go.mod and in this package, and on nothing else. See docs/releases.md.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"net/mail"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
)

// defaultTargets are the systems that a release supports.
const defaultTargets = "linux/amd64,linux/arm64,linux/riscv64,darwin/arm64"

// program is the package that is released.
const program = "./cmd/obstacle"

func main() {
	out := flag.String("out", "dist", "directory for the files; it must be empty or contain an earlier release")
	targets := flag.String("targets", defaultTargets, "systems to build for, as GOOS/GOARCH,…")
	deb := flag.Bool("deb", true, "build Debian packages of the Linux targets amd64 and arm64")
	maintainer := flag.String("maintainer", defaultMaintainer, "maintainer of the Debian packages, as NAME <ADDRESS>")
	flag.Parse()
	if _, err := mail.ParseAddress(*maintainer); err != nil {
		fmt.Fprintf(os.Stderr, "release: -maintainer %q: want NAME <ADDRESS>: %v\n", *maintainer, err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *out, strings.Split(*targets, ","), *deb, *maintainer); err != nil {
		fmt.Fprintf(os.Stderr, "release: %v\n", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, targets []string, deb bool, maintainer string) error {
	work, err := os.MkdirTemp("", "release")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	if err := emptyDirectory(out); err != nil {
		return err
	}
	shared, err := prepare(ctx, work)
	if err != nil {
		return err
	}
	shared.maintainer = maintainer
	for _, name := range targets {
		t, err := parseTarget(name)
		if err != nil {
			return err
		}
		if err := shared.release(ctx, t, out, deb); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return writeSums(out)
}

// emptyDirectory makes a directory, and removes the files of an earlier release from it.
func emptyDirectory(name string) error {
	if err := os.MkdirAll(name, 0o755); err != nil {
		return err
	}
	files, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Name() != sums && !strings.HasPrefix(f.Name(), "obstacle_") {
			return fmt.Errorf("%s contains %s, which is not of a release: give another directory by -out", name, f.Name())
		}
	}
	for _, f := range files {
		if err := os.Remove(filepath.Join(name, f.Name())); err != nil {
			return err
		}
	}
	return nil
}

const sums = "SHA256SUMS"

// writeSums writes the SHA-256 of every file of a directory, as sha256sum prints it.
func writeSums(directory string) error {
	names, err := filepath.Glob(filepath.Join(directory, "obstacle_*"))
	if err != nil {
		return err
	}
	slices.Sort(names)
	var text strings.Builder
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(content), filepath.Base(name))
	}
	fmt.Print(text.String())
	return os.WriteFile(filepath.Join(directory, sums), []byte(text.String()), 0o644)
}

// output runs a command with more variables in its environment and returns what it prints.
func output(ctx context.Context, environment []string, name string, args ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, name, args...)
	c.Env = append(os.Environ(), environment...)
	text, err := c.Output()
	if failure, is := errors.AsType[*exec.ExitError](err); is {
		said := strings.TrimSpace(string(failure.Stderr))
		return nil, fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, said)
	}
	return text, err
}
