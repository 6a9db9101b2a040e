package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/p2pdc/p2pdc/internal/spelling"
	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Tabs aligns columns that are separated by tabs; Flush writes them to w.
func Tabs(w io.Writer) *tabwriter.Writer { return tabwriter.NewWriter(w, 0, 0, 2, ' ', 0) }

// Text writes the solution as text.
func (s *Solution) Text(w io.Writer) {
	t := Tabs(w)
	defer t.Flush()
	what := "points"
	if s.Method == problem.FixedPoint {
		what = "unknowns"
	}
	fmt.Fprintf(t, "problem\t%s, %s %s\n", s.Problem, grid(s.N), what)
	fmt.Fprintf(t, "method\t%s\n", s.method())
	if chosen(s.MethodWhy) && s.Method != problem.FixedPoint {
		fmt.Fprintf(t, "\tchosen: %s\n", s.MethodWhy)
	}
	if s.About != "" {
		fmt.Fprintf(t, "\t%s\n", s.About)
	}
	each := ""
	if s.Parts > 1 {
		each = fmt.Sprintf(", %d each", s.Parts)
	}
	fmt.Fprintf(t, "peers\t%s of %s, parts %s%s%s\n",
		plural(s.Peers, "peer"), plural(s.Threads, "thread"), grid(s.Partition), each, s.where())
	if s.Chosen != "" {
		fmt.Fprintf(t, "\tchosen: %s\n", s.Chosen)
	}
	channels(t, s.Sessions)
	s.devices(t)
	fmt.Fprintf(t, "result\t%s\n", s.verdict())
	if hint := s.hint(); hint != "" {
		fmt.Fprintf(t, "\t%s\n", hint)
	}
	s.checkpoint(t)
	losses(t, s.Losses)
	moves(t, s.Moves)
	s.holes(t)
	fmt.Fprintf(t, "residual\t%s relative (tolerance %g), %s largest\n",
		value(s.RelativeResidual), s.Tolerance, value(s.ResidualInf))
	if s.ErrorBound.Known() {
		fmt.Fprintf(t, "error\tat most %s against the discrete solution (‖A⁻¹‖ ≤ %.4g by %s)\n",
			value(s.ErrorBound), s.InverseNorm, s.ErrorBoundBy)
	} else {
		fmt.Fprintf(t, "error\tno bound: %s\n", s.ErrorBoundWhy)
	}
	if s.Option != nil && s.ErrorBound.Known() {
		fmt.Fprintln(t, "\tthe error of the discretisation, given with the price, is larger")
	}
	s.Enclosure.text(t, s.HasUpper)
	if s.MaxError.Known() {
		fmt.Fprintf(t, "\t%s against the exact solution of the continuous problem\n", value(s.MaxError))
	}
	s.Evolution.text(t)
	s.Option.text(t)
	s.contact(t)
	fmt.Fprintf(t, "%s\t%s, as many points as %.1f sequential sweeps\n", s.Iterates, span(s.Sweeps),
		s.SequentialEquivalentSweeps)
	if s.Balance != "off" && s.Balance != "" {
		fmt.Fprintf(t, "balance\t%s\n", s.balance())
	}
	if s.Seconds.Known() {
		unknown := "unknown"
		fmt.Fprintf(t, "time\t%.3f s (set-up %.3f s, gathering %.3f s, output %.3f s), %.3f G points/s, kernel %s\n",
			s.Seconds, s.SetupSeconds, s.GatherSeconds, s.OutputSeconds, s.PointsPerSecond/1e9,
			*cmp.Or(s.Kernel, &unknown))
	} else {
		fmt.Fprintln(t, "time\tunknown")
	}
	if s.Messages > 0 {
		fmt.Fprintf(t, "halos\t%d messages, %.1f MB; not received %d, retransmitted segments %d\n",
			s.Messages, float64(s.Bytes)/1e6, s.MessagesLost, s.Retransmitted)
	}
	if r := unusual(s.Refused); r != "" {
		fmt.Fprintf(t, "refused\t%s (docs/security.md)\n", r)
	}
	for _, p := range s.Probes {
		fmt.Fprintf(t, "u%v\t%.17g", tuple(p.At), p.U)
		if b := p.Between; b != nil {
			fmt.Fprintf(t, ", between %.17g and %.17g", b[0], b[1])
		}
		fmt.Fprintln(t)
	}
	for i := range s.Outputs {
		s.Outputs[i].line(t, "\t")
	}
}

func (s *Solution) contact(w io.Writer) {
	if s.Method == problem.FixedPoint {
		return
	}
	if s.ContactPoints < 0 {
		fmt.Fprintln(w, "contact\tunknown")
		return
	}
	share := func(n nullable.Count) float64 { return 100 * float64(n) / float64(s.Points) }
	fmt.Fprintf(w, "contact\t%d points (%.1f %%)", s.ContactPoints, share(s.ContactPoints))
	if s.HasUpper {
		fmt.Fprintf(w, " on the obstacle, %d (%.1f %%) on the upper one", s.UpperContact, share(s.UpperContact))
	}
	fmt.Fprintln(w)
	if s.ContactPoints == 0 && s.UpperContact <= 0 {
		return
	}
	fmt.Fprintf(w, "force\t%.6g on the obstacle", s.ContactForce)
	if s.HasUpper {
		fmt.Fprintf(w, ", %.6g on the upper one", s.UpperForce)
	}
	fmt.Fprintln(w)
}

