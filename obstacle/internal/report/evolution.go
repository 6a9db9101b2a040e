package report

import (
	"fmt"
	"io"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/simulate"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Evolution holds the fields that the JSON of solve has in addition for a nonstationary problem. relative_residual is
// then that of the worst step; residual_inf, max_error and the other values refer to the end of the last complete
// step.
type Evolution struct {
	Steps      int     `json:"steps"`
	StepsDone  int     `json:"steps_done"`
	EndTime    float64 `json:"end_time"`
	Time       float64 `json:"time"`        // reached
	StepLength float64 `json:"step_length"` // Δt

	// FirstStep is the first that the fields below describe. Those before belong to an earlier run, or ended before
	// another process led the run.
	FirstStep     int             `json:"first_step"`
	WorstResidual nullable.Number `json:"worst_residual"` // recomputed, of the worst step
	WorstStep     nullable.Count  `json:"worst_step"`
	LastResidual  nullable.Number `json:"last_residual"` // recomputed, of the last complete step
	MaxErrorSteps nullable.Number `json:"max_error_steps"`
	MaxErrorStep  nullable.Count  `json:"max_error_step"`

	Reconfigure            string  `json:"reconfigure"`
	Reconfigurations       int     `json:"reconfigurations"`        // changes of mode, maximum over peers
	ReconfigurationSeconds float64 `json:"reconfiguration_seconds"` // with waits for neighbours; of the slowest peer
	StaleFaces             uint64  `json:"stale_faces"`             // dropped, since they belong to a former step

	TimeSteps []launch.Step `json:"time_steps"` // at most 1000, evenly spread
}

// NewEvolution returns the JSON of the steps of a run.
func NewEvolution(p *problem.Problem, o *launch.Outcome, stepMode string) *Evolution {
	e := p.Evolution
	out := &Evolution{
		Steps: e.Steps, StepsDone: o.Steps, EndTime: e.End, Time: e.Time(o.Steps), StepLength: e.Step(),
		WorstResidual: nullable.NaN(), LastResidual: nullable.NaN(), MaxErrorSteps: nullable.NaN(),
		WorstStep: nullable.Measured(int64(o.Worst.Step)), MaxErrorStep: nullable.Unknown, FirstStep: o.FirstStep,
		Reconfigure: stepMode, TimeSteps: append([]launch.Step{}, o.StepList...),
	}
	for _, p := range o.Peers {
		out.Reconfigurations = max(out.Reconfigurations, p.Reconfigurations)
		out.ReconfigurationSeconds = max(out.ReconfigurationSeconds, p.ReconfigurationSeconds)
		out.StaleFaces += p.StaleFaces
	}
	return out
}

// text writes the steps as text, nothing for a stationary problem.
func (e *Evolution) text(w io.Writer) {
	if e == nil {
		return
	}
	fmt.Fprintf(w, "steps\t%d of %d, to t = %g, Δt = %g", e.StepsDone, e.Steps, e.Time, e.StepLength)
	if e.WorstStep >= 0 {
		fmt.Fprintf(w, "; worst residual %s in step %d", value(e.WorstResidual), e.WorstStep)
	}
	if e.FirstStep > 1 {
		fmt.Fprintf(w, " (steps before %d are not known here)", e.FirstStep)
	}
	fmt.Fprintln(w)
	if e.MaxErrorSteps.Known() {
		fmt.Fprintf(w, "\tlargest error of all steps %s, in step %d\n", value(e.MaxErrorSteps), e.MaxErrorStep)
	}
	if e.Reconfigurations > 0 {
		fmt.Fprintf(w, "\tsessions changed their mode %d times, %.3f s in all\n", e.Reconfigurations,
			e.ReconfigurationSeconds)
	}
}

// SimulatedSteps holds the fields that the JSON of a simulated run has in addition for a nonstationary problem.
type SimulatedSteps struct {
	Steps      int             `json:"steps"`
	StepsDone  int             `json:"steps_done"`
	EndTime    float64         `json:"end_time"`
	Time       float64         `json:"time"`        // reached
	StepLength float64         `json:"step_length"` // Δt
	TimeSteps  []SimulatedStep `json:"time_steps"`  // at most 1000, evenly spread
}

// SimulatedStep describes the end of a time step in a simulated run.
type SimulatedStep struct {
	Step     int             `json:"step"`
	Time     float64         `json:"time"`
	Seconds  float64         `json:"seconds"`           // since the first relaxation, when the last machine ended it
	Sweeps   float64         `json:"sweeps"`            // mean over points
	Residual nullable.Number `json:"relative_residual"` // as the machines agreed
}

// maxSimulatedSteps bounds TimeSteps.
const maxSimulatedSteps = 1000

// simulatedSteps returns the steps of a simulated run, nil for a stationary problem.
func simulatedSteps(r *simulate.Result, p *problem.Problem) *SimulatedSteps {
	e := p.Evolution
	if e == nil {
		return nil
	}
	out := &SimulatedSteps{
		Steps: e.Steps, StepsDone: len(r.Steps), EndTime: e.End, Time: e.Time(len(r.Steps)), StepLength: e.Step(),
		TimeSteps: []SimulatedStep{},
	}
	every := 1 + e.Steps/maxSimulatedSteps
	for _, s := range r.Steps {
		if s.Step%every == 0 || s.Step == e.Steps {
			out.TimeSteps = append(out.TimeSteps, SimulatedStep{
				Step: s.Step, Time: e.Time(s.Step), Seconds: s.Ended.Seconds(), Sweeps: s.Sweeps,
				Residual: nullable.Number(s.Residual),
			})
		}
	}
	return out
}

// text writes the steps as text, nothing for a stationary problem.
func (s *SimulatedSteps) text(w io.Writer) {
	if s != nil {
		fmt.Fprintf(w, "steps\t%d of %d, to t = %g, Δt = %g\n", s.StepsDone, s.Steps, s.Time, s.StepLength)
	}
}
