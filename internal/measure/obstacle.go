package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// Solution has the JSON report of a run of the program obstacle, and what the system counted of its
// process.
type Solution struct {
	Seconds   float64 `json:"seconds"` // virtual ones of a simulation
	Sweeps    float64 `json:"sequential_equivalent_sweeps"`
	Converged bool    `json:"converged"`
	Residual  float64 `json:"relative_residual"`
	Sum       float64 `json:"sum"`
	Segments  float64 `json:"segments"`
	InProcess bool    `json:"in_process"`
	PerPeer   []struct {
		Points int     `json:"points"`
		Peak   int64   `json:"peak_resident_bytes"`
		Idle   int64   `json:"idle_resident_bytes"`
		CPU    float64 `json:"cpu_seconds"`
	} `json:"per_peer"`

	CPU      float64 `json:"-"` // seconds of processor time of the process and its children
	Resident float64 `json:"-"` // peak resident memory of the process, bytes; 0: not known
}

// exitStopped is the exit code of obstacle when it stopped before the tolerance.
const exitStopped = 3

// Build compiles the program obstacle and returns its path.
func (r *Run) Build(ctx context.Context) (string, error) {
	program := filepath.Join(r.Temp, "obstacle")
	_, err := r.Command(ctx, nil, "go", "build", "-o", program, "./cmd/obstacle")
	return program, err
}

// Obstacle runs a command of the program obstacle. A run that stopped before the tolerance is no
// error.
func Obstacle(ctx context.Context, program, command, problem string, args ...string) (s Solution, err error) {
	args = append([]string{command, problem, "--format", "json", "--log-level", "error"}, args...)
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !(errors.As(err, &exit) && exit.ExitCode() == exitStopped) {
		return s, fmt.Errorf("obstacle %s: %w", command, err)
	}
	if err := json.Unmarshal(out, &s); err != nil {
		return s, fmt.Errorf("obstacle %s: %w in %.200s", command, err, out)
	}
	if s.Seconds <= 0 {
		return s, fmt.Errorf("obstacle %s: the run took %v s: %.200s", command, s.Seconds, out)
	}
	s.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	s.Resident = maxResident(cmd.ProcessState)
	return s, nil
}

// sweepsPerPass is an alias of the flag --sweeps-per-pass that older commits know too.
const sweepsPerPass = "--together"

// Sweeps runs the membrane on n points for so many sweeps of Richardson, each one pass over memory, by peers of
// one thread. more are more arguments of obstacle solve.
func Sweeps(
	ctx context.Context, program, scheme, n string, peers, sweeps int, more ...string,
) (Solution, error) {
	s, err := Obstacle(ctx, program, "solve", "membrane", append([]string{"--n", n, "--scheme", scheme,
		"--method", "richardson", "--peers", strconv.Itoa(peers), "--threads", "1", sweepsPerPass, "1", "--tol", "1e-13",
		"--max-sweeps", strconv.Itoa(sweeps)}, more...)...)
	if err == nil && (s.InProcess || len(s.PerPeer) != peers) {
		err = fmt.Errorf("obstacle solve --peers %d: %d peers answered, in one process: %t",
			peers, len(s.PerPeer), s.InProcess)
	}
	return s, err
}

// Multigrid solves the membrane on n³ points to 1e-6 by multigrid, in one process of two threads.
func Multigrid(ctx context.Context, program string, n int) (Solution, error) {
	s, err := Obstacle(ctx, program, "solve", "membrane", "--n", strconv.Itoa(n), "--method", "multigrid",
		"--in-process", "--peers", "1", "--threads", "2", "--tol", "1e-6")
	if err == nil && !s.Converged {
		err = fmt.Errorf("obstacle solve --method multigrid --n %d stopped at the residual %v", n, s.Residual)
	}
	if err == nil && s.Resident == 0 {
		err = fmt.Errorf("%w: the system does not report the memory of a process", ErrUnavailable)
	}
	return s, err
}

// SolveTime returns the processor time of all peers while they solved, in seconds.
func (s *Solution) SolveTime() float64 {
	sum := 0.0
	for _, p := range s.PerPeer {
		sum += p.CPU
	}
	return sum
}

// BytesPerPoint returns the largest growth of a peer's resident memory from before it knew its
// block to the peak, by the points of the block; idle is the largest resident memory before, in
// bytes.
func (s *Solution) BytesPerPoint() (growth, idle float64, err error) {
	for _, p := range s.PerPeer {
		if p.Points == 0 || p.Peak <= 0 || p.Idle <= 0 {
			return 0, 0, fmt.Errorf("%w: obstacle solve does not report a peer's memory: %+v", ErrUnavailable, p)
		}
		growth = max(growth, float64(p.Peak-p.Idle)/float64(p.Points))
		idle = max(idle, float64(p.Idle))
	}
	return growth, idle, nil
}
