package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// nfpm builds Debian packages on any system. It is run by its version, so that its modules stay out of
// go.mod.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4"

// A content is a file of a package, for nfpm.
type content struct {
	Source      string      `json:"src"`
	Destination string      `json:"dst"`
	Info        contentInfo `json:"file_info"`
}

type contentInfo struct {
	Mode  int64  `json:"mode"`
	Owner string `json:"owner"`
	Group string `json:"group"`
	Time  string `json:"mtime"`
}

// debian writes a Debian package with the files of an archive.
func (r *release) debian(ctx context.Context, t target, files []file, path string) error {
	root := filepath.Join(r.work, "deb_"+t.arch)
	at := r.time.Format("2006-01-02T15:04:05Z")
	contents := []content{}
	for _, f := range files {
		destination := installed(f.name)
		if strings.HasSuffix(destination, ".gz") {
			f.content = compressed(f.content)
		}
		source := filepath.Join(root, f.name)
		if err := os.MkdirAll(filepath.Dir(source), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(source, f.content, 0o644); err != nil {
			return err
		}
		contents = append(contents, content{source, destination, contentInfo{f.mode, "root", "root", at}})
	}
	config, err := json.Marshal(map[string]any{
		"name": "obstacle", "arch": t.arch, "platform": "linux", "version": r.version, "version_schema": "semver",
		"section": "science", "priority": "optional", "maintainer": "The P2PDC authors <noreply@github.com>",
		"homepage": "https://github.com/p2pdc/p2pdc", "license": "Apache-2.0", "mtime": at,
		"description": "solver of obstacle problems with peers that exchange halos\n" +
			"obstacle solves obstacle problems in one to three dimensions by projected\n" +
			"iterations on several peers, synchronously or asynchronously.",
		// The program is linked with libc, by which it loads libibverbs where that is installed (ADR 28).
		"depends": []string{"libc6"}, "suggests": []string{"ibverbs-providers"},
		"contents": contents,
	})
	if err != nil {
		return err
	}
	name := filepath.Join(root, "nfpm.json") // YAML contains JSON
	if err := os.WriteFile(name, config, 0o644); err != nil {
		return err
	}
	_, err = output(ctx, []string{r.epoch(), "GOFLAGS="}, "go", "run", nfpm, "package",
		"--config", name, "--packager", "deb", "--target", path)
	return err
}

// installed returns where a file of an archive is installed.
func installed(name string) string {
	switch base := filepath.Base(name); {
	case name == "obstacle":
		return "/usr/bin/obstacle"
	case strings.HasPrefix(name, "man/"):
		return "/usr/share/man/man1/" + base + ".gz"
	case base == "obstacle.bash":
		return "/usr/share/bash-completion/completions/obstacle"
	case base == "obstacle.zsh":
		return "/usr/share/zsh/vendor-completions/_obstacle"
	case base == "obstacle.fish":
		return "/usr/share/fish/vendor_completions.d/obstacle.fish"
	case name == "LICENSE":
		return "/usr/share/doc/obstacle/copyright"
	}
	return "/usr/share/doc/obstacle/" + name
}

// compressed returns content as gzip -9n writes it: without a name and a time.
func compressed(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid
	_, _ = z.Write(content)                               // writes to memory do not fail
	_ = z.Close()
	return b.Bytes()
}
