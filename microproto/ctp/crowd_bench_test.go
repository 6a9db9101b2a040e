package ctp

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

// BenchmarkCompose measures the creation of a session's composite: time, memory allocated (B/op),
// and memory that remains in use. A simulated cluster has thousands of them.
func BenchmarkCompose(b *testing.B) {
	for _, column := range []struct {
		name string
		rows []string
	}{{"sync intra", syncEther}, {"sync inter", syncInter}, {"async intra", asyncEther}} {
		b.Run(column.name, func(b *testing.B) {
			catalog := Catalog()
			kept := make([]*microproto.Composite, 0, max(b.N, 1<<12))
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.ReportAllocs()
			for b.Loop() {
				rows, err := catalog.Build(column.rows, nil)
				require.NoError(b, err)
				c, err := microproto.NewComposite(microproto.Config{Name: "compose", MTU: 1472}, rows...)
				require.NoError(b, err)
				require.NoError(b, c.Open(0))
				kept = append(kept, c)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(kept)), "B-kept/op")
			b.ReportMetric(float64(after.HeapObjects-before.HeapObjects)/float64(len(kept)), "objects-kept/op")
			runtime.KeepAlive(kept)
		})
	}
}

// BenchmarkCrowd measures a message with its acknowledgement at both ends, with so many pairs of
// ends in turn that no cache holds them, and with one pair.
func BenchmarkCrowd(b *testing.B) {
	for _, pairs := range []int{1, 1024} {
		for _, ahead := range []bool{false, true} {
			b.Run(fmt.Sprintf("pairs=%d/ahead=%v", pairs, ahead), func(b *testing.B) {
				crowd := make([]*exchange, pairs)
				for i := range crowd {
					crowd[i] = newExchange(b, syncEther, 1, 512, 0)
					for _, c := range crowd[i].ends {
						if ahead {
							c.Prefetch()
						}
					}
					crowd[i].turn()
				}
				b.ResetTimer()
				for i := 0; b.Loop(); i++ {
					crowd[i%pairs].turn()
				}
			})
		}
	}
}
