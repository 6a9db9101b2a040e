package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/p2pdc/p2pdc/internal/measure"
)

// petscRun is what a run of the PETSc program reports.
type petscRun struct {
	Seconds  float64 `json:"seconds"`
	CPU      float64 `json:"cpu_seconds"`
	Bytes    float64 `json:"peak_bytes"`
	Residual float64 `json:"relative_residual"`
	Sum      float64 `json:"sum"`
}

// petscSetting is a choice of PETSc's solvers.
type petscSetting struct {
	name    string
	options string
	coarse  int // points an axis at which grid sequencing starts, boundary included; 0: none
	largest int // largest n that it is run on: on larger grids it is far from the best

	cpu float64 // its best on the previous grid
}

// petscSettings returns what PETSc's manual offers for such a problem: SNESVI with the reduced space
// and with the semismooth method, TAO's gradient projection; geometric and algebraic multigrid before
// conjugate gradients, with the default and with a loose tolerance of the linear solves.
func petscSettings() []petscSetting {
	const (
		loose       = "-ksp_type cg -ksp_rtol 1e-2 -pc_type "
		gaussSeidel = " -mg_levels_ksp_type richardson -mg_levels_pc_type sor"
		semismooth  = "-snes_type vinewtonssls -ksp_type gmres -pc_type mg"
	)
	return []petscSetting{
		{"rsls, cg, geometric multigrid, grid sequencing", "-ksp_type cg -pc_type mg", 9, 255, 0},
		{"the same, linear solves to 1e-2", loose + "mg", 9, 255, 0},
		{"the same to 1e-2, Gauss-Seidel smoothing", loose + "mg" + gaussSeidel, 9, 255, 0},
		{"rsls, cg, algebraic multigrid (gamg)", loose + "gamg", 0, 63, 0},
		{"rsls, cg, algebraic multigrid (hypre)", loose + "hypre", 0, 63, 0},
		{"semismooth, gmres, geometric multigrid, grid sequencing", semismooth, 9, 63, 0},
		{"TAO gpcg", "-bound_solver tao", 0, 63, 0},
	}
}

func (s *petscSetting) args(n int) []string {
	out := append([]string{"-n", strconv.Itoa(n), "-tol", "1e-6"}, strings.Fields(s.options)...)
	levels := 1
	for m := n + 1; s.coarse > 0 && m%2 == 0 && m/2 >= s.coarse-1; m /= 2 {
		levels++
	}
	return append(out, "-levels", strconv.Itoa(levels))
}

// petscLimit bounds the time of a run: several times that of the best setting.
func petscLimit(n int) time.Duration {
	return max(30*time.Second, time.Duration(float64(n*n*n)/(255*255*255)*float64(12*time.Minute)))
}

// Targets at 255³: PETSc's best / this program.
const (
	cpuTarget    = 60
	memoryTarget = 10
)

// petsc solves the same problem to the same residual by this program and by PETSc, in every setting,
// by one process of it and by two.
func petsc(ctx context.Context, r *measure.Run) error {
	peer := filepath.Join(r.Temp, "petsc-obstacle")
	if err := buildPetsc(ctx, r, peer); err != nil {
		return err
	}
	program, err := r.Build(ctx)
	if err != nil {
		return err
	}
	settings := petscSettings()
	for _, n := range []int{63, 127, 255} {
		if n == 255 {
			settings = settings[:min(1, len(settings))] // the best at 127: a run takes minutes
		}
		if settings, err = comparePetsc(ctx, r, program, peer, n, settings); err != nil {
			return err
		}
	}
	return nil
}

func buildPetsc(ctx context.Context, r *measure.Run, program string) error {
	for _, tool := range []string{"mpicc", "mpirun", "pkg-config"} {
		if _, err := exec.LookPath(tool); err != nil {
			const packages = "petsc-dev, libopenmpi-dev, openmpi-bin, pkg-config"
			return fmt.Errorf("%w: %s (Debian: %s)", measure.ErrUnavailable, tool, packages)
		}
	}
	flags, err := r.Command(ctx, nil, "pkg-config", "--cflags", "--libs", "PETSc")
	if err != nil {
		return fmt.Errorf("%w: PETSc (Debian: petsc-dev): %w", measure.ErrUnavailable, err)
	}
	source := filepath.Join("experiments", "petsc", "obstacle.c")
	args := append([]string{"-O3", "-march=native", "-o", program, source}, strings.Fields(string(flags))...)
	_, err = r.Command(ctx, nil, "mpicc", append(args, "-lm")...)
	return err
}

