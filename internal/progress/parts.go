package progress

import (
	"fmt"
	"sync"
	"time"

	"github.com/vbauerster/mpb/v8"
)

// Parts is the state of parts that run one after the other, of some rounds each. Its methods may be called from several
// goroutines. Times are since the first part began.
type Parts struct {
	// Expected is the time that each part takes, 0 where it is unknown. A part of unknown length is expected to take
	// as long as those before it did on average.
	Expected []time.Duration

	mu        sync.Mutex
	part      int // in progress, from 0
	name      string
	began     time.Duration // when that part began
	round, of int           // of the comparison in progress; of is 0 if there is none
}

// Begin states that a part begins, whose number counts from 0.
func (p *Parts) Begin(now time.Duration, part int, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.part, p.name, p.began, p.round, p.of = part, name, now, 0, 0
}

// Round states that a round begins, which counts from 1.
func (p *Parts) Round(round, of int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.round, p.of = round, of
}

// left returns the estimated time left, negative while it is unknown. The lock is held.
func (p *Parts) left(now time.Duration) time.Duration {
	total := time.Duration(0)
	for i := p.part; i < len(p.Expected); i++ {
		takes := p.Expected[i]
		if takes == 0 {
			if p.part == 0 {
				return -1
			}
			takes = p.began / time.Duration(p.part)
		}
		if i == p.part {
			takes = max(takes-(now-p.began), 0)
		}
		total += takes
	}
	return total
}

// done returns the completed fraction of the time, 0 to 1, or of the parts while the time left is unknown.
func (p *Parts) done(now time.Duration) float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := p.left(now); left >= 0 && now > 0 {
		return now.Seconds() / (now + left).Seconds()
	}
	return float64(p.part) / float64(max(len(p.Expected), 1))
}

// text returns the text to the right of the bar.
func (p *Parts) text(now time.Duration) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	round := ""
	if p.of > 0 {
		round = fmt.Sprintf("  round %d of %d", p.round, p.of)
	}
	return fmt.Sprintf(" part %d of %d: %s%s  %s, left %s", p.part+1, len(p.Expected), p.name, round, duration(now),
		duration(p.left(now)))
}

// PartsBar shows parts that run one after the other.
type PartsBar struct {
	Parts
	bar   *mpb.Bar
	start time.Time
}

// Parts shows parts of which the first one begins now. expected is as in Parts.
func (b *Bars) Parts(expected []time.Duration) *PartsBar {
	r := &PartsBar{Parts: Parts{Expected: expected}, start: time.Now()}
	r.bar = b.draw("", func() string { return r.text(time.Since(r.start)) })
	return r
}

// Begin shows that a part begins, whose number counts from 0.
func (b *PartsBar) Begin(part int, name string) {
	b.Parts.Begin(time.Since(b.start), part, name)
	b.fill()
}

// Round shows that a round begins, which counts from 1.
func (b *PartsBar) Round(round, of int) {
	b.Parts.Round(round, of)
	b.fill()
}

func (b *PartsBar) fill() { b.bar.SetCurrent(int64(scale * min(b.done(time.Since(b.start)), 0.999))) }

// Remove removes the bar.
func (b *PartsBar) Remove() { b.bar.Abort(true) }
