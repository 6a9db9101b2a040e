package option_test

import (
	"fmt"

	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/p2pdc/p2pdc/solver/richardson"
)

// An American put on one asset is solved as an obstacle problem. Its price and delta are read from the
// solution, and so is the critical price, below which it is exercised.
func ExampleOption() {
	o := &option.Option{
		Payoff: option.Put, Strike: 100, Rate: 0.05, Maturity: 1, Steps: 100,
		Assets:      []option.Asset{{Price: 100, Volatility: 0.2}},
		Correlation: option.Uncorrelated(),
	}
	p, err := o.Problem("put", [3]int{255, 1, 1})
	if err != nil {
		panic(err)
	}
	s, err := richardson.SolveSequential(p, problem.Jacobi, 1e-7, 0, 0, 0)
	if err != nil {
		panic(err)
	}
	last := p.AtStep(p.Steps())
	q, err := o.Quote(last, s.U)
	if err != nil {
		panic(err)
	}
	critical, err := o.Critical(last, s.U)
	if err != nil {
		panic(err)
	}
	fmt.Println(o)
	fmt.Printf("price %.2f, delta %.2f, exercised below %.0f\n", q.Price, q.Delta[0], 100*critical)
	// Output:
	// American put on one asset, strike 100, interest 0.05, maturity 1
	// price 6.08, delta -0.41, exercised below 81
}
