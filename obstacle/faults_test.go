//go:build linux

package obstacle_test

import (
	"crypto/rand"
	"fmt"
	"net"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/internal/await"
	"github.com/p2pdc/p2pdc/internal/output"
	"github.com/p2pdc/p2pdc/obstacle/internal/gate"
	"github.com/p2pdc/p2pdc/problems/file"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
	"github.com/p2pdc/p2pdc/solver/verify"
)

// side is the number of grid points along each axis of endless runs.
const side = 24

// endless starts a solve whose three peers wait at a gate that stays closed, and returns when it relaxes.
func endless(t *testing.T, scheme string, more ...string) *running {
	t.Helper()
	return held(t, gate.Gate{}, append([]string{"--n", fmt.Sprint(side), "--scheme", scheme, "--peer-timeout", "10s"}, more...)...)
}

// schemes returns the schemes to test; only one under the race detector, which is slow.
func schemes() []string {
	if testing.Short() {
		return []string{"async"}
	}
	return []string{"sync", "async"}
}

func TestKilledPeerEndsTheRun(t *testing.T) {
	for i, scheme := range append(schemes(), schemes()...) {
		network := "shm"
		if i < len(schemes()) {
			network = "ether"
		}
		t.Run(scheme+", "+network, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			r := endless(t, scheme, "--out", at, "--peer-timeout", "10m", "--network", network, "--recover", "off")
			require.NoError(t, syscall.Kill(r.pid(1), syscall.SIGKILL))
			// The others end at once, not after the peer timeout. The evaluation takes seconds under the race detector.
			require.Equal(t, 1, r.wait(patience))
			s := r.solution()
			require.Equal(t, "failed", s.Reason)
			// The launcher waits a while for the exit status, which a busy machine may tell it later.
			require.Regexp(t, fmt.Sprintf(`peer 1 \(pid %d\) (ended: signal: killed|closed its connection)`, r.pid(1)), s.Failure)
			require.Equal(t, []int{1}, s.MissingBlocks)
			require.Len(t, s.FilledBlocks, 1)
			middle := [2]int{(side + 2) / 3, (2*side + 2) / 3}
			require.Equal(t, [][2]int{{0, side}, {0, side}, middle}, s.FilledBlocks[0].Box)
			require.Less(t, float64(s.FilledBlocks[0].Residual), 1.0)
			require.FileExists(t, at)
			require.Positive(t, s.Sweeps[0], "the other blocks are the iterate they had")
			r.said("obstacle: peer 1")
			for _, rank := range []int{0, 2} { // they do not wait for the lost peer
				r.said(fmt.Sprintf(`"rank":%d,.*"error":.*"iterated"`, rank))
			}
		})
	}
}

// If three of four boxes are lost, the fourth is kept.
func TestSeveralKilledPeers(t *testing.T) {
	for method, scheme := range map[string]string{"schwarz": "async", "sor": "sync"} {
		t.Run(method, func(t *testing.T) {
			r := held(t, gate.Gate{Sweep: 1}, "--peers", "4", "--partition", "2,2,1", "--tol", "1e-13", "--method", method,
				"--scheme", scheme, "--recover", "off")
			// They are stopped first, so that none sends its block after another was killed.
			for rank := range 3 {
				stop(t, r.pid(rank))
			}
			for rank := range 3 {
				require.NoError(t, syscall.Kill(r.pid(rank), syscall.SIGKILL))
			}
			require.Equal(t, 1, r.wait(patience))
			s := r.solution()
			require.Equal(t, []int{0, 1, 2}, s.MissingBlocks)
			require.Len(t, s.FilledBlocks, 1)
			require.Equal(t, 24*24*24*3/4, s.FilledBlocks[0].Points)
			require.Equal(t, [][2]int{{0, 24}, {0, 24}, {0, 24}}, s.FilledBlocks[0].Box)
			require.Less(t, float64(s.FilledBlocks[0].Residual), 1e-10)
		})
	}
}

// A launcher that was stopped for longer than the peer timeout, alone or with its peers, reads what arrived meanwhile
// before a peer times out.
func TestStoppedLauncher(t *testing.T) {
	for i, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			r := endless(t, scheme, "--peer-timeout", "3s")
			stopped := []int{r.cmd.Process.Pid}
			if i > 0 || testing.Short() {
				stopped = append(stopped, r.pid(0), r.pid(1), r.pid(2))
			}
			for _, pid := range stopped {
				stop(t, pid)
			}
			await.Pass(4 * time.Second)
			for _, pid := range slices.Backward(stopped) {
				require.NoError(t, syscall.Kill(pid, syscall.SIGCONT))
			}
			r.signal(syscall.SIGINT)
			require.Equal(t, 3, r.wait(patience))
			s := r.solution()
			require.Equal(t, "interrupted", s.Reason, s.Failure)
			require.Empty(t, s.MissingBlocks)
			require.Less(t, float64(s.RelativeResidual), 1.0)
		})
	}
}

