package solver

import "fmt"

// additiveSchwarz is the restricted additive Schwarz method.
type additiveSchwarz struct{}

// Name returns "schwarz".
func (additiveSchwarz) Name() string { return Schwarz }

// Check refuses orders, and flexible exchange in schemes other than the asynchronous one.
func (additiveSchwarz) Check(c *Config) error {
	if err := c.checkOrder(); err != nil {
		return err
	}
	if c.Method.Flexible && c.Scheme.Name() != Asynchronous().Name() {
		return fmt.Errorf("solver: values of a solve that is going on may only be read in the asynchronous scheme; the scheme is %s (--flexible)", c.Scheme.Name())
	}
	return nil
}

// Links returns the peers whose regions meet that of rank r, and those of the coarse correction.
func (additiveSchwarz) Links(c *Config, r Rank) []Link { return schwarzLinks(c, r) }

// New makes a peer of the method.
func (additiveSchwarz) New(c Config) (Block, error) {
	w, err := newSchwarz(c)
	if err != nil {
		return nil, err
	}
	return w, nil
}
