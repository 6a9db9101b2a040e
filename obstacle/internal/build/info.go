package build

import (
	"runtime"
	"runtime/debug"
	"strings"
)

// Info describes how the program was built, as the Go toolchain recorded it.
type Info struct {
	Commit     string            `json:"commit"`      // "" if it was not built in a checkout
	CommitTime string            `json:"commit_time"` // RFC 3339
	Modified   bool              `json:"modified"`    // the checkout had changes that were not committed
	Go         string            `json:"go"`
	Compiler   string            `json:"compiler"`
	OS         string            `json:"os"`
	Arch       string            `json:"arch"`
	Tags       []string          `json:"tags"`
	Settings   map[string]string `json:"settings"` // all others, such as GOAMD64, CGO_ENABLED and -trimpath
}

// Describe returns the build information of the running program.
func Describe() Info {
	info, known := debug.ReadBuildInfo()
	if !known {
		info = &debug.BuildInfo{}
	}
	return describe(info)
}

func describe(info *debug.BuildInfo) Info {
	d := Info{
		Go: runtime.Version(), Compiler: runtime.Compiler, OS: runtime.GOOS, Arch: runtime.GOARCH,
		Tags: []string{}, Settings: map[string]string{},
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			d.Commit = s.Value
		case "vcs.time":
			d.CommitTime = s.Value
		case "vcs.modified":
			d.Modified = s.Value == "true"
		case "-tags":
			d.Tags = strings.Split(s.Value, ",")
		case "vcs", "-compiler", "GOOS", "GOARCH": // said above
		default:
			d.Settings[s.Key] = s.Value
		}
	}
	return d
}
