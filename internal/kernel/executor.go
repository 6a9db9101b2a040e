package kernel

// Executor runs f(0) … f(n−1), possibly on several threads, and returns when all
// have returned. Results do not depend on it.
type Executor interface{ For(n int, f func(i int)) }

// Sequential is the Executor on the caller's goroutine.
type Sequential struct{}

// For calls f in ascending order.
func (Sequential) For(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}
