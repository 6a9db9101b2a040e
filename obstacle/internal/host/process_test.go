package host

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestProcess(t *testing.T) {
	if runtime.GOOS == "linux" {
		state, parent := Process(os.Getpid())
		assert.Contains(t, []byte("RS"), state)
		assert.Equal(t, os.Getppid(), parent)
	}
	state, parent := Process(-1)
	assert.Zero(t, state)
	assert.Zero(t, parent)
}
