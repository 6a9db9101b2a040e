//go:build linux

package obstacle_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// If a peer is killed while it writes its block to shared memory, the run ends, the block counts as missing, and the
// answer holds nothing of it.
func TestPeerKilledWhileItWritesItsBlock(t *testing.T) {
	p, _, err := file.Load("membrane", []int{24})
	require.NoError(t, err)
	initial := referenceOf(p)
	half := len(initial) / 2
	first := half
	for initial[first] <= 0 {
		first++
	}
	closeGate(t, gate.Gate{Answer: true})
	at := filepath.Join(t.TempDir(), "u.npy")
	r := start(t, "solve", "membrane", "--n", fmt.Sprint(p.N[0]), "--method", "richardson", "--peers", "2", "--max-sweeps", "3",
		"--out", at, "--recover", "off", "--format", "json")
	pid := r.pid(1)
	answer := r.answer(len(initial))
	await.Until(t, func() bool { return answer[first].Load() != 0 }, "a value of block 1")
	require.Zero(t, answer[len(answer)-1].Load())
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	await.Until(t, func() bool { return gone(pid) }, "the end of the peer")
	r.open() // for the other peer
	require.Equal(t, 1, r.wait(patience))
	s := r.solution()
	require.Equal(t, "failed", s.Reason)
	require.Contains(t, s.Failure, fmt.Sprintf("peer 1 (pid %d)", pid))
	require.Equal(t, []int{1}, s.MissingBlocks)
	u, err := output.ReadInitial(at, p)
	require.NoError(t, err)
	require.False(t, equal(initial[:half], u[:half]), "the other block holds what its peer had")
	if len(s.FilledBlocks) == 0 { // filling may take too long on a busy machine
		require.True(t, equal(initial[half:], u[half:]), "the missing block holds starting values")
		return
	}
	box := problem.Box{Lo: [3]int{0, 0, p.N[2] / 2}, Hi: p.N}
	e, err := verify.Evaluate(p.Inner(box, func(at [3]int) float64 { return p.ValueAt(u, at) }, nil), u[half:], nil)
	require.NoError(t, err)
	require.InEpsilon(t, e.RelativeResidual, float64(s.FilledBlocks[0].Residual), 1e-3, "it holds what was computed, and nothing of what its peer had written")
}

func equal(a, b []float64) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// referenceOf returns max(φ, 0) at the interior points.
func referenceOf(p *problem.Problem) []float64 {
	u := make([]float64, 0, p.Points())
	for z := range p.N[2] {
		for y := range p.N[1] {
			for x := range p.N[0] {
				u = append(u, max(0, p.Obstacle(p.At(x+1, y+1, z+1))))
			}
		}
	}
	return u
}

// answer maps the memory of n values that the launcher shares with its peers.
func (r *running) answer(n int) []atomic.Uint64 {
	r.t.Helper()
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", r.cmd.Process.Pid))
	require.NoError(r.t, err)
	for _, fd := range fds {
		if to, _ := os.Readlink(fd); !strings.HasPrefix(to, "/memfd:answer") {
			continue
		}
		f, err := os.Open(fd)
		require.NoError(r.t, err)
		defer f.Close()
		b, err := syscall.Mmap(int(f.Fd()), 0, 8*n, syscall.PROT_READ, syscall.MAP_SHARED)
		require.NoError(r.t, err)
		r.t.Cleanup(func() { _ = syscall.Munmap(b) })
		return unsafe.Slice((*atomic.Uint64)(unsafe.Pointer(&b[0])), n)
	}
	r.t.Fatal("the launcher has no memory for the answer")
	return nil
}
