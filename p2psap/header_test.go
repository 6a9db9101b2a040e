package p2psap

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
)

// A session over shared memory takes the common path: the session's own header is no obstacle to it.
func TestSessionTakesTheCommonPath(t *testing.T) {
	c, err := TablePolicy{}.Compose(Conditions{
		Mode: microproto.ModeSynchronous, Locality: SameHost, Network: SharedMemory,
	})
	require.NoError(t, err)
	protocols, err := ctp.Catalog().Build(c.Protocols, microproto.Options{})
	require.NoError(t, err)
	config := microproto.Config{Name: "s", MTU: 1400}
	front := (&session{}).placeHeader(&config)
	composite, err := microproto.NewComposite(config, append(front, protocols...)...)
	require.NoError(t, err)
	require.True(t, composite.HasCommonPath())
}
