package microproto_test

import (
	"testing"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/stretchr/testify/require"
)

type (
	exec    = microproto.Exec
	binder  = microproto.Binder
	message = microproto.Message
)

// proto is a micro-protocol made of functions.
type proto struct {
	name   string
	attach func(b *binder) error
}

func (p *proto) Name() string { return p.name }

func (p *proto) Attach(b *binder) error {
	if p.attach == nil {
		return nil
	}
	return p.attach(b)
}

func of(name string, attach func(b *binder)) *proto {
	return &proto{name, func(b *binder) error { attach(b); return nil }}
}

func composite(tb testing.TB, c microproto.Config, mps ...microproto.MicroProtocol) *microproto.Composite {
	tb.Helper()
	if c.MTU == 0 {
		c.MTU = 1500
	}
	if c.Name == "" {
		c.Name = "test"
	}
	comp, err := microproto.NewComposite(c, mps...)
	require.NoError(tb, err)
	require.NoError(tb, comp.Open(0))
	return comp
}

func do(tb testing.TB, c *microproto.Composite, f func(x *exec)) {
	tb.Helper()
	require.NoError(tb, c.Do(0, f))
}
