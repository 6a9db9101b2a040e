package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// judged is what a solver says of a solve of the membrane, and what the system says
// of its processes.
type judged struct {
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu_seconds"`
	Bytes    float64 `json:"peak_bytes"`
	Residual float64 `json:"relative_residual"`
	Sum      float64 `json:"sum"`
	Newton   int     `json:"newton"`
	Linear   int     `json:"linear"`

	solving float64 // processor time of the solve alone, s; 0: not told
}

// petscSetting is one way to let PETSc solve it; %d of levels is filled in.
type petscSetting struct {
	name    string
	options string
	coarse  int // points an axis from which grid sequencing starts, boundary included; 0: it does not
	largest int // n up to which it is tried: it has lost by far before

	cpu float64 // its best on the grid before
}

// petscSettings are what its manual offers for such a problem: SNESVI with the reduced
// space and with the semismooth method, TAO's gradient projection; multigrid of either
// kind and incomplete factors before conjugate gradients, solved as hard as PETSc does
// by itself and loosely.
func petscSettings() []petscSetting {
	return []petscSetting{
		{"rsls, cg, geometric multigrid, grid sequencing", "-ksp_type cg -pc_type mg", 9, 255, 0},
		{"the same, linear solves to 1e-2", "-ksp_type cg -ksp_rtol 1e-2 -pc_type mg", 9, 255, 0},
		{"the same to 1e-2, Gauss-Seidel smoothing", "-ksp_type cg -ksp_rtol 1e-2 -pc_type mg -mg_levels_ksp_type richardson -mg_levels_pc_type sor", 9, 255, 0},
		{"rsls, cg, algebraic multigrid (gamg)", "-ksp_type cg -ksp_rtol 1e-2 -pc_type gamg", 0, 63, 0},
		{"rsls, cg, algebraic multigrid (hypre)", "-ksp_type cg -ksp_rtol 1e-2 -pc_type hypre", 0, 63, 0},
		{"semismooth, gmres, geometric multigrid, grid sequencing", "-snes_type vinewtonssls -ksp_type gmres -pc_type mg", 9, 63, 0},
		{"TAO gpcg", "-bound_solver tao", 0, 63, 0},
	}
}

func (s petscSetting) args(n int) []string {
	out := append([]string{"-n", strconv.Itoa(n), "-tol", "1e-6"}, strings.Fields(s.options)...)
	levels := 1
	for m := n + 1; s.coarse > 0 && m%2 == 0 && m/2 >= s.coarse-1; m /= 2 {
		levels++
	}
	return append(out, "-levels", strconv.Itoa(levels))
}

// petscLimit bounds one run of PETSc on a grid: several times what its best takes there.
func petscLimit(n int) time.Duration {
	return max(30*time.Second, time.Duration(float64(n*n*n)/(255*255*255)*float64(12*time.Minute)))
}

const (
	cpuTarget    = 60 // times less processor than PETSc's best at 255
	memoryTarget = 10 // times less memory
)

// petsc solves the same problem on the same grid to the same residual by this program
// and by PETSc, one and two processes of it, every setting; its best of each grid
// counts.
func petsc(ctx context.Context, b *bench) error {
	program := filepath.Join(b.tmp, "petsc-obstacle")
	if err := b.buildPetsc(ctx, program); err != nil {
		return err
	}
	bin, err := b.build(ctx)
	if err != nil {
		return err
	}
	settings := petscSettings()
	for _, n := range []int{63, 127, 255} {
		if n == 255 {
			settings = settings[:min(1, len(settings))] // minutes each: the best of 127 goes on
		}
		if settings, err = b.besidePetsc(ctx, bin, program, n, settings); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) buildPetsc(ctx context.Context, program string) error {
	for _, tool := range []string{"mpicc", "mpirun", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("skipped: no %s (Debian: petsc-dev, libopenmpi-dev, openmpi-bin, pkg-config)", tool)
		}
	}
	flags, err := b.command(ctx, nil, "pkg-config", "--cflags", "--libs", "PETSc")
	if err != nil {
		return fmt.Errorf("skipped: no PETSc (Debian: petsc-dev): %w", err)
	}
	args := append([]string{"-O3", "-march=native", "-o", program, filepath.Join("bench", "peers", "petsc", "obstacle.c")}, strings.Fields(string(flags))...)
	_, err = b.command(ctx, nil, "mpicc", append(args, "-lm")...)
	return err
}

