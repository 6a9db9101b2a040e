package host

import (
	"bytes"
	"fmt"
	"os"
)

// Parent returns the number of the process that started another one, 0 if the system does not tell.
func Parent(pid int) int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the program, in parentheses, may hold any characters.
	var state byte
	var parent int
	if _, err := fmt.Sscanf(string(b[bytes.LastIndexByte(b, ')')+1:]), " %c %d", &state, &parent); err != nil {
		return 0
	}
	return parent
}
