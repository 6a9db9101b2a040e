package main

import (
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// target is a system to build for.
type target struct{ os, arch string }

func parseTarget(name string) (target, error) {
	system, arch, ok := strings.Cut(name, "/")
	if !ok || system == "" || arch == "" || strings.Contains(arch, "/") {
		return target{}, fmt.Errorf("target %q: want GOOS/GOARCH, such as linux/arm64", name)
	}
	return target{system, arch}, nil
}

// settings are the variables that influence the compiler, with the values of a release. GOTOOLCHAIN remains:
// docs/releases.md says how to choose the version of Go.
var settings = []string{
	"CGO_ENABLED=0", "GOAMD64=v1", "GOARM64=v8.0", "GORISCV64=rva20u64", "GOFLAGS=", "GOEXPERIMENT=",
	"GODEBUG=", "GOFIPS140=off", "GOWORK=off",
}

// release is what all targets have in common.
type release struct {
	work    string // directory for temporary files
	time    time.Time
	version string
	files   []file // manual pages, completions and texts

	maintainer string // of Debian packages
}

// prepare builds the program for this machine, from which it takes the version, the time of the commit, the manual
// pages and the completions.
func prepare(ctx context.Context, work string) (*release, error) {
	r := &release{work: work}
	here := target{runtime.GOOS, runtime.GOARCH}
	binary, err := r.build(ctx, here)
	if err != nil {
		return nil, err
	}
	var v struct {
		Version  string
		Modified bool
		Time     time.Time `json:"commit_time"`
	}
	text, err := output(ctx, nil, binary, "version", "--format", "json")
	if err == nil {
		err = json.Unmarshal(text, &v)
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("the version of the program: %w", err)
	case v.Modified:
		return nil, errors.New("the checkout has changes or files that are not committed: commit them, or clone it elsewhere")
	}
	r.version, r.time = v.Version, v.Time.UTC()
	return r, r.collect(ctx, binary)
}

// epoch returns the variable that tells tools which time to write.
func (r *release) epoch() string { return fmt.Sprintf("SOURCE_DATE_EPOCH=%d", r.time.Unix()) }

// build builds the program for a target and returns its path.
func (r *release) build(ctx context.Context, t target) (string, error) {
	binary := filepath.Join(r.work, t.os+"_"+t.arch, "obstacle")
	environment := append([]string{"GOOS=" + t.os, "GOARCH=" + t.arch}, settings...)
	_, err := output(ctx, environment, "go", "build", "-trimpath", "-buildvcs=true", "-mod=readonly",
		"-ldflags=-s -w", "-o", binary, program)
	return binary, err
}

// collect gathers the files that are the same for all targets.
func (r *release) collect(ctx context.Context, binary string) error {
	pages := filepath.Join(r.work, "man")
	if err := os.Mkdir(pages, 0o755); err != nil {
		return err
	}
	if _, err := output(ctx, []string{r.epoch()}, binary, "man", "--dir", pages); err != nil {
		return err
	}
	names, err := filepath.Glob(filepath.Join(pages, "*.1"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := r.add("man/"+filepath.Base(name), name); err != nil {
			return err
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script, err := output(ctx, nil, binary, "completion", shell)
		if err != nil {
			return err
		}
		r.files = append(r.files, file{"completions/obstacle." + shell, 0o644, script})
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		if err := r.add(name, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) add(name, path string) error {
	content, err := os.ReadFile(path)
	r.files = append(r.files, file{name, 0o644, content})
	return err
}

// release writes the files of a target.
func (r *release) release(ctx context.Context, t target, out string, deb bool) error {
	binary, err := r.build(ctx, t)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	bill, err := sbom(info, content, r.version, r.time)
	if err != nil {
		return err
	}
	terms, err := licences(ctx, info)
	if err != nil {
		return err
	}
	name := fmt.Sprintf("obstacle_%s_%s_%s", strings.TrimPrefix(r.version, "v"), t.os, t.arch)
	files := append([]file{{"obstacle", 0o755, content}, {"sbom.cdx.json", 0o644, bill}, {"LICENSES.txt", 0o644, terms}}, r.files...)
	packed, err := archive(name, files, r.time)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, name+".tar.gz"), packed, 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, name+".cdx.json"), bill, 0o644); err != nil {
		return err
	}
	if !deb || t.os != "linux" || t.arch != "amd64" && t.arch != "arm64" {
		return nil
	}
	return r.debian(ctx, t, files, filepath.Join(out, name+".deb"))
}
