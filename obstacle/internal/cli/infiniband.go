package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/p2pdc/p2pdc/ib"
	"github.com/p2pdc/p2pdc/obstacle/internal/rail"
	"github.com/p2pdc/p2pdc/obstacle/internal/rendezvous"
)

// infiniband describes the verbs link in the JSON of doctor.
type infiniband struct {
	Kernel    bool         `json:"kernel"`
	Library   string       `json:"library"` // why libibverbs cannot be used; "" if it can
	Lock      ib.LockLimit `json:"memory_lock"`
	Registers int64        `json:"registers_bytes"` // by a peer with default settings
	Choice    *ib.Choice   `json:"choice"`          // null if InfiniBand cannot be used
	Missing   []ib.Missing `json:"missing"`         // what is missing in that case
}

func infiniBandHere() ([]ib.Port, infiniband) {
	there := ib.Look()
	v := infiniband{Kernel: there.Kernel, Library: there.Library, Lock: there.Lock, Missing: []ib.Missing{}}
	h := rail.Host{}
	v.Registers, _ = rail.Registers(h.Config("doctor", rendezvous.Rails{})) // the default settings are valid
	choice, err := there.Choose(ib.Want{Bytes: v.Registers})
	if err != nil {
		if m, is := errors.AsType[*ib.MissingError](err); is {
			v.Missing = m.Missing
		}
		return there.Ports, v
	}
	v.Choice = &choice
	return there.Ports, v
}

func (v *infiniband) without() string {
	var what []string
	for _, m := range v.Missing {
		what = append(what, m.What)
	}
	return strings.Join(what, "; ")
}

func (v *infiniband) text(w io.Writer, ports []ib.Port) {
	kernel, library := "has RDMA", "available"
	if !v.Kernel {
		kernel = "has no RDMA"
	}
	if v.Library != "" {
		library = v.Library
	}
	fmt.Fprintf(w, "RDMA\tthe kernel %s; libibverbs: %s\n", kernel, library)
	if len(ports) == 0 {
		fmt.Fprintf(w, "\tno device\n")
	}
	for _, p := range ports {
		fmt.Fprintf(w, "\t%s port %d: %s, %s, %s%s\n", p.Device, p.Number, p.State, p.Layer, p.Rate,
			listed(", with ", p.Netdevs...))
		for _, g := range p.Identifiers {
			fmt.Fprintf(w, "\t  GID %d: %s, %s%s\n", g.Index, g.Address, g.Kind, listed(", of ", g.Netdev))
		}
		if why := p.Usable(); why != "" {
			fmt.Fprintf(w, "\t  not used: %s\n", why)
		}
	}
	verdict := "within the limit"
	switch {
	case v.Lock.Bytes < 0:
		verdict = "there is no limit"
	case v.Lock.Exempt:
		verdict = "the limit does not apply to this process (CAP_IPC_LOCK)"
	case !v.Lock.Allows(v.Registers):
		verdict = "above the limit of " + bytesText(v.Lock.Bytes)
	}
	fmt.Fprintf(w, "\ta peer registers %s: %s\n", bytesText(v.Registers), verdict)
	for _, m := range v.Missing {
		fmt.Fprintf(w, "\tmissing: %s: %s\n", m.What, m.Remedy)
	}
}

// listed returns the names after a word, or "" without names.
func listed(word string, names ...string) string {
	all := strings.Join(names, ", ")
	if all == "" {
		return ""
	}
	return word + all
}
