package verbs_test

import (
	"errors"
	"net"
	"testing"
	"time"

	"github.com/p2pdc/p2pdc/ib/internal/verbs"
	"github.com/stretchr/testify/require"
)

func testDevice(t *testing.T, r rig) {
	names, err := r.Provider.Devices()
	require.NoError(t, err)
	require.Contains(t, names, r.Devices[0])
	require.Contains(t, names, r.Devices[1])
	_, err = r.Provider.Open("no such device")
	require.ErrorIs(t, err, verbs.ErrNoDevice)
	require.ErrorContains(t, err, "no such device")

	d, err := r.Provider.Open(r.Devices[0])
	require.NoError(t, err)
	require.Equal(t, r.Devices[0], d.Name())
	l, err := d.Limits()
	require.NoError(t, err)
	require.Positive(t, l.Pairs)
	require.Positive(t, l.PairRequests)
	require.Positive(t, l.Elements)
	require.Positive(t, l.QueueDepth)
	require.Positive(t, l.Regions)
	require.Positive(t, l.RegionBytes)
	require.GreaterOrEqual(t, l.Ports, r.Port)
	p, err := d.Port(r.Port)
	require.NoError(t, err)
	require.Equal(t, verbs.PortActive, p.State)
	require.Contains(t, []int{256, 512, 1024, 2048, 4096}, p.MTU)
	require.Greater(t, p.GIDs, r.GIDIndex)
	require.Contains(t, []verbs.LinkLayer{verbs.LayerInfiniBand, verbs.LayerEthernet}, p.Layer)
	require.Equal(t, p.Layer == verbs.LayerInfiniBand, p.LID != 0)
	_, err = d.Port(l.Ports + 1)
	require.Error(t, err)
	g, err := d.GID(r.Port, r.GIDIndex)
	require.NoError(t, err)
	require.True(t, g.Addr.Is6())
	require.NotEqual(t, verbs.GIDUnknown, g.Kind)
	_, err = d.GID(r.Port, 1<<20)
	require.Error(t, err)

	// Closing the device ends the wait for its events.
	got := make(chan error, 1)
	go func() {
		for {
			if _, err := d.NextEvent(); err != nil {
				got <- err
				return
			}
		}
	}()
	require.NoError(t, d.Close())
	require.ErrorIs(t, <-got, net.ErrClosed)
}

// testBusy checks that no object can be closed before those made from it.
func testBusy(t *testing.T, r rig) {
	d, err := r.Provider.Open(r.Devices[0])
	require.NoError(t, err)
	domain, err := d.AllocDomain()
	require.NoError(t, err)
	require.ErrorIs(t, d.Close(), verbs.ErrBusy)
	channel, err := d.CreateChannel()
	require.NoError(t, err)
	queue, err := d.CreateQueue(8, channel)
	require.NoError(t, err)
	require.ErrorIs(t, channel.Close(), verbs.ErrBusy)
	b, err := verbs.Allocate(4096)
	require.NoError(t, err)
	region, err := domain.Register(b, verbs.LocalWrite)
	require.NoError(t, err)
	require.ErrorIs(t, domain.Close(), verbs.ErrBusy)
	require.NoError(t, region.Close())
	require.NoError(t, verbs.Free(b))
	pair, err := domain.CreatePair(verbs.PairConfig{
		Transport: verbs.RC, Send: queue, Receive: queue,
		SendRequests: 1, ReceiveRequests: 1, SendElements: 1, ReceiveElements: 1,
	})
	require.NoError(t, err)
	require.ErrorIs(t, domain.Close(), verbs.ErrBusy)
	require.ErrorIs(t, queue.Close(), verbs.ErrBusy)
	require.NoError(t, pair.Close())
	require.NoError(t, queue.Close())
	require.NoError(t, channel.Close())
	require.NoError(t, domain.Close())
	require.NoError(t, d.Close())
}