// besidePetsc measures one grid. Both are judged by their own account, whose norm is
// the same, and by the sum of the answer, which must agree.
// It gives the settings that solved it, the best first.
func (b *bench) besidePetsc(ctx context.Context, bin, program string, n int, settings []petscSetting) ([]petscSetting, error) {
	rounds := b.rounds
	if n > 100 {
		rounds = min(rounds, 3) // PETSc takes minutes
	}
	ours, err := b.ourMultigrid(ctx, bin, n, rounds)
	if err != nil {
		return nil, err
	}
	var able []petscSetting
	best := judged{CPU: math.Inf(1), Bytes: math.Inf(1), Seconds: math.Inf(1)}
	var bestName string
	for _, s := range settings {
		s.cpu = math.Inf(1)
		for _, ranks := range []int{1, 2} {
			if n > s.largest {
				continue
			}
			name := fmt.Sprintf("n = %d, PETSc, %s, %d rank(s)", n, s.name, ranks)
			j, err := b.runPetsc(ctx, program, ranks, s.args(n), petscLimit(n))
			if err != nil {
				b.report.add(measurement{Part: "petsc", Name: name, Note: "failed: " + err.Error()})
				continue
			}
			if math.Abs(j.Sum-ours[0].Sum) > 1e-5*math.Abs(j.Sum) {
				return nil, fmt.Errorf("%s: the sum of its answer is %v, ours %v: not the same problem", name, j.Sum, ours[0].Sum)
			}
			b.report.add(solved(name, []judged{j}, "options: "+strings.Join(s.args(n), " "))...)
			if j.CPU < best.CPU {
				bestName = name
			}
			s.cpu = min(s.cpu, j.CPU)
			best.CPU, best.Bytes, best.Seconds = min(best.CPU, j.CPU), min(best.Bytes, j.Bytes), min(best.Seconds, j.Seconds)
		}
		if !math.IsInf(s.cpu, 1) {
			able = append(able, s)
		}
	}
	if bestName == "" {
		return nil, errors.New("PETSc solved it by no setting")
	}
	slices.SortFunc(able, func(a, b petscSetting) int { return cmp.Compare(a.cpu, b.cpu) })
	name := fmt.Sprintf("n = %d, this program, multigrid", n)
	b.report.add(solved(name, ours, "")...)
	var seconds, solving, bytes []float64
	for _, j := range ours {
		seconds, solving, bytes = append(seconds, j.Seconds), append(solving, j.solving), append(bytes, j.Bytes/1e6)
	}
	alone := over("petsc", name+": processor time of the solve", "s", solving)
	switch n {
	case 127:
		b.report.add(over("petsc", name+": time", "s", seconds).lowAtMost(0.25), alone)
	case 255:
		b.report.add(over("petsc", name+": time", "s", seconds).lowAtMost(1.2), alone.lowAtMost(2), over("petsc", name+": peak memory", "MB", bytes).atMost(800))
	default:
		b.report.add(alone)
	}
	part := func(what, unit string, f func(j judged) float64) measurement {
		var v []float64
		for _, j := range ours {
			v = append(v, f(j))
		}
		return over("petsc", fmt.Sprintf("n = %d, PETSc's best / this program: %s", n, what), unit, v)
	}
	cpu := part("processor time", "ratio", func(j judged) float64 { return best.CPU / j.CPU }).because("PETSc's best by processor time: " + bestName)
	less := part("memory", "ratio", func(j judged) float64 { return best.Bytes / j.Bytes })
	if n == 255 {
		cpu, less = cpu.atLeast(cpuTarget), less.atLeast(memoryTarget)
	}
	b.report.add(part("time", "ratio", func(j judged) float64 { return best.Seconds / j.Seconds }), cpu, less)
	return able, nil
}

// solved are the lines of one contestant.
func solved(name string, all []judged, note string) []measurement {
	var seconds, cpu, bytes, residual []float64
	for _, j := range all {
		seconds, cpu = append(seconds, j.Seconds), append(cpu, j.CPU)
		bytes, residual = append(bytes, j.Bytes/1e6), append(residual, j.Residual)
	}
	return []measurement{
		over("petsc", name+": time", "s", seconds).because(note),
		over("petsc", name+": processor time, all of the process", "s", cpu),
		over("petsc", name+": peak memory", "MB", bytes),
		over("petsc", name+": relative residual", "", residual).unitless(),
	}
}

// unitless lets a number without a unit show in the table.
func (m measurement) unitless() measurement {
	m.Unit = "1"
	return m
}

func (b *bench) runPetsc(ctx context.Context, program string, ranks int, args []string, limit time.Duration) (judged, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := append([]string{"--allow-run-as-root", "--oversubscribe", "-n", strconv.Itoa(ranks), program}, args...)
	// A library of BLAS that starts threads of its own would be a third contestant.
	out, err := b.command(ctx, []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}, "mpirun", all...)
	if err != nil {
		return judged{}, err
	}
	var j judged
	at := strings.LastIndex(string(out), "{")
	if at < 0 {
		return j, fmt.Errorf("no answer in %.200q", out)
	}
	if err := json.Unmarshal(out[at:], &j); err != nil {
		return j, err
	}
	if !(j.Residual <= 1e-6) {
		return j, fmt.Errorf("it stopped at a relative residual of %v: %.200s", j.Residual, out[:at])
	}
	return j, nil
}

// ourMultigrid lets this program solve it in one process of two threads.
func (b *bench) ourMultigrid(ctx context.Context, bin string, n, rounds int) ([]judged, error) {
	var out []judged
	for range rounds {
		cmd := exec.CommandContext(ctx, bin, "solve", "membrane", "--n", strconv.Itoa(n), "--method", "multigrid", "--in-process",
			"--peers", "1", "--threads", "2", "--tol", "1e-6", "--format", "json", "--log-level", "error")
		cmd.Stderr = os.Stderr
		text, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("obstacle solve --method multigrid --n %d: %w", n, err)
		}
		var said struct {
			judged
			PerPeer []struct {
				CPU float64 `json:"cpu_seconds"`
			} `json:"per_peer"`
		}
		if err := json.Unmarshal(text, &said); err != nil {
			return nil, err
		}
		j := said.judged
		for _, p := range said.PerPeer {
			j.solving += p.CPU
		}
		j.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		if j.Bytes = maxResident(cmd.ProcessState); j.Bytes == 0 {
			return nil, errors.New("the system does not tell what memory a process used")
		}
		if !(j.Residual <= 1e-6) {
			return nil, fmt.Errorf("obstacle solve --method multigrid --n %d stopped at %v", n, j.Residual)
		}
		out = append(out, j)
	}
	return out, nil
}
