package file

import (
	"strings"
	"testing"

	"github.com/p2pdc/p2pdc/problems/option"
	"github.com/p2pdc/p2pdc/solver/problem"
	"github.com/stretchr/testify/require"
)

const everyOptionKey = `
kind: american-option
payoff: put
basket: geometric
strike: 110
rate: 0.03
maturity: 0.5
steps: 20
assets:
  - {price: 100, volatility: 0.2, dividend: 0.01}
  - {price: 90, volatility: 1/4}
correlation: [[1, 0.3], [0.3, 1]]
weights: [0.25, 0.75]
width: 4
`

func TestEveryOptionKey(t *testing.T) {
	s := parse(t, everyOptionKey)
	require.Equal(t, 2, s.Dimension())
	want := &option.Option{
		Payoff: option.Put, Basket: option.Geometric, Strike: 110, Rate: 0.03, Maturity: 0.5, Steps: 20, Width: 4,
		Assets:  []option.Asset{{Price: 100, Volatility: 0.2, Dividend: 0.01}, {Price: 90, Volatility: 0.25}},
		Weights: []float64{0.25, 0.75},
	}
	want.Correlation = option.Correlated(0.3)
	want.Correlation[0][2], want.Correlation[2][0], want.Correlation[1][2], want.Correlation[2][1] = 0, 0, 0, 0
	require.Equal(t, want, s.Option())
	p, err := s.BuildValid([]int{9})
	require.NoError(t, err)
	require.Equal(t, 20, p.Steps())
	require.Positive(t, p.Obstacle(problem.Point{}))

	text := s.Describe().String()
	for _, line := range []string{
		"American put on the geometric mean of 2 assets, strike 110, interest 0.03, maturity 0.5",
		"today 90, volatility 0.25, dividend 0;", "of asset 2 with those before it: [0.3]",
		"20 steps of implicit Euler",
	} {
		require.Contains(t, text, line)
	}
	// It is marshalled as its text.
	again, err := UnmarshalSpec(nil, s.Marshal())
	require.NoError(t, err)
	require.Equal(t, s.Option(), again.Option())
	require.Equal(t, s.Fingerprint(), again.Fingerprint())
}

func TestOptionDefaults(t *testing.T) {
	o := parse(t, "kind: american-option\npayoff: call\nstrike: 1\nrate: 0\nmaturity: 1\nassets: [{price: 1, volatility: 0.1}]\n").Option()
	require.Equal(t, 100, o.Steps)
	require.Zero(t, o.Assets[0].Dividend)
	o = parse(t, strings.Replace(everyOptionKey, "correlation: [[1, 0.3], [0.3, 1]]", "correlation: -0.5", 1)).Option()
	require.Equal(t, option.Correlated(-0.5), o.Correlation)
	s := parse(t, "kind: american-option\npayoff: put\nstrike: 1\nrate: 0.1\nmaturity: perpetual\nassets: [{price: 1, volatility: 0.1}]\n")
	require.True(t, s.Option().Perpetual)
	require.True(t, s.Describe().HasExact)
	require.Nil(t, parse(t, "kind: obstacle\ndimension: 1\ndomain: [[0, 1]]\nobstacle: -1\n").Option())
}

// Words of built-ins are marshalled as words.
func TestBuiltinOptions(t *testing.T) {
	s, err := Open(nil, "american-basket", []string{"payoff=call", "basket=max", "correlation=0.5"})
	require.NoError(t, err)
	o := s.Option()
	require.Equal(t, option.Call, o.Payoff)
	require.Equal(t, option.Maximum, o.Basket)
	require.Len(t, o.Assets, 3)
	again, err := UnmarshalSpec(nil, s.Marshal())
	require.NoError(t, err)
	require.Equal(t, o, again.Option())
	require.Contains(t, s.Describe().String(), "basket       max: min, max, arithmetic or geometric")
	for setting, want := range map[string]string{
		"basket=mean":     `parameter basket="mean": want min, max, arithmetic, geometric`,
		"volatility=-0.1": "problem american-basket: volatility: -0.1: it must be positive and finite",
		"maturity=0":      "maturity: 0: it must be positive",
		"steps=2.5":       "steps: 2.5: want a whole number from 1 to 1048576",
		"width=0":         "width: 0: want a positive",
		"correlation=-.6": "correlation: the matrix is not positive definite",
		"price=0":         "price: 0: it must be positive",
	} {
		_, err := Open(nil, "american-basket", []string{setting})
		require.ErrorContains(t, err, want)
	}
}

// The reader of options panics for no text, and an accepted option can be built.
func FuzzOption(f *testing.F) {
	f.Add([]byte(everyOptionKey))
	f.Add([]byte("kind: american-option\npayoff: put\nstrike: 1\nrate: 0.1\nmaturity: perpetual\nassets: [{price: 1, volatility: 0.1}]\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := Parse("fuzz.yaml", text, arrays)
		if err != nil || s.Option() == nil {
			return
		}
		_, err = s.BuildValid([]int{3})
		require.NoError(t, err)
	})
}
