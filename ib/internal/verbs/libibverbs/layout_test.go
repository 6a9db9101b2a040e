//go:build linux && (amd64 || arm64) && !nolibibverbs

package libibverbs

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/layout.golden from the headers of this machine")

// sharedStructs returns the structures that Go and C share, with the C names of fields whose Go
// names do not follow the rule of field.
func sharedStructs() []sharedStruct {
	return []sharedStruct{
		{"ibv_context", cContext{}, map[string]string{
			"ops.pollCQ": "ops.poll_cq", "ops.reqNotifyCQ": "ops.req_notify_cq", "ops.postSend": "ops.post_send",
			"ops.postRecv": "ops.post_recv", "asyncFD": "async_fd",
		}, false},
		{"ibv_device_attr", cDeviceAttr{}, map[string]string{
			"maxMRSize": "max_mr_size", "maxQP": "max_qp", "maxQPWR": "max_qp_wr", "maxSGE": "max_sge",
			"maxCQ": "max_cq", "maxCQE": "max_cqe", "maxMR": "max_mr",
		}, true},
		{"ibv_port_attr", cPortAttr{}, map[string]string{"activeMTU": "active_mtu"}, false},
		{"ibv_mr", cMR{}, nil, true},
		{"ibv_comp_channel", cCompChannel{}, nil, true},
		{"ibv_qp_cap", cQPCap{}, map[string]string{
			"maxSendWR": "max_send_wr", "maxRecvWR": "max_recv_wr", "maxSendSGE": "max_send_sge",
			"maxRecvSGE": "max_recv_sge",
		}, true},
		{"ibv_qp_init_attr", cQPInitAttr{}, map[string]string{"sendCQ": "send_cq", "recvCQ": "recv_cq"}, true},
		{"ibv_qp", cQP{}, nil, false},
		{"ibv_ah_attr", cAHAttr{}, map[string]string{
			"dgid": "grh.dgid", "sgidIndex": "grh.sgid_index", "hopLimit": "grh.hop_limit",
		}, true},
		{"ibv_qp_attr", cQPAttr{}, map[string]string{
			"pathMTU": "path_mtu", "rqPSN": "rq_psn", "sqPSN": "sq_psn", "destQPNum": "dest_qp_num",
			"accessFlags": "qp_access_flags", "ah": "ah_attr", "minRNRTimer": "min_rnr_timer", "rnrTry": "rnr_retry",
		}, true},
		{"ibv_sge", cSGE{}, nil, true},
		{"ibv_send_wr", cSendWR{}, map[string]string{
			"wrID": "wr_id", "numSGE": "num_sge", "remoteAddr": "wr.rdma.remote_addr", "rkey": "wr.rdma.rkey",
		}, true},
		{"ibv_recv_wr", cRecvWR{}, map[string]string{"wrID": "wr_id", "numSGE": "num_sge"}, true},
		{"ibv_wc", cWC{}, map[string]string{"wrID": "wr_id"}, true},
		{"ibv_async_event", cAsyncEvent{}, nil, true},
	}
}

type sharedStruct struct {
	c        string
	value    any
	names    map[string]string
	sameSize bool // otherwise Go declares a prefix, or has spare room
}

// fields returns "C name offset size" for each field of a Go structure.
func (s sharedStruct) fields() []string {
	var out []string
	var walk func(t reflect.Type, path string, base uintptr)
	walk = func(t reflect.Type, path string, base uintptr) {
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Name == "_" {
				continue
			}
			if name := path + f.Name; f.Type.Kind() == reflect.Struct && f.Type.Name() == "" {
				walk(f.Type, name+".", base+f.Offset)
			} else {
				out = append(out, fmt.Sprintf("%s.%s %d %d", s.c, s.field(name), base+f.Offset, f.Type.Size()))
			}
		}
	}
	t := reflect.TypeOf(s.value)
	walk(t, "", 0)
	if s.sameSize {
		out = append(out, fmt.Sprintf("%s %d", s.c, t.Size()))
	}
	return out
}

// field returns the C name of a Go field: src_path_bits for srcPathBits.
func (s sharedStruct) field(name string) string {
	if c, is := s.names[name]; is {
		return c
	}
	for _, whole := range []string{"ID", "FD", "SGE", "WR", "QP", "GUID"} {
		name = strings.ReplaceAll(name, whole, whole[:1]+strings.ToLower(whole[1:]))
	}
	var out strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			out.WriteByte('_')
			r += 'a' - 'A'
		}
		out.WriteRune(r)
	}
	return out.String()
}

// The golden file is the output of C for the headers of rdma-core 44.
func TestLayout(t *testing.T) {
	golden, err := os.ReadFile("testdata/layout.golden")
	require.NoError(t, err)
	require.Equal(t, string(golden), layoutOfGo())
}

func layoutOfGo() string {
	var out []string
	for _, s := range sharedStructs() {
		out = append(out, s.fields()...)
	}
	return strings.Join(out, "\n") + "\n"
}

// The headers of this system, if any, have the same layout.
func TestHeaders(t *testing.T) {
	compiler, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler")
	}
	if _, err := os.Stat("/usr/include/infiniband/verbs.h"); err != nil {
		t.Skip("no headers: install libibverbs-dev")
	}
	out := layoutOfC(t, compiler)
	if *update {
		require.NoError(t, os.WriteFile("testdata/layout.golden", []byte(out), 0o644))
	}
	require.Equal(t, out, layoutOfGo())
}

func layoutOfC(t *testing.T, compiler string) string {
	t.Helper()
	var program strings.Builder
	program.WriteString("#include <stdio.h>\n#include <stddef.h>\n#include <infiniband/verbs.h>\nint main(void) {\n")
	for line := range strings.Lines(layoutOfGo()) {
		name, _, _ := strings.Cut(line, " ")
		structure, field, is := strings.Cut(name, ".")
		if !is {
			fmt.Fprintf(&program, "printf(\"%s %%zu\\n\", sizeof(struct %s));\n", structure, structure)
			continue
		}
		fmt.Fprintf(&program, "printf(\"%s %%zu %%zu\\n\", offsetof(struct %s, %s), sizeof(((struct %s *)0)->%s));\n",
			name, structure, field, structure, field)
	}
	program.WriteString("return 0; }\n")
	dir := t.TempDir()
	source, binary := filepath.Join(dir, "layout.c"), filepath.Join(dir, "layout")
	require.NoError(t, os.WriteFile(source, []byte(program.String()), 0o644))
	text, err := exec.Command(compiler, "-o", binary, source).CombinedOutput()
	require.NoError(t, err, "%s", text)
	out, err := exec.Command(binary).Output()
	require.NoError(t, err)
	return string(out)
}
