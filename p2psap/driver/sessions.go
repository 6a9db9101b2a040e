package driver

import (
	"cmp"
	"slices"

	"github.com/p2pdc/p2pdc/p2psap"
)

// Sessions describes the sessions that are open, and those that have ended and are not
// closed at this end, by peer and name.
func (n *Node) Sessions() []p2psap.SessionInfo {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := []p2psap.SessionInfo{}
	for _, s := range n.sockets {
		s.remember()
		if s.last.State >= p2psap.SessionOpen && !s.gone {
			all = append(all, s.last)
		}
	}
	slices.SortFunc(all, func(a, b p2psap.SessionInfo) int {
		return cmp.Or(cmp.Compare(a.Peer, b.Peer), cmp.Compare(a.Name, b.Name))
	})
	return all
}
