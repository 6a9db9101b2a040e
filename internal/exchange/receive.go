package exchange

import (
	"errors"
	"fmt"
	"time"

	"github.com/p2pdc/p2pdc/p2psap"
)

// Touch records that a session of a neighbour has changed: it may have messages, or it was closed.
func (x *Exchange) Touch(n *Neighbour, halo bool) {
	if halo {
		n.haloNews = true
	} else {
		n.agreeNews = true
	}
	x.news = true
}

// TouchAll records that any session may have changed.
func (x *Exchange) TouchAll() {
	for _, n := range x.neighbours {
		n.haloNews, n.agreeNews = n.HasHalo(), n.Agreement > 0
	}
	x.news = true
}

// Close gives back the memory of the faces received. The peer must not relax any more.
func (x *Exchange) Close() {
	for _, n := range x.neighbours {
		for t := range n.views {
			n.views[t].Release()
		}
	}
}

// Poll passes arrived messages to the peer and reports whether there were any.
func (x *Exchange) Poll(now time.Duration) (news bool, err error) {
	news, err = x.poll(now, false)
	x.waiting = x.waiting && !news
	return news, err
}

func (x *Exchange) poll(now time.Duration, waits bool) (news bool, err error) {
	if x.config.Pump != nil {
		if err := x.config.Pump(); err != nil {
			return false, fmt.Errorf("exchange: %w", err)
		}
	}
	if !x.news {
		return false, nil
	}
	x.news = false
	for _, n := range x.neighbours {
		faces, err := x.pollFaces(now, n, waits)
		if news = news || faces; err != nil {
			return news, err
		}
		agreed, err := x.pollAgreements(now, n, waits)
		if news = news || agreed; err != nil {
			return news, err
		}
		x.news = x.news || n.haloNews
	}
	return news, nil
}

// pollFaces receives at most one message of each tag.
func (x *Exchange) pollFaces(now time.Duration, n *Neighbour, waits bool) (news bool, err error) {
	if !n.haloNews {
		return false, nil
	}
	for t := range n.views {
		if n.haloRead[t] {
			continue
		}
		v := &n.views[t]
		a, err := n.Halo.View(p2psap.Tag(t), v, waits)
		if err != nil {
			if err = x.close(n, &n.haloRead[t], err); err != nil {
				return news, err
			}
			continue
		}
		if !a.Fresh || !a.Complete {
			continue
		}
		news = true
		n.newestLabel = max(n.newestLabel, a.Label)
		err = x.peer.Halo(now, n.Rank, uint32(t), a.Label, v.Pieces...)
		if err != nil { // the peer may still read the value before, which the view then keeps
			if err = x.refuse(n, err); err != nil {
				return news, err
			}
			continue
		}
		v.ReleaseLast()
	}
	n.haloNews = news // another message of a tag may follow
	return news, nil
}

func (x *Exchange) pollAgreements(now time.Duration, n *Neighbour, waits bool) (news bool, err error) {
	if !n.agreeNews {
		return false, nil
	}
	n.agreeNews = false
	for !n.agreeRead {
		a, err := n.Agree.Receive(&n.message, waits)
		if err != nil {
			return news, x.close(n, &n.agreeRead, err)
		}
		if !a.Fresh {
			break
		}
		news = true
		if err := x.peer.Agree(now, n.Rank, n.message.Data[:a.Length]); err != nil {
			return news, x.refuse(n, err)
		}
	}
	return news, nil
}

// ErrRefused is wrapped by the reason why Config.Lost is called if the neighbour has sent what no peer of this run sends.
var ErrRefused = errors.New("its message is refused")

// refuse handles a message that no peer of this run sends: its sender counts as lost if the peer survives that.
func (x *Exchange) refuse(n *Neighbour, why error) error {
	if !x.config.Survive {
		return n.Fail(why)
	}
	x.Lose(n.Rank, n.Fail(fmt.Errorf("%w: %w", ErrRefused, why)))
	return nil
}

// read reports whether the session delivers no more messages of a tag.
func (n *Neighbour) read(tag p2psap.Tag) bool { return int(tag) < len(n.haloRead) && n.haloRead[tag] }
