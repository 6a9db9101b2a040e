package meet

import (
	"bufio"
	"fmt"
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
