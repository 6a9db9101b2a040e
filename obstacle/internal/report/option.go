package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/p2pdc/p2pdc/obstacle/internal/nullable"
	"github.com/p2pdc/p2pdc/problems/option"
)

// Option holds the fields that the JSON of solve has in addition for an American option.
type Option struct {
	Contract string          `json:"contract"`
	Assets   []option.Asset  `json:"assets"`
	Price    nullable.Number `json:"price"`
	// PriceError estimates the error of Price by the discretisation in space and time. It is not a bound. If it is
	// null, PriceErrorWhy is the reason.
	PriceError    nullable.Number `json:"price_error_estimate"`
	PriceErrorWhy string          `json:"price_error_why,omitempty"`

	Delta    []nullable.Number   `json:"delta"`        // ∂V/∂Sᵢ
	Gamma    [][]nullable.Number `json:"gamma"`        // ∂²V/∂Sᵢ∂Sⱼ
	Exercise bool                `json:"exercise_now"` // the option is exercised at today's prices

	// Factor is the multiple of today's prices at which exercising begins if all prices change in proportion; null if
	// it begins nowhere. A put is exercised below it, a call above it.
	Factor   nullable.Number   `json:"critical_factor"`
	Critical []nullable.Number `json:"critical_prices"`

	side string // of Factor on which the option is exercised
}

// NewOption returns the JSON of a contract and its solution.
func NewOption(o *option.Option, q option.Quote, factor, priceError float64, why string) *Option {
	out := &Option{
		Contract: o.String(), Assets: o.Assets, Price: nullable.Number(q.Price), Exercise: q.Exercise,
		PriceError: nullable.Number(priceError), PriceErrorWhy: why, Delta: numbers(q.Delta),
		Factor: nullable.Number(factor),
	}
	if out.side = "below"; o.Payoff == option.Call {
		out.side = "above"
	}
	for _, row := range q.Gamma {
		out.Gamma = append(out.Gamma, numbers(row))
	}
	for _, a := range o.Assets {
		out.Critical = append(out.Critical, nullable.Number(a.Price*factor))
	}
	return out
}

func numbers(v []float64) (out []nullable.Number) {
	for _, x := range v {
		out = append(out, nullable.Number(x))
	}
	return out
}

// text writes the quote as text, nothing for other problems.
func (o *Option) text(w io.Writer) {
	if o == nil {
		return
	}
	fmt.Fprintf(w, "option\t%s\n", o.Contract)
	if o.PriceError.Known() {
		fmt.Fprintf(w, "price\t%.6g, error about %.1e (discretisation in space and time; an estimate, not a bound)\n",
			o.Price, o.PriceError)
	} else {
		fmt.Fprintf(w, "price\t%.6g, error unknown: %s\n", o.Price, o.PriceErrorWhy)
	}
	fmt.Fprintf(w, "delta\t%s\n", row(o.Delta))
	for i, g := range o.Gamma {
		fmt.Fprintf(w, "%s\t%s\n", []string{"gamma", ""}[min(i, 1)], row(g))
	}
	begins := "at " + row(o.Critical) + " and " + o.side
	if !o.Factor.Known() {
		begins = "nowhere in the domain"
	}
	if len(o.Assets) > 1 {
		begins += ", if all prices change in proportion"
	}
	if o.Exercise {
		begins += "; now"
	}
	fmt.Fprintf(w, "exercise\t%s\n", begins)
}

func row(v []nullable.Number) string {
	var out []string
	for _, n := range v {
		out = append(out, fmt.Sprintf("%.6g", n))
	}
	return strings.Join(out, "  ")
}
