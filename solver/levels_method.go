package solver

import "fmt"

// wholeGrid is red-black SOR or multigrid.
type wholeGrid struct{ name string }

// Name returns "sor" or "multigrid".
func (m wholeGrid) Name() string { return m.name }

// Check refuses schemes that do not keep all peers at the same iterate, orders, and boxes that
// are too thin for multigrid.
func (m wholeGrid) Check(c *Config) error {
	if !inLockstep(c.Scheme) {
		return fmt.Errorf("solver: method %s needs all peers at the same iterate, which scheme %s does not keep; take %s with it as the local method, or a synchronous scheme",
			m.name, c.Scheme.Name(), Schwarz)
	}
	if err := c.checkOrder(); err != nil || m.name != Multigrid {
		return err
	}
	return checkGathered(c)
}

// Links returns the peers that rank r shares a face with, in the partition's order.
func (wholeGrid) Links(c *Config, r Rank) []Link { return levelLinks(c, r) }

// New makes a Levels.
func (wholeGrid) New(c Config) (Block, error) {
	g, err := NewLevels(c)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Describe says what the method works with; see Block.
func (g *Levels) Describe() string { return g.course.method.describe() }
