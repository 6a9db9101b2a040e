// Package build returns the version of the program and the fingerprint of the protocols between its peers.
package build

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/p2pdc/p2pdc/obstacle/catalog"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
	"github.com/p2pdc/p2pdc/p2psap"
)

// Version returns the version of the module, or the revision that it was built from.
func Version() string {
	info, known := debug.ReadBuildInfo()
	if !known {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	v := "devel"
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			v += "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			v += "-modified"
		}
	}
	return v
}

// Toolchain returns the compiler and its target.
func Toolchain() string {
	return fmt.Sprintf("%s %s/%s", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// Fingerprint distinguishes programs whose peers could not work together: they have other wire formats or other
// catalogs.
func Fingerprint(c *catalog.Set) string {
	h := sha256.New()
	fmt.Fprintf(h, "rendezvous %d, control %d, catalogs %q", rendezvous.Version, p2psap.ControlVersion, c.Names())
	return hex.EncodeToString(h.Sum(nil))
}
