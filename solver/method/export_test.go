package method

// Rejections returns the number of cycles that the safeguard rejected.
func (m *Multigrid) Rejections() int { return m.safeguard.Rejections() }
