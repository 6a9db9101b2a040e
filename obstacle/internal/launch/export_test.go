package launch

// Writers of a Status, for tests of its readers.
var (
	Update = (*Status).update
	Lose   = (*State).lose
)
