package host

import (
	"bytes"
	"fmt"
	"os"
)

// Process returns the state of a process, a letter of proc_pid_stat(5), and the number of the process that started it.
// Both are 0 if there is no such process or the system does not tell.
func Process(pid int) (state byte, parent int) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0
	}
	// The name of the program, in parentheses, may hold any characters.
	if _, err := fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+1:]), " %c %d", &state, &parent); err != nil {
		return 0, 0
	}
	return state, parent
}
