package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/p2pdc/p2pdc/internal/input"
	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/build"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap/driver"
)

const secretBytes = 32

const minSecret = 8

// maxSecret is the number of bytes that are read from a secret file.
const maxSecret = 4096

func (a *app) secretCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "secret FILE",
		Short: "Generate the secret of a run over several hosts",
		Long: `secret writes a random secret of 256 bits to FILE, which only you can read. It
never overwrites a file and never prints the secret. Copy FILE to every host of
the run, and give it to obstacle solve and obstacle peer with --secret-file.`,
		Example: `  obstacle secret run.secret
  scp -p run.secret other-host:`,
		Args: oneArgument("FILE"),
		RunE: func(_ *cobra.Command, args []string) error { return a.newSecret(args[0]) },
	}
}

type secretFile struct {
	File string `json:"file"`
	Bits int    `json:"bits"`
	Mode string `json:"mode"` // octal
}

func (a *app) newSecret(name string) error {
	var secret [secretBytes]byte
	_, _ = rand.Read(secret[:]) // never fails (crypto/rand)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return usage("%s exists already: name another file, or delete it first", name)
	}
	if err != nil {
		return cmp.Or(checkWritable(name), failed(err))
	}
	_, err = fmt.Fprintln(f, base64.StdEncoding.EncodeToString(secret[:]))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return failed(errors.Join(err, os.Remove(name))) // remove the incomplete file
	}
	made := secretFile{File: name, Bits: 8 * secretBytes, Mode: "0600"}
	return a.print(made, func(w io.Writer) {
		fmt.Fprintf(w, "%s: a new secret of %d bits; copy it to every host of the run\n", made.File, made.Bits)
	})
}

// identity returns the identity of a run whose secret is in a file.
func (a *app) identity(ctx context.Context, secretFile string) (rendezvous.Identity, error) {
	secret, err := a.secret(ctx, secretFile)
	if err != nil {
		return rendezvous.Identity{}, err
	}
	return a.secretIdentity(secret)
}

func (a *app) secretIdentity(secret []byte) (rendezvous.Identity, error) {
	return a.identify(build.Version(), build.Fingerprint(a.catalog), secret)
}

// keyIdentity returns the identity of a run with that key.
func (a *app) keyIdentity(key driver.Key) (rendezvous.Identity, error) {
	return rendezvous.NewKeyIdentity(build.Version(), build.Fingerprint(a.catalog), key)
}

// secret returns the first line of a file; - is standard input.
func (a *app) secret(ctx context.Context, name string) ([]byte, error) {
	if name != "-" {
		i, err := os.Stat(name)
		// Kubernetes mounts a Secret so, of root, for the group of the process.
		mounted := err == nil && i.Mode().Perm() == 0o440 && !input.Own(i)
		if err == nil && runtime.GOOS != "windows" && i.Mode().IsRegular() && i.Mode().Perm()&0o077 != 0 && !mounted {
			a.log.Warn().Str("file", name).Msg("other users of this host can read the run's secret: chmod 600")
		}
	}
	line, err := a.readLine(ctx, "--secret-file", name, maxSecret)
	if err != nil {
		return nil, openMistake("--secret-file", name, err, "obstacle secret "+spelling.File(name)+" makes one")
	}
	secret := []byte(strings.TrimSpace(string(line)))
	if len(secret) < minSecret {
		return nil, fmt.Errorf("--secret-file %s: the secret has %d characters, at least %d are required; "+
			"obstacle secret generates one", name, len(secret), minSecret)
	}
	return secret, nil
}

// keyLine returns the line that a launcher writes to the standard input of a peer that it starts.
func keyLine(key driver.Key) []byte { return append(hex.AppendEncode(nil, key[:]), '\n') }

// secretPrefix begins a line that holds the secret of a run instead of its key.
const secretPrefix = "secret "

// secretLine is keyLine for a run whose secret comes from a file.
func secretLine(secret []byte) []byte {
	return append(base64.StdEncoding.AppendEncode([]byte(secretPrefix), secret), '\n')
}

// inheritedIdentity reads the run's key or secret from standard input, whose other end the launcher keeps open. The
// returned context ends with the launcher.
func (a *app) inheritedIdentity(ctx context.Context) (rendezvous.Identity, context.Context, error) {
	in := bufio.NewReader(io.LimitReader(a.in, 2*maxSecret))
	line, err := input.Within(ctx, func() ([]byte, error) { return in.ReadBytes('\n') })
	if ctx.Err() != nil {
		err = &exitError{ExitStopped, errors.New("interrupted before the launcher sent the key of the run")}
		return rendezvous.Identity{}, ctx, err
	}
	line = bytes.TrimSpace(line)
	var key driver.Key
	coded, isSecret := bytes.CutPrefix(line, []byte(secretPrefix))
	var secret []byte
	switch {
	case err != nil:
	case isSecret:
		secret, err = base64.StdEncoding.AppendDecode(nil, coded)
	case len(line) != hex.EncodedLen(len(key)):
		err = fmt.Errorf("a key of %d characters", len(line))
	default:
		_, err = hex.Decode(key[:], line)
	}
	if err != nil {
		err = fmt.Errorf("--spawned is reserved for obstacle solve, which writes a key to standard input: %w", err)
		return rendezvous.Identity{}, ctx, err
	}
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, a.in)
		cancel()
	}()
	if isSecret {
		id, err := a.secretIdentity(secret)
		return id, ctx, err
	}
	id, err := a.keyIdentity(key)
	return id, ctx, err
}
