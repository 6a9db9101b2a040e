package measure

import (
	"encoding/csv"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// simulatedExample returns a record without sources.
func simulatedExample(part string, results ...Result) *Record {
	of := example()
	of.Part, of.dir, of.Results = part, "experiments/results", results
	return of
}

func TestTablesOfSimulatedClusters(t *testing.T) {
	records := map[string][]*Record{
		"whatif": {simulatedExample("whatif",
			One("graphene-eth, 64 machines, 256³, as published", "s", 448).Against("as published", []float64{448}),
			One("graphene-eth, 64 machines, 256³, boxes", "s", 224).Against("as published", []float64{448}),
			One("graphene-ib, 64 machines, 256³, boxes", "s", 149.4).Against("as published", []float64{248}),
			One("graphene-ib, 64 machines, membrane 256³ to 1e-6, Schwarz", "s", 0.5).Against("Richardson", []float64{128}),
			One("64³ for 256³, 64 machines, sync: time of a sweep, proxy / full grid", "ratio", 0.99))},
		"efficiency": {simulatedExample("efficiency",
			One("graphene-ib, 256³, 64 machines, boxes, overlap, Richardson sync", "%", 85.52),
			One("graphene-ib, 256³, 1024 machines, boxes, overlap, Richardson sync", "%", 56.3),
			One("grid-10ms, 256³, 64 machines, boxes, overlap, Richardson hybrid", "%", 48))},
		"faults": {simulatedExample("faults", One("no fault: sync", "s", 0.6), One("no fault: async", "s", 0.5).Against("sync", []float64{0.6}),
			One("a machine lost: sync", "s", 9.99))},
		"localhost": {simulatedExample("localhost",
			One("sync, 1 peers: predicted time", "s", 1.2).Against("real", []float64{1}),
			One("async, 2 peers, a wire: predicted sweeps", "sweeps", 90).Against("real", []float64{100}))},
		"map": {simulatedExample("map",
			One("latency 10µs, one machine of 27 1 times slower: synchronous", "s", 0.5).Against("asynchronous", []float64{0.5}),
			One("latency 10µs, one machine of 27 8 times slower: synchronous", "s", 3.5).Against("asynchronous", []float64{0.5}),
			One("latency 20ms, one machine of 27 1 times slower: synchronous", "s", 1.5).Against("asynchronous", []float64{0.5}))},
	}
	now := &sources{root: root}
	got, err := simulatedTables(now, records)
	require.NoError(t, err)
	source := func(part string) string {
		return "\nRecord: [0123abc](../experiments/results/" + part + ".md), 2026-11-23, before changes of the code that it measures.\n"
	}
	require.Equal(t, map[string]string{
		"whatif": "| 64 machines, 256³: seconds of the published run (faster by) | graphene-eth | graphene-ib |\n|---|---|---|\n" +
			"| as published | 448 (1) | |\n| boxes | 224 (2) | 149 (1.66) |\n\n" +
			"| 64 machines, membrane, 256³ to 1e-6: seconds (faster by) | graphene-ib |\n|---|---|\n| Schwarz | 0.5 (256) |\n" +
			source("whatif"),
		"efficiency": "| efficiency of Richardson on machines | 64 | 1024 |\n|---|---|---|\n" +
			"| graphene-ib, 256³, sync | 85.5 % | 56.3 % |\n| grid-10ms, 256³, hybrid | 48 % | |\n" + source("efficiency"),
		"faults": "| 27 machines, 10 Gbit/s: seconds until the tolerance is met (faster than sync by) | sync | async |\n|---|---|---|\n" +
			"| no fault | 0.6 | 0.5 (1.2) |\n| a machine lost | 9.99 | |\n" + source("faults"),
		"localhost": "| predicted, real (error); seconds, sweeps | sync: time | async: sweeps |\n|---|---|---|\n" +
			"| 1 peers | 1.2, 1 (+20 %) | |\n| 2 peers, a wire | | 90, 100 (-10 %) |\n" + source("localhost"),
		"map": "Synchronous / asynchronous time: 1.00 with equal machines and a latency of 10 µs, 7.0 with one machine 8 times\n" +
			"slower there, 3.0 with equal machines and a latency of 20 ms; 1.00 at least.\n" + source("map"),
	}, got)

	records["map"][0].Sources, err = now.of("map")
	require.NoError(t, err)
	got, err = simulatedTables(now, records)
	require.NoError(t, err)
	require.NotContains(t, got["map"], "before changes of")
	delete(records, "faults")
	_, err = simulatedTables(now, records)
	require.ErrorContains(t, err, "no record of part faults")
}

// docs/pictures/map.csv, which is written with the figure beside it, has the values of the newest record.
func TestFileOfTheMapIsThatOfTheRecord(t *testing.T) {
	records, err := readRecords(filepath.Join(root, "experiments", "results"))
	require.NoError(t, err)
	require.NotEmpty(t, records["map"])
	f, err := os.Open(filepath.Join(root, "docs", "pictures", "map.csv"))
	require.NoError(t, err)
	defer func() { _ = f.Close() }()
	rows, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 26)
	for _, row := range rows[1:] {
		seconds, err := strconv.ParseFloat(row[0], 64)
		require.NoError(t, err)
		latency := time.Duration(math.Round(seconds * 1e9))
		_, r := newest(records["map"][:1], fmt.Sprintf("latency %v, one machine of 27 %s times slower: synchronous", latency, row[1]))
		require.NotNil(t, r, row)
		require.Equal(t, strconv.FormatFloat(r.Value, 'g', 6, 64), row[2])
		require.Equal(t, strconv.FormatFloat(r.Peers[0].Value, 'g', 6, 64), row[3])
	}
}
