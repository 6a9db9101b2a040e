package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var at = time.Date(2026, 11, 28, 1, 2, 3, 0, time.UTC)

// The bits of an archive do not depend on the order of its files, and contain neither a user nor another time.
func TestArchive(t *testing.T) {
	files := []file{{"obstacle", 0o755, []byte("program")}, {"man/a.1", 0o644, []byte("page")}, {"LICENSE", 0o644, nil}}
	want, err := archive("obstacle_1", files, at)
	require.NoError(t, err)
	rapid.Check(t, func(t *rapid.T) {
		again, err := archive("obstacle_1", rapid.Permutation(files).Draw(t, "files"), at)
		require.NoError(t, err)
		require.Equal(t, want, again)
	})
	z, err := gzip.NewReader(bytes.NewReader(want))
	require.NoError(t, err)
	require.True(t, z.ModTime.IsZero())
	r, names := tar.NewReader(z), []string{}
	for {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, h.Name)
		require.Equal(t, []any{0, 0, "root", "root", at}, []any{h.Uid, h.Gid, h.Uname, h.Gname, h.ModTime.UTC()})
		content, err := io.ReadAll(r)
		require.NoError(t, err)
		i := slices.IndexFunc(files, func(f file) bool { return "obstacle_1/"+f.name == h.Name })
		require.Equal(t, files[i].mode, h.Mode)
		require.Equal(t, string(files[i].content), string(content))
	}
	require.Equal(t, []string{"obstacle_1/LICENSE", "obstacle_1/man/a.1", "obstacle_1/obstacle"}, names)
}

