package solver

// richardson is the projected Richardson method.
type richardson struct{}

// Name returns "richardson".
func (richardson) Name() string { return Richardson }

// Check accepts every configuration that has passed Config.Check.
func (richardson) Check(*Config) error { return nil }

// Links returns the peers that rank r shares a face with, in the partition's order.
func (richardson) Links(c *Config, r Rank) []Link {
	var out []Link
	for _, n := range c.Partition.Neighbours(r) {
		s := Between(c.Scheme, r, n.Rank)
		l := Link{Rank: n.Rank, Agreement: AgreementBytes(n.FaceBytes), Asynchronous: s.Asynchronous()}
		for range s.Slots() {
			l.Slots = append(l.Slots, n.FaceBytes)
			l.Sent = append(l.Sent, n.FaceBytes)
		}
		out = append(out, l)
	}
	return out
}

// New makes a Worker.
func (richardson) New(c Config) (Block, error) {
	w, err := NewWorker(c)
	if err != nil {
		return nil, err
	}
	return w, nil
}

// Describe returns "": there is nothing to say.
func (w *Worker) Describe() string { return "" }
