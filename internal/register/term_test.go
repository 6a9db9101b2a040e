package register

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// term returns a term whose first keeper leads.
func term(number, epoch int, keepers ...string) Term {
	return Term{Number: number, Epoch: epoch, Leader: keepers[0], Keepers: keepers}
}

func TestValidate(t *testing.T) {
	nine := []string{"1", "2", "3", "4", "5", "6", "7", "8", "9"}
	for name, c := range map[string]struct {
		term Term
		ok   bool
	}{
		"one keeper":       {term(1, 0, "a"), true},
		"nine keepers":     {term(maxNumber, 5, nine...), true},
		"ten keepers":      {term(1, 0, append(nine, "10")...), false},
		"no keeper":        {Term{Number: 1, Leader: "a"}, false},
		"zero":             {Term{}, false},
		"number 0":         {term(0, 0, "a"), false},
		"negative number":  {term(-1, 0, "a"), false},
		"large number":     {term(maxNumber+1, 0, "a"), false},
		"negative epoch":   {term(1, -1, "a"), false},
		"listed twice":     {term(1, 0, "a", "b", "a"), false},
		"empty keeper":     {term(1, 0, "a", ""), false},
		"empty leader":     {Term{Number: 1, Keepers: []string{"a"}}, false},
		"empty everywhere": {term(1, 0, ""), false},
		"other leader":     {Term{Number: 1, Leader: "b", Keepers: []string{"a"}}, false},
	} {
		err := Validate(c.term)
		require.Equal(t, c.ok, err == nil, "%s: %v", name, err)
	}
}

func TestEqual(t *testing.T) {
	a := term(1, 2, "a", "b")
	require.True(t, a.Equal(term(1, 2, "a", "b")))
	for _, other := range []Term{term(2, 2, "a", "b"), term(1, 3, "a", "b"), term(1, 2, "b", "a"), term(1, 2, "a"),
		{Number: 1, Epoch: 2, Leader: "b", Keepers: []string{"a", "b"}}} {
		require.False(t, a.Equal(other))
	}
}

func TestMajority(t *testing.T) {
	keepers := []string{"a", "b", "c", "d", "e"}
	for i, want := range []int{1, 2, 2, 3, 3} {
		require.Equal(t, want, term(1, 0, keepers[:i+1]...).majority())
	}
}
