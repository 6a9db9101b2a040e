package launch

// What the launcher says of a run, for tests of those that show it.
var (
	SetProgress = (*Status).setProgress
	SetSweeps   = (*Status).setSweeps
	SetSessions = (*Status).setSessions
	SetLost     = (*Status).setLost
)