func TestSBOM(t *testing.T) {
	info := &debug.BuildInfo{
		GoVersion: "go1.26.8", Main: debug.Module{Path: "example.org/main", Version: "(devel)"},
		Deps: []*debug.Module{
			{Path: "example.org/a", Version: "v1.2.3+incompatible", Sum: "h1:x="},
			{Path: "example.org/b", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/c", Version: "v2.0.0"}},
		},
		Settings: []debug.BuildSetting{{Key: "GOARCH", Value: "arm64"}},
	}
	text, err := sbom(info, []byte("program"), "v0.1.0", at)
	require.NoError(t, err)
	var b bill
	require.NoError(t, json.Unmarshal(text, &b))
	require.Equal(t, []any{"CycloneDX", "1.6", 1}, []any{b.Format, b.Spec, b.Version})
	require.Equal(t, "2026-11-28T01:02:03Z", b.Metadata.Timestamp)
	require.Regexp(t, `^urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`, b.Serial)
	digest := fmt.Sprintf("%x", sha256.Sum256([]byte("program")))
	require.Equal(t, []hash{{"SHA-256", digest}}, b.Metadata.Component.Hashes)
	require.Equal(t, "pkg:golang/example.org/main@v0.1.0", b.Metadata.Component.URL)
	require.Contains(t, b.Metadata.Properties, property{"go:build:GOARCH", "arm64"})
	urls := []string{}
	for _, c := range b.Components {
		urls = append(urls, c.URL)
	}
	require.Equal(t, []string{
		"pkg:golang/std@1.26.8", "pkg:golang/example.org/a@v1.2.3%2Bincompatible", "pkg:golang/example.org/c@v2.0.0",
	}, urls)
	require.Equal(t, []property{{"go:sum", "h1:x="}}, b.Components[1].Properties)
	require.ElementsMatch(t, urls, b.Dependencies[0].On)
	other, err := sbom(info, []byte("another program"), "v0.1.0", at)
	require.NoError(t, err)
	require.NotContains(t, string(other), b.Serial)
}

// Files of other origin are never removed.
func TestEmptyDirectory(t *testing.T) {
	out := filepath.Join(t.TempDir(), "dist")
	require.NoError(t, emptyDirectory(out))
	for _, name := range []string{"obstacle_1_linux_amd64.tar.gz", sums} {
		require.NoError(t, os.WriteFile(filepath.Join(out, name), []byte(name), 0o600))
	}
	thesis := filepath.Join(out, "thesis.tex")
	require.NoError(t, os.WriteFile(thesis, nil, 0o600))
	require.ErrorContains(t, emptyDirectory(out), "contains thesis.tex, which is not of a release")
	require.FileExists(t, filepath.Join(out, sums))
	require.NoError(t, os.Remove(thesis))
	require.NoError(t, emptyDirectory(out))
	left, err := os.ReadDir(out)
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestSums(t *testing.T) {
	out := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(out, "obstacle_b"), []byte("b"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(out, "obstacle_a"), []byte("a"), 0o600))
	require.NoError(t, writeSums(out))
	text, err := os.ReadFile(filepath.Join(out, sums))
	require.NoError(t, err)
	a, b := sha256.Sum256([]byte("a")), sha256.Sum256([]byte("b"))
	require.Equal(t, fmt.Sprintf("%x  obstacle_a\n%x  obstacle_b\n", a, b), string(text))
}

func TestTargets(t *testing.T) {
	for _, bad := range []string{"", "linux", "linux/", "/arm64", "linux/arm64/v8"} {
		_, err := parseTarget(bad)
		require.ErrorContains(t, err, "want GOOS/GOARCH", bad)
	}
	got, err := parseTarget("darwin/arm64")
	require.NoError(t, err)
	require.Equal(t, target{"darwin", "arm64"}, got)
}

func TestInstalled(t *testing.T) {
	for name, want := range map[string]string{
		"obstacle": "/usr/bin/obstacle", "man/obstacle-solve.1": "/usr/share/man/man1/obstacle-solve.1.gz",
		"completions/obstacle.bash": "/usr/share/bash-completion/completions/obstacle",
		"completions/obstacle.zsh":  "/usr/share/zsh/vendor-completions/_obstacle",
		"completions/obstacle.fish": "/usr/share/fish/vendor_completions.d/obstacle.fish",
		"LICENSE":                   "", "README.md": "/usr/share/doc/obstacle/README.md",
		"debian/copyright": "/usr/share/doc/obstacle/copyright", "CHANGELOG.md": "/usr/share/doc/obstacle/changelog.gz",
		"debian/changelog.Debian": "/usr/share/doc/obstacle/changelog.Debian.gz",
		"debian/overrides":        "/usr/share/lintian/overrides/obstacle",
	} {
		require.Equal(t, want, installed(name))
	}
	z, err := gzip.NewReader(bytes.NewReader(compressed([]byte("page"))))
	require.NoError(t, err)
	content, err := io.ReadAll(z)
	require.NoError(t, err)
	require.Equal(t, "page", string(content))
}

// The files that only a package has name its version, its maintainer and the time of the commit.
func TestDebianFiles(t *testing.T) {
	r := release{version: "v0.1.0-rc.1", time: at, maintainer: defaultMaintainer}
	files := map[string]string{}
	for _, f := range r.debianFiles("0.1.0~rc.1") {
		files[f.name] = string(f.content)
	}
	require.Equal(t, `obstacle (0.1.0~rc.1) unstable; urgency=medium

  * v0.1.0-rc.1 of the project: see changelog.gz.

 -- P2PDC developers <p2pdc@users.noreply.github.com>  Sat, 28 Nov 2026 01:02:03 +0000
`, files["debian/changelog.Debian"])
	require.Contains(t, files["debian/copyright"], "/usr/share/common-licenses/Apache-2.0")
	require.Contains(t, files["debian/overrides"], "obstacle: hardening-no-pie")
}

// The terms of every module are in a release; a module without any is refused.
func TestLicences(t *testing.T) {
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "github.com/stretchr/testify", Version: "v1"}, {Path: "pgregory.net/rapid", Version: "v2"},
	}}
	text, err := licences(t.Context(), info)
	require.NoError(t, err)
	for _, d := range info.Deps {
		require.Contains(t, string(text), "\n"+d.Path+" "+d.Version+", LICENSE")
	}
	require.Contains(t, string(text), "Copyright 2009 The Go Authors")
	require.Contains(t, string(text), "MIT License\n\nCopyright (c) 2012-2020 Mat Ryer")

	var b bytes.Buffer
	empty := t.TempDir()
	require.ErrorContains(t, appendLicence(&b, "example.org/a v1.0.0", empty), "there is no file with its licence")
	for name, is := range map[string]bool{"LICENSE-MIT": true, "UNLICENSE": true, "Copying": true, "licence.go": false, "licensed": false} {
		at := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(at, name), []byte("terms of "+name), 0o600))
		require.Equal(t, is, appendLicence(&b, "a", at) == nil, name)
	}
	require.Contains(t, b.String(), "a, LICENSE-MIT\n\nterms of LICENSE-MIT\n")
}
