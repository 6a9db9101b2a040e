package kernel

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// The generator uses these offsets of the fields of a tile (gen/main.go).
func TestTileOffsetsMatchTheGenerator(t *testing.T) {
	var v tile
	for want, got := range map[uintptr]uintptr{
		0: unsafe.Offsetof(v.out), 8: unsafe.Offsetof(v.c), 16: unsafe.Offsetof(v.s), 24: unsafe.Offsetof(v.n),
		32: unsafe.Offsetof(v.b), 40: unsafe.Offsetof(v.t), 48: unsafe.Offsetof(v.f), 56: unsafe.Offsetof(v.phi),
		64: unsafe.Offsetof(v.psi), 72: unsafe.Offsetof(v.count), 80: unsafe.Offsetof(v.rows),
		88: unsafe.Offsetof(v.outStep), 96: unsafe.Offsetof(v.rowStep), 104: unsafe.Offsetof(v.planeStep),
		112: unsafe.Offsetof(v.fStep), 120: unsafe.Offsetof(v.phiStep), 128: unsafe.Offsetof(v.psiStep),
		136: unsafe.Offsetof(v.step), 144: unsafe.Offsetof(v.source), 152: unsafe.Offsetof(v.k),
		208: unsafe.Offsetof(v.p),
		264: unsafe.Offsetof(v.xStep), 272: unsafe.Offsetof(v.yStep), 280: unsafe.Offsetof(v.zStep),
		288: unsafe.Offsetof(v.odd),
	} {
		if unsafe.Sizeof(v.out) == 8 {
			require.Equal(t, want, got)
		}
	}
}
