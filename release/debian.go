package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// nfpm builds Debian packages on any system. It is run by its version, so that its modules stay out of
// go.mod.
const nfpm = "github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.43.4"

// defaultMaintainer is the field Maintainer of Debian packages. -maintainer names another one.
const defaultMaintainer = "P2PDC developers <p2pdc@users.noreply.github.com>"

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
	debianVersion := strings.Replace(strings.TrimPrefix(r.version, "v"), "-", "~", 1) // as nfpm writes it
	contents := []content{}
	for _, f := range slices.Concat(files, r.debianFiles(debianVersion)) {
		destination := installed(f.name)
		if destination == "" {
			continue
		}
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
		"section": "science", "priority": "optional", "maintainer": r.maintainer, "homepage": home, "mtime": at,
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

const home = "https://github.com/p2pdc/p2pdc"

// debianFiles returns the files that Debian requires in a package and that an archive lacks.
func (r *release) debianFiles(version string) []file {
	changes := fmt.Sprintf("obstacle (%s) unstable; urgency=medium\n\n  * %s of the project: see changelog.gz.\n\n"+
		" -- %s  %s\n", version, r.version, r.maintainer, r.time.Format(time.RFC1123Z))
	return []file{
		{"debian/changelog.Debian", 0o644, []byte(changes)},
		{"debian/copyright", 0o644, []byte(copyright)},
		{"debian/overrides", 0o644, []byte(overrides)},
	}
}

// copyright is the file of that name, in Debian's format. The complete licence is a file of Debian's base system.
const copyright = `Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: P2PDC
Source: ` + home + `

Files: *
Copyright: 2026 The P2PDC developers
License: Apache-2.0
Comment: The program contains modules of others, listed in sbom.cdx.json. Their
 copyright notices and licences are in LICENSES.txt.gz beside this file.

License: Apache-2.0
 On Debian systems, the complete text of the Apache License, Version 2.0,
 is in /usr/share/common-licenses/Apache-2.0.
`

// overrides lists the lintian tags that do not apply, with the reasons.
const overrides = `# Go's linker writes position-independent programs and RELRO only with -buildmode=pie. Memory safety does not rest on
# either: the program has no C code but the system's libc.
obstacle: hardening-no-pie
obstacle: hardening-no-relro
`

// installed returns where a file of an archive is installed, "" if a package does not have it.
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
	case name == "LICENSE": // debian/copyright refers to Debian's copy
		return ""
	case name == "CHANGELOG.md":
		return "/usr/share/doc/obstacle/changelog.gz"
	case name == "LICENSES.txt":
		return "/usr/share/doc/obstacle/LICENSES.txt.gz"
	case base == "changelog.Debian":
		return "/usr/share/doc/obstacle/changelog.Debian.gz"
	case base == "overrides":
		return "/usr/share/lintian/overrides/obstacle"
	case strings.HasPrefix(name, "debian/"):
		return "/usr/share/doc/obstacle/" + base
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
