package host

import (
	"os"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestParent(t *testing.T) {
	if runtime.GOOS == "linux" {
		assert.Equal(t, os.Getppid(), Parent(os.Getpid()))
	}
	assert.Zero(t, Parent(-1))
}