// method returns the method, the scheme and, for Richardson, the order of sub-blocks.
func (s *Solution) method() string {
	switch s.Method {
	case problem.Richardson:
		return fmt.Sprintf("projected %s, %s, %s", s.Method, s.Scheme, s.Order)
	case problem.FixedPoint:
		return fmt.Sprintf("x ← F(x), %s", s.Scheme)
	}
	return fmt.Sprintf("projected %s, %s", s.Method, s.Scheme)
}

// chosen reports whether the program chose the method for this reason.
func chosen(why string) bool { return why != "" && why != "--method" }

// unusual lists the refusals that networks do not cause by duplicating or delaying frames.
func unusual(refused map[string]uint64) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(refused)) {
		switch name {
		case "frame.session", "frame.epoch", "frame.replayed", "frame.old":
		default:
			out = append(out, fmt.Sprintf("%s %d", name, refused[name]))
		}
	}
	return strings.Join(out, ", ")
}

func (s *Solution) devices(w io.Writer) {
	has := map[string][]int{}
	for _, p := range s.PerPeer {
		has[p.Device] = append(has[p.Device], p.Rank)
	}
	if len(has) == 0 || len(has) == 1 && has[""] != nil {
		return
	}
	heading := "InfiniBand"
	for _, device := range slices.Sorted(maps.Keys(has)) {
		name := cmp.Or(device, "no adapter")
		ranks := strings.Trim(fmt.Sprint(has[device]), "[]")
		fmt.Fprintf(w, "%s\t%s: %s %s\n", heading, name, noun(len(has[device]), "peer"), ranks)
		heading = ""
	}
}

func (s *Solution) balance() string {
	if s.Balance != "on" {
		return s.Balance
	}
	if s.Parts > 1 {
		return plural(len(s.Moves), "part") + " moved"
	}
	return fmt.Sprintf("%s moved; the peers end with %s",
		plural(s.PlanesMoved, "plane"), strings.Trim(fmt.Sprint(s.Planes), "[]"))
}

func (s *Solution) where() string {
	if s.InProcess {
		return ", in this process"
	}
	hosts := map[string]bool{}
	for _, p := range s.PerPeer {
		hosts[p.Host] = true
	}
	if len(hosts) > 1 {
		return fmt.Sprintf(", processes on %d hosts", len(hosts))
	}
	return ", one process each"
}

func (s *Solution) verdict() string {
	switch s.Reason {
	case launch.Converged:
		if !s.Converged {
			return "the peers stopped, but the residual of the assembled solution is above the tolerance"
		}
		return "solved"
	case launch.Sweeps:
		return "stopped by --max-sweeps: " + s.best()
	case launch.Time:
		return "stopped by --max-time: " + s.best()
	case launch.Interrupted:
		return "interrupted: " + s.best()
	case launch.Stagnated:
		return s.stagnated()
	case launch.Diverged:
		return "diverged: " + s.best() + "; " + spelling.Visible(s.Failure)
	}
	if s.Converged {
		return "solved, although the run failed: " + spelling.Visible(s.Failure)
	}
	return "failed: " + spelling.Visible(s.Failure)
}

// stagnated describes why the run stagnated, as far as it is known, and which tolerance can be met.
func (s *Solution) stagnated() string {
	why := "stagnated: the residual has stopped falling"
	switch {
	case s.rounded:
		why = "stagnated by rounding: the tolerance is near or below what double precision gives here"
	case s.Method == problem.FixedPoint:
		why += ", by rounding, or since F is no contraction"
	case s.RelativeResidual <= roundingLimit:
		why += ", by rounding, since A is nearly singular, or since the method is very slow here"
	case s.Alternatives.Lockstep == "":
		why += ", since A is nearly singular, or since the method is very slow here"
	}
	if s.ReachableTolerance.Known() {
		why += fmt.Sprintf("; --tol %.2g can be met", s.ReachableTolerance)
	}
	if s.AtStart {
		why += ": " + s.best()
	}
	return why
}

// best describes the answer of a run that ended early.
func (s *Solution) best() string {
	if s.AtStart && s.Resumed != nil {
		return "answer of the run before, whose residual is smaller than that of the last iterate"
	}
	if s.AtStart {
		return "starting iterate, whose residual is smaller than that of the last one"
	}
	return "best iterate"
}

func plural(n int, what string) string { return fmt.Sprintf("%d %s", n, noun(n, what)) }

func noun(n int, what string) string {
	if n == 1 {
		return what
	}
	return what + "s"
}

func grid(n []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(n)), " × "), "[]")
}

func tuple(v []float64) string {
	return "(" + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(v)), ", "), "[]") + ")"
}

func value(n nullable.Number) string { return n.Text("%.3e", "?") }

// span returns the range of the numbers of sweeps.
func span(v []nullable.Count) string {
	v = slices.DeleteFunc(slices.Clone(v), func(c nullable.Count) bool { return c < 0 }) // of lost peers
	if len(v) == 0 {
		return "none"
	}
	low, high := slices.Min(v), slices.Max(v)
	if low == high {
		return fmt.Sprint(low)
	}
	return fmt.Sprintf("%d to %d", low, high)
}