func testRegions(t *testing.T, r rig) {
	d, err := r.Provider.Open(r.Devices[0])
	require.NoError(t, err)
	domain, err := d.AllocDomain()
	require.NoError(t, err)
	b, err := verbs.Allocate(3 * 4096)
	require.NoError(t, err)
	x, err := domain.Register(b, allAccess)
	require.NoError(t, err)
	y, err := domain.Register(b[4096:], verbs.LocalWrite) // regions may overlap
	require.NoError(t, err)
	require.Equal(t, x.Addr()+4096, y.Addr())
	require.NotEqual(t, x.LocalKey(), y.LocalKey())
	require.NotEqual(t, x.RemoteKey(), y.RemoteKey())
	_, err = domain.Register(b, verbs.RemoteWrite)
	require.Error(t, err, "remote writes without local writes")
	require.NoError(t, x.Close())
	require.NoError(t, y.Close())
	require.NoError(t, verbs.Free(b))
	require.NoError(t, domain.Close())
	require.NoError(t, d.Close())
}

func testLimits(t *testing.T, r rig) {
	e := open(t, r, options{config: verbs.PairConfig{Transport: verbs.RC}}, 0)
	l, err := e.device.Limits()
	require.NoError(t, err)
	good := verbs.PairConfig{
		Transport: verbs.UC, Send: e.sends, Receive: e.recvs,
		SendRequests: 4, ReceiveRequests: 4, SendElements: 1, ReceiveElements: 1,
	}
	for name, spoil := range map[string]func(*verbs.PairConfig){
		"send requests":    func(c *verbs.PairConfig) { c.SendRequests = l.PairRequests + 1 },
		"receive requests": func(c *verbs.PairConfig) { c.ReceiveRequests = l.PairRequests + 1 },
		"send elements":    func(c *verbs.PairConfig) { c.SendElements = l.Elements + 1 },
		"receive elements": func(c *verbs.PairConfig) { c.ReceiveElements = l.Elements + 1 },
	} {
		c := good
		spoil(&c)
		_, err := e.domain.CreatePair(c)
		require.ErrorIs(t, err, verbs.ErrLimit, name)
	}
	_, err = e.device.CreateQueue(l.QueueDepth+1, nil)
	require.ErrorIs(t, err, verbs.ErrLimit)
}

func testChannel(t *testing.T, r rig) {
	a, b := openBoth(t, r, reliable(verbs.RC))
	wait := func(timeout time.Duration, want bool) { // no time-out if negative
		t.Helper()
		if timeout >= 0 {
			defer time.AfterFunc(timeout, b.channel.Wake).Stop()
		}
		got, err := b.channel.Wait()
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for i := range 4 {
		b.postReceive(b.receive(uint64(i), i*64, 64))
	}
	a.post(a.send(0, 0, 8))
	a.requireSuccess(a.poll(a.sends, 1)[0], 0, verbs.Sent)
	wait(0, false) // not armed
	// A completion from before the arming raises no event. One more poll finds it.
	require.NoError(t, b.recvs.Arm())
	b.requireSuccess(b.poll(b.recvs, 1)[0], 0, verbs.Received)
	wait(time.Millisecond, false)
	a.post(a.send(1, 0, 8))
	wait(-1, true)
	wait(0, false) // one event for one arming
	b.requireSuccess(b.poll(b.recvs, 1)[0], 1, verbs.Received)
	a.post(a.send(2, 0, 8))
	b.requireSuccess(b.poll(b.recvs, 1)[0], 2, verbs.Received)
	wait(time.Millisecond, false) // not armed again
	a.poll(a.sends, 2)
	// Wake ends the present or the next wait, and takes no event.
	b.channel.Wake()
	wait(-1, false) // would block for ever without the wake
	done := make(chan error, 1)
	go func() {
		got, err := b.channel.Wait()
		if got {
			err = errors.New("an event, but nothing was armed")
		}
		done <- err
	}()
	b.channel.Wake()
	require.NoError(t, <-done)
	// A blocked wait returns when a completion comes.
	require.NoError(t, b.recvs.Arm())
	go func() {
		got, err := b.channel.Wait()
		if !got && err == nil {
			err = errors.New("no event")
		}
		done <- err
	}()
	a.post(a.send(3, 0, 8))
	require.NoError(t, <-done)
	b.requireSuccess(b.poll(b.recvs, 1)[0], 3, verbs.Received)
	a.requireSuccess(a.poll(a.sends, 1)[0], 3, verbs.Sent)
}
