package main

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// A trial takes what it waits for from the log of the program, whose other lines it ignores.
func TestTrialFollowsTheLog(t *testing.T) {
	l := newTrial()
	for _, line := range []string{
		`waiting for 2 peers at 10.0.0.1:7000: obstacle peer --rendezvous 10.0.0.1:7000`,
		`{"level":"info","rank":1,"host":"vm","pid":41,"message":"peer joined"}`,
		`{"level":"info","host":"vm","pid":43,"message":"spare peer joined"}`,
		`{"level":"info","peers":2,"message":"started"}`, `no JSON`,
		`{"level":"info","rank":1,"host":"vm","pid":42,"message":"peer joined"}`,
	} {
		l.handle([]byte(line))
	}
	require.Equal(t, "10.0.0.1:7000", <-l.listens)
	require.Len(t, l.started, 1)
	require.Empty(t, l.recovered)
	require.Equal(t, 42, l.pid(1))
	l.handle([]byte(`{"level":"info","epoch":1,"seconds":0.1,"message":"recovered: all peers relax again"}`))
	_, err := next(context.Background(), l, l.recovered, "recovered")
	require.NoError(t, err)
	close(l.done)
	_, err = next(context.Background(), l, l.recovered, "recovered")
	require.ErrorContains(t, err, "obstacle solve ended before it recovered: exit code 0")
}

func TestPercentile(t *testing.T) {
	require.Equal(t, 3.0, percentile([]float64{3}, 99))
	require.Equal(t, 2.0, percentile([]float64{4, 1, 2, 3}, 50))
	require.Equal(t, 4.0, percentile([]float64{4, 1, 2, 3}, 99))
}

func TestFootprint(t *testing.T) {
	f, err := footprintOf(os.Getpid())
	if err != nil {
		t.Skip(err)
	}
	require.Positive(t, f.descriptors)
	require.Positive(t, f.threads)
	require.Greater(t, f.resident, 1e6)
}
