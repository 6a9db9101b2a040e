package software

import (
	"runtime"
	"testing"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

func open(t *testing.T, c Config) (*Fabric, *domain) {
	t.Helper()
	f := NewFabric(c)
	_, err := f.Add("x")
	require.NoError(t, err)
	d, err := f.Open("x")
	require.NoError(t, err)
	p, err := d.AllocDomain()
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, p.Close())
		require.NoError(t, d.Close())
		require.Zero(t, f.Live())
	})
	return f, p.(*domain)
}

// A region is not closed while bytes are copied to it. After the call no copy begins.
func TestCloseWaits(t *testing.T) {
	_, d := open(t, Config{})
	r, err := d.Register(make([]byte, 100), verbs.LocalWrite)
	require.NoError(t, err)
	b, claimed := d.acquire(r.LocalKey(), r.Addr()+10, 50, verbs.LocalWrite)
	require.NotNil(t, claimed)
	require.Len(t, b, 50)
	done := make(chan error, 1)
	go func() { done <- r.Close() }()
	for {
		_, more := d.acquire(r.LocalKey(), r.Addr(), 1, 0)
		if more == nil {
			break
		}
		more.release()
		runtime.Gosched()
	}
	for range 1000 {
		runtime.Gosched()
		select {
		case <-done:
			t.Fatal("closed under a copy")
		default:
		}
	}
	claimed.release()
	require.NoError(t, <-done)
	require.NoError(t, r.Close())
}

// A table reuses its entries but not their numbers, and reports that it is full.
func TestNumbers(t *testing.T) {
	_, d := open(t, Config{Limits: verbs.Limits{Regions: 3}})
	b := make([]byte, 8)
	seen := map[uint32]bool{}
	for range 500 {
		r, err := d.Register(b, 0)
		require.NoError(t, err)
		require.False(t, seen[r.LocalKey()], "key %#x again", r.LocalKey())
		require.NotZero(t, r.LocalKey())
		seen[r.LocalKey()] = true
		require.NoError(t, r.Close())
		_, claimed := d.acquire(r.LocalKey(), r.Addr(), 1, 0)
		require.Nil(t, claimed)
	}
	var open []verbs.Region
	for range 3 {
		r, err := d.Register(b, 0)
		require.NoError(t, err)
		open = append(open, r)
	}
	_, err := d.Register(b, 0)
	require.ErrorIs(t, err, verbs.ErrLimit)
	for _, r := range open {
		require.NoError(t, r.Close())
	}
}

// acquire checks bounds, also those that wrap around, rights and domains.
func TestClaim(t *testing.T) {
	_, d := open(t, Config{})
	r, err := d.Register(make([]byte, 100), verbs.LocalWrite)
	require.NoError(t, err)
	a := r.Addr()
	for _, c := range []struct {
		at   uint64
		n    int
		need verbs.Access
		ok   bool
	}{
		{a, 100, 0, true},
		{a + 100, 0, 0, true},
		{a + 99, 1, verbs.LocalWrite, true},
		{a + 99, 2, 0, false},
		{a + 101, 0, 0, false},
		{a - 1, 1, 0, false},
		{^uint64(0), 2, 0, false},
		{a, 1 << 30, 0, false},
		{a, 1, verbs.RemoteWrite, false},
		{a, 1, verbs.LocalWrite | verbs.RemoteRead, false},
	} {
		_, claimed := d.acquire(r.LocalKey(), c.at, c.n, c.need)
		require.Equal(t, c.ok, claimed != nil, "%+v", c)
		if claimed != nil {
			claimed.release()
		}
	}
	other, err := d.device.AllocDomain()
	require.NoError(t, err)
	_, claimed := other.(*domain).acquire(r.LocalKey(), a, 1, 0)
	require.Nil(t, claimed, "a region of another domain")
	require.NoError(t, other.Close())
	require.NoError(t, r.Close())
}