func TestStoppedPeerIsNamed(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			r := endless(t, scheme, "--peer-timeout", "5s", "--recover", "off")
			stop(t, r.pid(2))
			require.Equal(t, 1, r.wait(patience))
			s := r.solution()
			require.Contains(t, s.Failure, "peer 2 (pid")
			require.Equal(t, []int{2}, s.MissingBlocks)
		})
	}
}

func TestInterruptWritesTheBestIterate(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "u.npy")
			r := endless(t, scheme, "--out", at)
			stop := map[string]syscall.Signal{"sync": syscall.SIGINT, "async": syscall.SIGHUP}[scheme]
			if signal.Ignored(stop) { // under nohup the program ignores the signal, too
				stop = syscall.SIGTERM
			}
			r.signal(stop)
			require.Equal(t, 3, r.wait(patience))
			s := r.solution()
			require.Equal(t, "interrupted", s.Reason)
			require.False(t, s.Converged)
			require.Empty(t, s.MissingBlocks)
			require.Less(t, float64(s.RelativeResidual), 1.0)
			p, _, err := file.Load("membrane", []int{side})
			require.NoError(t, err)
			u, err := output.ReadInitial(at, p)
			require.NoError(t, err)
			e, err := verify.Evaluate(p, u, nil)
			require.NoError(t, err)
			require.Equal(t, float64(s.RelativeResidual), e.RelativeResidual, "the residual is that of what was written")
		})
	}
}

func TestSecondInterruptEndsAtOnce(t *testing.T) {
	r := endless(t, "sync", "--peer-timeout", "10m", "--recover", "off") // so that it does not end the run
	stop(t, r.pid(1))                                                    // so that the first has no effect
	r.signal(syscall.SIGINT)
	r.said(`"stopping"`)
	r.signal(syscall.SIGTERM) // the same signal so soon would count as the first
	require.Equal(t, 3, r.wait(patience))
	require.Empty(t, r.stdout.String())
}

func TestPeersEndWithTheirLauncher(t *testing.T) {
	for _, scheme := range schemes() {
		t.Run(scheme, func(t *testing.T) {
			r := endless(t, scheme, "--peer-timeout", "10m") // so that it does not end them
			r.pid(0)
			r.pid(1)
			r.pid(2)
			r.signal(syscall.SIGKILL)
			<-r.done
			r.nobodyLeft()
		})
	}
}

// Garbage and truncated messages on all TCP and UDP ports of launcher and peers do not change a bit of a synchronous
// run.
func TestGarbageOnEveryPort(t *testing.T) {
	n, tol := 40, 1e-7
	if testing.Short() {
		n, tol = 20, 1e-4
	}
	at := filepath.Join(t.TempDir(), "u.npy")
	closeGate(t, gate.Gate{}) // the run does not end before every port has received garbage
	r := start(t, "solve", "membrane", "--n", fmt.Sprint(n), "--tol", fmt.Sprint(tol), "--method", "richardson", "--peers", "2",
		"--peer-timeout", "10m", "--recover", "off", "--out", at, "--format", "json")
	r.said(`"relaxing"`)
	var sent, wait sync.WaitGroup
	stop := make(chan struct{})
	for _, pid := range []int{r.cmd.Process.Pid, r.pid(0), r.pid(1)} {
		tcp, udp := ports(t, pid)
		require.NotEmpty(t, tcp)
		if pid != r.cmd.Process.Pid {
			require.NotEmpty(t, udp)
		}
		for _, port := range tcp {
			sent.Add(1)
			wait.Add(1)
			go bombard("tcp", port, stop, &sent, &wait)
		}
		for _, port := range udp {
			sent.Add(1)
			wait.Add(1)
			go bombard("udp", port, stop, &sent, &wait)
		}
	}
	sent.Wait()
	r.open()
	code := r.wait(patience)
	close(stop)
	wait.Wait()
	require.Equal(t, 0, code)
	refused := r.solution().Refused
	require.Positive(t, refused["handshake.refused"], "%v", refused)
	require.Positive(t, refused["datagram.address"], "%v", refused)
	require.Positive(t, refused["rendezvous.refused"], "%v", refused)
	p, _, err := file.Load("membrane", []int{n})
	require.NoError(t, err)
	oracle, err := richardson.SolveSequential(p, problem.Jacobi, tol, 0, 0, 0)
	require.NoError(t, err)
	u, err := output.ReadInitial(at, p)
	require.NoError(t, err)
	require.Equal(t, oracle.U, u)
}

// bombard sends random bytes of random lengths until stopped. sent is done after the first.
func bombard(network string, port int, stop chan struct{}, sent, wait *sync.WaitGroup) {
	defer wait.Done()
	first := sync.OnceFunc(sent.Done)
	defer first()
	buf := make([]byte, 2000)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; ; i++ {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		_, _ = rand.Read(buf)
		c, err := net.DialTimeout(network, fmt.Sprintf("127.0.0.1:%d", port), time.Second)
		if err != nil {
			return // the connection has ended
		}
		for j := range 20 {
			if _, err := c.Write(buf[:1+(i*97+j*31)%len(buf)]); err != nil {
				break
			}
		}
		c.Close()
		first()
	}
}
