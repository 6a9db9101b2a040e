package rail

// Class is the importance of a frame among those that wait for a link, most important first.
type Class uint8

// The classes.
const (
	Control   Class = iota // without payload: acknowledgements, grants, probes
	Agreement              // few and small, and every peer waits for them
	Face                   // values of an iteration, and small messages
	Bulk
	numClasses
	noClass = numClasses
)

// yieldAfter bounds how long a class waits for those above it: each of them lets a waiting frame of a
// lower class pass after yieldAfter times the frame's length. So the classes below a busy one get at
// least 1/(1+yieldAfter) of what the link carries.
const yieldAfter = 8

// classBytes holds a number of bytes of each class.
type classBytes [numClasses]int

// pick returns the class whose turn it is. heads are the lengths of the frames that are next in their
// classes; 0: none waits. sent are the bytes that each class has sent while lower ones waited; see
// count. Without a waiting frame it returns noClass.
func pick(heads, sent *classBytes) Class {
	turn := noClass
	for c := Bulk; c < numClasses; c-- { // it wraps below Control
		if heads[c] > 0 && (turn == noClass || sent[c] < yieldAfter*heads[turn]) {
			turn = c
		}
	}
	return turn
}

// count adds n bytes that a class has sent, after which heads wait.
func (sent *classBytes) count(class Class, n int, heads *classBytes) {
	below := 0
	for c := class + 1; c < numClasses; c++ {
		below += heads[c]
	}
	if sent[class] += n; below == 0 {
		sent[class] = 0
	}
	for c := range class {
		sent[c] = max(0, sent[c]-yieldAfter*n)
	}
}
