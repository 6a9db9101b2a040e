package figure

import (
	"bytes"
	"fmt"
	"image/png"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWrite(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, Write(&file, "compare.png", "membrane", []Series{
		{"sync", []Point{{1, 0.95, 1, 1.05}, {2, 0.7, 0.8, 0.9}}},
		{"async", []Point{{2, 0.8, 0.9, 0.95}}},
	}))
	m, err := png.Decode(&file)
	require.NoError(t, err)
	require.Greater(t, m.Bounds().Dx(), 300)
	colours := map[any]bool{}
	for y := range m.Bounds().Dy() {
		for x := range m.Bounds().Dx() {
			colours[m.At(x, y)] = true
		}
	}
	require.Greater(t, len(colours), 3, "both lines are there")
}

// Lines of the same colour have different dashes.
func TestWriteManySeries(t *testing.T) {
	var few, many bytes.Buffer
	var all []Series
	for i := range len(colours()) + 1 {
		all = append(all, Series{fmt.Sprint(i), []Point{{2, 0.5, 0.5, 0.5}, {4, 0.4, 0.4, 0.4}}})
	}
	require.NoError(t, Write(&few, "compare.SVG", "membrane", all[:len(colours())]))
	require.NoError(t, Write(&many, "compare.svg", "membrane", all))
	dashes := func(b *bytes.Buffer) int { return bytes.Count(b.Bytes(), []byte("stroke-dasharray")) }
	require.Equal(t, 2, dashes(&many)-dashes(&few), "the line and its legend")
}

func TestCheck(t *testing.T) {
	require.NoError(t, Check("a.PNG"))
	require.ErrorContains(t, Check("a.vti"), ".png")
}
