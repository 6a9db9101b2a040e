package traces

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/p2pdc/p2pdc/microproto"
	"github.com/p2pdc/p2pdc/microproto/ctp"
	"github.com/p2pdc/p2pdc/p2psap"
	"github.com/p2pdc/p2pdc/trace"
)

const dissectorFile = "../../../docs/p2psap.lua"

// tshark returns the given fields of the packets of a file, by packet.
func tshark(t *testing.T, s *Set, fields ...string) (out [][]string) {
	program, err := exec.LookPath("tshark")
	if err != nil {
		t.Skip("NOT TESTED: docs/p2psap.lua and the pcapng export, because tshark is not installed (apt-get install tshark)")
	}
	script, err := filepath.Abs(dissectorFile)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "t.pcapng")
	var b bytes.Buffer
	require.NoError(t, s.Pcapng(&b))
	require.NoError(t, os.WriteFile(file, b.Bytes(), 0o600))
	args := []string{"-X", "lua_script:" + script, "-r", file, "-T", "fields", "-E", "separator=;", "-E", "occurrence=a"}
	for _, f := range fields {
		args = append(args, "-e", f)
	}
	c := exec.Command(program, args...)
	c.Env = append(os.Environ(), "HOME="+t.TempDir(), "LC_ALL=C.UTF-8")
	var errs bytes.Buffer
	c.Stderr = &errs
	text, err := c.Output()
	require.NoError(t, err, errs.String())
	require.NotContains(t, errs.String(), "Lua")
	for line := range strings.Lines(string(text)) {
		out = append(out, strings.Split(strings.TrimSuffix(line, "\n"), ";"))
	}
	return out
}

// tshark shows of every frame what its record says. The two nodes have headers of different layouts.
func TestTsharkDissectsTheFrames(t *testing.T) {
	if testing.Short() {
		t.Skip("tshark takes a second to start")
	}
	a, b := pairOfNodes(12_345, true)
	b.Layouts[0].Fields = []trace.Field{
		{Protocol: "SequencedSegment", Name: "sequenced.number", Offset: 0, Length: 4},
		{Protocol: "Own", Name: "own.field", Offset: 4, Length: 2}, {Protocol: "Own", Name: "", Offset: 6, Length: 2},
	}
	for i := range b.Frames {
		if f := b.Frames[i]; len(f) > 0 {
			b.Frames[i] = append([]byte{f[4], f[5], f[6], f[7], 1, 2, 3, 4}, f[8:]...)
		}
	}
	a.Began, b.Began = 1_800_000_000_000_000_000, 1_800_000_000_000_000_000
	s := Of(a, b)
	got := tshark(t, s, "p2psap.pdu", "frame.time_epoch", "frame.interface_name", "p2psap.direction", "p2psap.node",
		"p2psap.peer", "p2psap.session", "p2psap.segments", "p2psap.bytes", "p2psap.sequenced.number",
		"p2psap.session.session", "p2psap.field", "p2psap.payload", "frame.len")
	require.Contains(t, got[0][11], "sequenced.number of SequencedSegment: 4 bytes at 4")
	require.Contains(t, got[1][11], "own.field of Own: 2 bytes at 4")
	got = got[2:]
	k := 0
	for _, at := range s.ordered() {
		n := s.Nodes[at.node]
		r := n.Records[at.record]
		if r.Kind != trace.SegmentOut && r.Kind != trace.SegmentIn {
			continue
		}
		direction, id, own := "0", "", ""
		if r.Kind == trace.SegmentIn {
			direction = "1"
		}
		if n == a {
			id = map[trace.Kind]string{trace.SegmentOut: "9", trace.SegmentIn: "7"}[r.Kind]
		} else {
			own = "own.field=258,Own=772"
		}
		peer := map[string]string{"a": "b", "b": "a"}[n.Name]
		base := a.Began - s.Offsets[0]
		want := []string{
			"1", fmt.Sprintf("%d.%09d", (base+at.at)/1e9, (base+at.at)%1e9), n.Name, direction, n.Name, peer, "s", "1",
			"816", fmt.Sprint(r.Number), id, own, "7061796c6f6164", fmt.Sprint(16 + 10 + 816),
		}
		require.Equal(t, want, got[k])
		k++
	}
	require.Equal(t, 80, k)
	require.Len(t, got, k)
}

// Filters know every field of the compositions of Table I and of the optional rows.
func TestTheDissectorNamesTheFields(t *testing.T) {
	script, err := os.ReadFile(dissectorFile)
	require.NoError(t, err)
	seen := 0
	for _, mode := range []microproto.Mode{microproto.ModeSynchronous, microproto.ModeAsynchronous} {
		for _, c := range []microproto.Column{{Mode: mode}, {Mode: mode, Intra: true}, {Mode: mode, InfiniBand: true}} {
			protocols, err := ctp.Catalog().Build(p2psap.TableProtocols(c), microproto.Options{})
			require.NoError(t, err)
			composite, err := microproto.NewComposite(microproto.Config{Name: "c", MTU: 1400}, protocols...)
			require.NoError(t, err)
			for _, f := range composite.Layout() {
				require.Contains(t, string(script), fmt.Sprintf("%q", f.Name))
				seen++
			}
		}
	}
	require.Greater(t, seen, 30)
}

func TestPcapngNeedsFrames(t *testing.T) {
	a, _ := pairOfNodes(0, false)
	a.Frames = nil
	require.ErrorIs(t, Of(a).Pcapng(&bytes.Buffer{}), ErrNoFrames)
}
