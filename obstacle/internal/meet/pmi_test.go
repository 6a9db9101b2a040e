package meet

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// manager answers as the process manager of MPICH does.
func manager(t *testing.T, answers ...string) net.Conn {
	here, there := net.Pipe()
	t.Cleanup(func() { here.Close(); there.Close() })
	go func() {
		in := bufio.NewReader(there)
		for _, a := range answers {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			fmt.Fprintln(there, a)
		}
		there.Close()
	}()
	return here
}

func TestPMIJob(t *testing.T) {
	got, err := pmiJob(manager(t, "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
		"cmd=my_kvsname kvsname=kvs_17_0_23_node", "cmd=finalize_ack"))
	require.NoError(t, err)
	assert.Equal(t, "kvs_17_0_23_node", got)
	for _, answers := range [][]string{
		{}, {"cmd=no"}, {"cmd=response_to_init", "cmd=my_kvsname"}, {strings.Repeat("x", 2*maxBytes)},
		{"cmd=response_to_init", "cmd=my_kvsname kvsname=k", "no"},
	} {
		_, err := pmiJob(manager(t, answers...))
		assert.ErrorContains(t, err, "process manager")
	}
	_, err = PMIJob(1 << 20)
	require.Error(t, err)
}

// answers is a process manager that sends some bytes, whatever it is asked.
type answers struct{ io.Reader }

func (answers) Write(b []byte) (int, error) { return len(b), nil }

// A process manager can answer anything: the conversation ends, with one word for the job or an error.
func FuzzPMI(f *testing.F) {
	const whole = "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0\ncmd=my_kvsname kvsname=kvs_17\ncmd=finalize_ack\n"
	f.Add([]byte(whole))
	f.Add([]byte(strings.Replace(whole, "kvs_17", "9223372036854775807 kvsname=-1 kvsname=NaN", 1)))
	f.Add([]byte("cmd=response_to_init\ncmd=my_kvsname kvsname=../../x\x1b[2J\ncmd=finalize_ack"))
	f.Add([]byte(strings.Repeat("cmd=response_to_init ", maxBytes/8)))
	f.Add([]byte("cmd\n=\n\x00\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		job, err := pmiJob(answers{bytes.NewReader(b)})
		if err != nil {
			require.Empty(t, job)
			return
		}
		require.Len(t, strings.Fields(job), 1)
		require.Less(t, len(job), maxBytes)
	})
}
