package cli

import (
	"fmt"
	"io"
)

// try is a command for a new user.
type try struct {
	Command string `json:"command"`
	Shows   string `json:"shows"`
}

// firstCommands returns what obstacle without arguments proposes. Each command works where the ones before it were run.
func firstCommands() []try {
	return []try{
		{"obstacle solve membrane --n 32 --probe 0.5,0.5,0.5",
			"a membrane over an obstacle: its height in the centre, the residual and an error bound"},
		{"obstacle init my.yaml", "a problem file of your own, with a comment for every key"},
		{"obstacle explain my.yaml", "the problem in mathematical words, and what would be chosen to solve it, and why"},
		{"obstacle solve my.yaml --out my.png", "the solution of your problem, as numbers and as a picture"},
		{"obstacle compare membrane --n 24 --peers 2", "which scheme is faster here, by how much, and why"},
	}
}

// first shows a new user what to try.
func (a *app) first() error {
	v := struct {
		Try []try `json:"try"`
	}{firstCommands()}
	paint := a.painter(a.out)
	return a.print(v, func(w io.Writer) {
		fmt.Fprint(w, "obstacle solves obstacle problems, such as a membrane over an obstacle, on several processes or "+
			"machines.\nTry, in this order:\n\n")
		for _, t := range v.Try {
			fmt.Fprintf(w, "  %s\n      %s\n", paint(bold, t.Command), t.Shows)
		}
		fmt.Fprint(w, "\nobstacle --help lists all commands, obstacle COMMAND --help explains one.\n")
	})
}