// comparePetsc compares the programs on one grid. Each reports its residual in the same norm, and
// the sum of the answer, which must agree. It returns the settings that converged, the best first.
func comparePetsc(
	ctx context.Context, r *measure.Run, program, peer string, n int, settings []petscSetting,
) ([]petscSetting, error) {
	rounds := r.Rounds
	if n > 100 {
		rounds = min(rounds, 3)
	}
	ours := make([]measure.Solution, rounds)
	for i := range ours {
		var err error
		if ours[i], err = measure.Multigrid(ctx, program, n); err != nil {
			return nil, err
		}
	}
	var converged []petscSetting
	best := petscRun{CPU: math.Inf(1), Bytes: math.Inf(1), Seconds: math.Inf(1)}
	bestName := ""
	for _, s := range settings {
		s.cpu = math.Inf(1)
		for _, ranks := range []int{1, 2} {
			if n > s.largest {
				continue
			}
			name := fmt.Sprintf("%d³, PETSc, %s, %d ranks", n, s.name, ranks)
			p, err := runPetsc(ctx, r, peer, ranks, s.args(n), petscLimit(n))
			if err != nil {
				r.Add(measure.Result{Name: name, Note: measure.Reason(err)}.AsDetail())
				continue
			}
			if math.Abs(p.Sum-ours[0].Sum) > 1e-5*math.Abs(p.Sum) {
				return nil, fmt.Errorf("%s: the sum of its answer is %v, ours %v: the problems differ",
					name, p.Sum, ours[0].Sum)
			}
			r.Add(measure.One(name+": time", "s", p.Seconds).Because("options: "+strings.Join(s.args(n), " ")).AsDetail(),
				measure.One(name+": processor time", "s", p.CPU).AsDetail(),
				measure.One(name+": peak memory", "MB", p.Bytes/1e6).AsDetail())
			if p.CPU < best.CPU {
				bestName = name
			}
			s.cpu = min(s.cpu, p.CPU)
			best.CPU, best.Bytes = min(best.CPU, p.CPU), min(best.Bytes, p.Bytes)
			best.Seconds = min(best.Seconds, p.Seconds)
		}
		if !math.IsInf(s.cpu, 1) {
			converged = append(converged, s)
		}
	}
	if bestName == "" {
		return nil, errors.New("PETSc converged in no setting")
	}
	slices.SortFunc(converged, func(a, b petscSetting) int { return cmp.Compare(a.cpu, b.cpu) })
	addPetsc(r, n, ours, best, bestName)
	return converged, nil
}

// addPetsc adds our figures beside PETSc's best. Ratios are ours / PETSc's.
func addPetsc(r *measure.Run, n int, ours []measure.Solution, best petscRun, bestName string) {
	line := func(what, unit string, of func(*measure.Solution) float64, peer float64) measure.Result {
		var v []float64
		for i := range ours {
			v = append(v, of(&ours[i]))
		}
		m := measure.Over(fmt.Sprintf("%d³ to 1e-6 by multigrid: %s", n, what), unit, v)
		return m.Against("PETSc's best", []float64{peer})
	}
	cpu := line("processor time of the process", "s", func(s *measure.Solution) float64 { return s.CPU }, best.CPU)
	memory := line("peak memory", "MB", func(s *measure.Solution) float64 { return s.Resident / 1e6 }, best.Bytes/1e6)
	if n == 255 {
		cpu, memory = cpu.RatioAtMost(1./cpuTarget), memory.RatioAtMost(1./memoryTarget)
	}
	r.Add(line("time", "s", func(s *measure.Solution) float64 { return s.Seconds }, best.Seconds),
		cpu.Because("PETSc's best by processor time: "+bestName), memory)
}

// runPetsc runs the PETSc program on so many ranks.
func runPetsc(
	ctx context.Context, r *measure.Run, program string, ranks int, args []string, limit time.Duration,
) (p petscRun, err error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	all := append([]string{"--allow-run-as-root", "--oversubscribe", "-n", strconv.Itoa(ranks), program}, args...)
	// BLAS must not start threads.
	out, err := r.Command(ctx, []string{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1"}, "mpirun", all...)
	if err != nil {
		return p, err
	}
	at := strings.LastIndex(string(out), "{")
	if at < 0 {
		return p, fmt.Errorf("no JSON in %.200q", out)
	}
	if err := json.Unmarshal(out[at:], &p); err != nil {
		return p, err
	}
	if !(p.Residual <= 1e-6) {
		return p, fmt.Errorf("it stopped at a relative residual of %v: %.200s", p.Residual, out[:at])
	}
	return p, nil
}
