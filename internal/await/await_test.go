package await

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// record records the failure of a test.
type record struct {
	failure  string
	cleanups []func()
}

func (r *record) Errorf(format string, args ...any) { r.Fatalf(format, args...) }

func (r *record) Cleanup(f func()) { r.cleanups = append(r.cleanups, f) }

func (*record) Helper() {}

func (r *record) Fatalf(format string, args ...any) { r.failure = fmt.Sprintf(format, args...) }

func TestUntil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var r record
		Until(&r, func() bool { return time.Since(begin) >= Limit-time.Second }, "never")
		require.Empty(t, r.failure, "a wait shorter than Limit")

		Until(&r, func() bool { return false }, "value %d", 7)
		require.Contains(t, r.failure, "waited 5m0s for value 7\n")
		require.Contains(t, r.failure, "await.TestUntil", "the stacks are there")
	})
}

func TestContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r record
		ctx := Context(&r)
		time.Sleep(Limit - time.Second)
		require.NoError(t, ctx.Err())
		r.cleanups[0]()
		require.ErrorIs(t, ctx.Err(), context.Canceled)
		require.Empty(t, r.failure)

		ctx = Context(&r)
		<-ctx.Done()
		r.cleanups[1]()
		require.Contains(t, r.failure, "still running after 5m0s\n")
		require.Contains(t, r.failure, "await.TestContext")
	})
}
