package host

import (
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
)

// Quota returns how many processors the control groups of this process let it use at a time, 0 if they set no limit.
// Go counts a limit below two as two processors.
func Quota() float64 { return quota(os.DirFS("/")) }

// quota reads cpu.max of version 2 of control groups, or cpu.cfs_quota_us of version 1, of the group of this process and
// of all above it. root is the root of the file system.
func quota(root fs.FS) float64 {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	least := 0.0
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		mount, read := "sys/fs/cgroup", quotaV2
		if fields[1] != "" {
			if !strings.Contains(","+fields[1]+",", ",cpu,") {
				continue
			}
			mount, read = "sys/fs/cgroup/cpu", quotaV1
		}
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if q := read(root, path.Join(mount, group)); q > 0 && (least == 0 || q < least) {
				least = q
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

func quotaV2(root fs.FS, group string) float64 {
	text, _ := fs.ReadFile(root, path.Join(group, "cpu.max"))
	limit, period, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	return ratio(limit, period)
}

func quotaV1(root fs.FS, group string) float64 {
	limit, _ := fs.ReadFile(root, path.Join(group, "cpu.cfs_quota_us"))
	period, _ := fs.ReadFile(root, path.Join(group, "cpu.cfs_period_us"))
	return ratio(strings.TrimSpace(string(limit)), strings.TrimSpace(string(period)))
}

// ratio returns the quotient of two positive numbers, 0 if one is not.
func ratio(limit, period string) float64 {
	l, err1 := strconv.ParseUint(limit, 10, 62)
	p, err2 := strconv.ParseUint(period, 10, 62)
	if err1 != nil || err2 != nil || p == 0 {
		return 0
	}
	return float64(l) / float64(p)
}
