package launch

// Setters of a Status, for tests of its readers.
var (
	SetProgress = (*Status).setProgress
	SetSweeps   = (*Status).setSweeps
	SetSessions = (*Status).setSessions
	SetLost     = (*Status).setLost
)
