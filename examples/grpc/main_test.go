package main

import (
	"bytes"
	"context"
	"testing"
)

func TestRun(t *testing.T) {
	var out bytes.Buffer
	if err := run(context.Background(), &out); err != nil {
		t.Fatal(err)
	}
	const want = "gRPC: the solver is NOT_SERVING\ngRPC, a stream: the solver is NOT_SERVING\ngRPC, a stream: the solver is SERVING\n"
	if out.String() != want {
		t.Errorf("it printed\n%s", out.String())
	}
}
