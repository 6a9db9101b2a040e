package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// The part of CycloneDX 1.6 that an SBOM of a Go program needs.
type (
	bill struct {
		Format       string       `json:"bomFormat"`
		Spec         string       `json:"specVersion"`
		Serial       string       `json:"serialNumber"`
		Version      int          `json:"version"`
		Metadata     metadata     `json:"metadata"`
		Components   []component  `json:"components"`
		Dependencies []dependency `json:"dependencies"`
	}
	metadata struct {
		Timestamp  string     `json:"timestamp"`
		Component  component  `json:"component"`
		Properties []property `json:"properties"`
	}
	component struct {
		Ref        string     `json:"bom-ref"`
		Type       string     `json:"type"`
		Name       string     `json:"name"`
		Version    string     `json:"version"`
		URL        string     `json:"purl"`
		Hashes     []hash     `json:"hashes,omitempty"`
		Properties []property `json:"properties,omitempty"`
	}
	hash struct {
		Algorithm string `json:"alg"`
		Content   string `json:"content"`
	}
	property struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	dependency struct {
		Ref string   `json:"ref"`
		On  []string `json:"dependsOn"`
	}
)

// sbom returns the bill of materials of a program: its modules with the checksums of go.sum, Go's standard library,
// and the build settings. The serial number follows from the program's bits.
func sbom(info *debug.BuildInfo, program []byte, version string, at time.Time) ([]byte, error) {
	digest := sha256.Sum256(program)
	main := module(&debug.Module{Path: info.Main.Path, Version: version})
	main.Type, main.Hashes = "application", []hash{{"SHA-256", fmt.Sprintf("%x", digest)}}
	b := bill{
		Format: "CycloneDX", Spec: "1.6", Version: 1,
		Serial: serial(digest),
		Metadata: metadata{
			Timestamp: at.Format(time.RFC3339), Component: main, Properties: settingsOf(info),
		},
		Components: []component{module(&debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})},
	}
	for _, d := range info.Deps {
		if d.Replace != nil {
			d = d.Replace
		}
		b.Components = append(b.Components, module(d))
	}
	on := []string{}
	for _, c := range b.Components {
		on = append(on, c.Ref)
	}
	slices.Sort(on)
	b.Dependencies = []dependency{{main.Ref, on}}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(b)
	return text.Bytes(), err
}

// serial returns a UUID of version 8 (RFC 9562) from a checksum.
func serial(digest [sha256.Size]byte) string {
	id := digest[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func module(m *debug.Module) component {
	url := "pkg:golang/" + m.Path + "@" + strings.ReplaceAll(m.Version, "+", "%2B")
	c := component{Ref: url, Type: "library", Name: m.Path, Version: m.Version, URL: url}
	if m.Sum != "" {
		c.Properties = []property{{"go:sum", m.Sum}}
	}
	return c
}

func settingsOf(info *debug.BuildInfo) []property {
	all := []property{{"go:version", info.GoVersion}}
	for _, s := range info.Settings {
		all = append(all, property{"go:build:" + s.Key, s.Value})
	}
	return all
}
