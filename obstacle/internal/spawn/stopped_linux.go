package spawn

import (
	"bytes"
	"fmt"
	"os"
)

// stopped reads the state of a process, which follows its name in parentheses (proc_pid_stat(5)).
func stopped(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	after := bytes.LastIndexByte(stat, ')') + len(") ")
	return after < len(stat) && (stat[after] == 'T' || stat[after] == 't')
}
