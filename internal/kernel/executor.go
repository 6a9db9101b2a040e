package kernel

// Executor runs f(0) … f(n−1), possibly on several threads, and returns when all calls have
// returned. Results do not depend on the executor.
type Executor interface{ For(n int, f func(i int)) }

// Sequential is the Executor that runs on the caller's goroutine.
type Sequential struct{}

// For calls f in ascending order.
func (Sequential) For(n int, f func(i int)) {
	for i := range n {
		f(i)
	}
}
