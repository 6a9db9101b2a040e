package report

import (
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/launch"
	"github.com/p2pdc/p2pdc/solver/problem"
)

// Alternatives are the methods that the program would choose instead of that of a run.
type Alternatives struct {
	Otherwise string // for the same run, if the user chose the method
	Faster    bool   // the estimates say that Otherwise needs much less work
	Next      string // if the method of the choice does not converge; empty if it takes part in the run
	// Alternates are the methods between which the run would alternate without the choice of the user, if it is not known which
	// one is better. The fields before are empty then.
	Alternates string  // "A and B"
	Lockstep   string  // for the run with scheme sync, if it has another scheme
	Omega      float64 // the factor of SOR that the user has set; 0: none
}

const (
	// muchWork is the number of sweeps from which a stopped run recommends another method that may be faster.
	muchWork = 1000
	// manySweeps is the number of sweeps from which a run recommends a method that is faster by the estimates.
	manySweeps = 20000
	// roundingLimit is a relative residual that rounding errors seldom exceed.
	roundingLimit = 1e-8
)

// hint recommends another method if the run took long or was stopped; "" if none is known to be better.
func (s *Solution) hint() string {
	a, work := &s.Alternatives, s.SequentialEquivalentSweeps
	stopped := s.Reason == launch.Sweeps || s.Reason == launch.Time || s.Reason == launch.Interrupted
	slow := stopped && work >= muchWork
	stands := s.Reason == launch.Stagnated && s.RelativeResidual > roundingLimit && !s.rounded
	if (slow || stands) && a.Omega > 0 {
		return fmt.Sprintf("%s converges too slowly with --omega %v: without that flag, it chooses its factor", s.Method, a.Omega)
	}
	if a.Lockstep != "" && (slow || stands) {
		return fmt.Sprintf("%s converges too slowly with scheme %s: try --scheme sync, for which %s is chosen (docs/methods.md)",
			s.Method, s.Scheme, a.Lockstep)
	}
	if instead := unless(s.MethodWhy); (slow || stands) && instead != "" && a.Alternates != "" {
		return fmt.Sprintf("if %s converges too slowly here: %s, the run alternates between %s", s.Method, instead, a.Alternates)
	}
	if (slow || stands && unless(s.MethodWhy) != "") && a.Next != "" {
		return fmt.Sprintf("if %s converges too slowly here, try --method %s", s.Method, a.Next)
	}
	if s.Evolution != nil {
		return ""
	}
	if slow || work >= manySweeps || stopped && s.Method == problem.Richardson {
		if hint := a.Hint(s.Method, s.MethodWhy); hint != "" {
			return hint
		}
	}
	if instead := unless(s.MethodWhy); (slow || stands) && instead != "" && a.Otherwise != "" && a.Otherwise != s.Method {
		return fmt.Sprintf("if %s converges too slowly here: %s, %s is chosen", s.Method, instead, a.Otherwise)
	}
	return ""
}

// Hint recommends the method that the program would have chosen for a stationary problem, if that is faster than the one
// that the user chose for the reason why, as in Solution.MethodWhy. It returns "" if there is nothing to recommend.
func (a *Alternatives) Hint(method, why string) string {
	instead := unless(why)
	switch {
	case a.Otherwise == "" || a.Otherwise == method || instead == "":
		return ""
	case method == problem.Richardson:
		return fmt.Sprintf("richardson is the slowest method; %s, %s is chosen (docs/methods.md)", instead, a.Otherwise)
	case a.Faster:
		return fmt.Sprintf("%s, %s is chosen, which is probably faster than %s (docs/methods.md)", instead, a.Otherwise, method)
	}
	return ""
}

// unless says without what the program chooses a method, "" if it chose that of the run.
func unless(why string) string {
	flag, _, _ := strings.Cut(why, ";")
	switch {
	case why == "":
		return "without --method"
	case flag == "--order": // only richardson has one
		return ""
	case strings.HasPrefix(flag, "--"):
		return "without " + flag
	case strings.HasPrefix(why, "that of the checkpoint"):
		return "with --method auto"
	}
	return ""
}
