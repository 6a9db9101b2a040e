package traces

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/p2pdc/p2pdc/trace"
)

// schema is a part of Perfetto's: the messages by name, and their fields by number. "" marks scalars.
type schema map[string]map[protowire.Number]schemaField

type schemaField struct {
	name string
	kind protowire.Type
	of   string // message
}

// perfettoSchema has the numbers of protos/perfetto/trace in the repository of Perfetto.
var perfettoSchema = schema{
	"Trace": {1: {"packet", protowire.BytesType, "TracePacket"}},
	"TracePacket": {
		8:  {"timestamp", protowire.VarintType, ""},
		10: {"trusted_packet_sequence_id", protowire.VarintType, ""},
		11: {"track_event", protowire.BytesType, "TrackEvent"},
		13: {"sequence_flags", protowire.VarintType, ""},
		60: {"track_descriptor", protowire.BytesType, "TrackDescriptor"},
	},
	"TrackDescriptor": {
		1:  {"uuid", protowire.VarintType, ""},
		2:  {"name", protowire.BytesType, ""},
		3:  {"process", protowire.BytesType, "ProcessDescriptor"},
		5:  {"parent_uuid", protowire.VarintType, ""},
		8:  {"counter", protowire.BytesType, "CounterDescriptor"},
		11: {"child_ordering", protowire.VarintType, ""},
		12: {"sibling_order_rank", protowire.VarintType, ""},
	},
	"ProcessDescriptor": {
		1: {"pid", protowire.VarintType, ""},
		6: {"process_name", protowire.BytesType, ""},
	},
	"CounterDescriptor": {
		3: {"unit", protowire.VarintType, ""},
		6: {"unit_name", protowire.BytesType, ""},
	},
	"TrackEvent": {
		4:  {"debug_annotations", protowire.BytesType, "DebugAnnotation"},
		9:  {"type", protowire.VarintType, ""},
		11: {"track_uuid", protowire.VarintType, ""},
		23: {"name", protowire.BytesType, ""},
		30: {"counter_value", protowire.VarintType, ""},
		47: {"flow_ids", protowire.Fixed64Type, ""},
		48: {"terminating_flow_ids", protowire.Fixed64Type, ""},
	},
	"DebugAnnotation": {
		3:  {"uint_value", protowire.VarintType, ""},
		10: {"name", protowire.BytesType, ""},
	},
}

// decoded is a message: its fields by name. Values are uint64, string or decoded.
type decoded map[string][]any

func (s schema) decode(t *testing.T, of string, b []byte) decoded {
	out := decoded{}
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		require.Positive(t, n)
		b = b[n:]
		f, known := s[of][number]
		require.True(t, known && f.kind == kind, "field %d of %s, type %d", number, of, kind)
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(b)
			require.Positive(t, n)
			out[f.name], b = append(out[f.name], v), b[n:]
		case protowire.Fixed64Type:
			v, n := protowire.ConsumeFixed64(b)
			require.Positive(t, n)
			out[f.name], b = append(out[f.name], v), b[n:]
		default:
			v, n := protowire.ConsumeBytes(b)
			require.Positive(t, n)
			b = b[n:]
			if f.of == "" {
				out[f.name] = append(out[f.name], string(v))
			} else {
				out[f.name] = append(out[f.name], s.decode(t, f.of, v))
			}
		}
	}
	return out
}

func (d decoded) number(name string) uint64 {
	if len(d[name]) == 0 {
		return 0
	}
	return d[name][0].(uint64)
}

func (d decoded) text(name string) string {
	if len(d[name]) == 0 {
		return ""
	}
	return d[name][0].(string)
}

func TestPerfettoFollowsItsSchema(t *testing.T) {
	a, b := pairOfNodes(12_345, true)
	a.Records = append(a.Records, trace.Record{At: 31_000_000, Kind: trace.RelaxBegin, Number: 9, Bytes: 512},
		trace.Record{At: 32_000_000, Kind: trace.RelaxEnd, Number: 9, Bytes: 512})
	s := Of(a, b)
	var out bytes.Buffer
	require.NoError(t, s.Perfetto(&out))
	all := perfettoSchema.decode(t, "Trace", out.Bytes())

	tracks, sent, got := map[uint64]string{}, map[uint64]uint64{}, 0
	events, counters := map[string]int{}, map[string][]uint64{}
	for i, p := range all["packet"] {
		p := p.(decoded)
		require.EqualValues(t, 1, p.number("trusted_packet_sequence_id"))
		require.Equal(t, i == 0, p.number("sequence_flags") == 1)
		for _, d := range p["track_descriptor"] {
			d := d.(decoded)
			parent := d.number("parent_uuid")
			require.True(t, parent == 0 || tracks[parent] != "", "described before its children")
			name := tracks[parent] + "/" + d.text("name")
			for _, q := range d["process"] {
				name = q.(decoded).text("process_name")
			}
			require.Empty(t, tracks[d.number("uuid")])
			tracks[d.number("uuid")] = name
		}
		for _, e := range p["track_event"] {
			e := e.(decoded)
			track := tracks[e.number("track_uuid")]
			require.NotEmpty(t, track)
			if len(e["counter_value"]) > 0 {
				counters[track] = append(counters[track], e.number("counter_value"))
				continue
			}
			events[fmt.Sprintf("%s %d %s", track, e.number("type"), e.text("name"))]++
			if id := e.number("flow_ids"); id != 0 {
				sent[id] = p.number("timestamp")
			}
			if id := e.number("terminating_flow_ids"); id != 0 {
				require.Contains(t, sent, id)
				require.Greater(t, p.number("timestamp"), sent[id])
				got++
			}
		}
	}
	require.Equal(t, 40, got)
	require.Len(t, sent, 40)
	require.Equal(t, 20, events["a/s with b 3 send 3"])
	require.Equal(t, 20, events["b/s with a 3 receive 3"])
	require.Equal(t, 20, events["b/rail ether 3 out s"])
	require.Equal(t, 1, events["a/relaxations 1 sweep 9"])
	require.Equal(t, 1, events["a/relaxations 2 "])
	require.Equal(t, []uint64{1000}, counters["a/window, s"])
	require.Len(t, counters["a/in flight, s"], 40)
	require.Equal(t, []uint64{300_000, 100_000, 300_000, 100_000}, counters["b/age, s"])
}
