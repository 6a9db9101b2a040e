package virtual
import ("os";"runtime";"runtime/pprof";"testing";"context";"fmt";"github.com/p2pdc/p2pdc/solver";"time")
func TestTmp(t *testing.T) {
	for _, peers := range []int{4,4,4,4} {
		for range 3 {
		p := membrane(4)
		n := [3]int{4,4,4}
		switch peers { case 2: n[2]=8; case 4: n[2],n[1]=8,8; case 8: n=[3]int{8,8,8}; case 16: n=[3]int{8,8,16}; case 64: n=[3]int{16,16,16}}
		p.N = n
		m := gigabit(peers)
		m.Networks[0].Rate = 1.25e9
		for i := range m.Hosts { m.Hosts[i].Send.Segment, m.Hosts[i].Receive.Segment = 1000,1000 }
		run := runOf(t, m, p, solver.Synchronous(), peers)
		run.Standing = 8
		run.Solver.Tolerance=0
		run.Solver.MaxSweeps= solver.Iteration(64000/peers)
		b := processorTime(); w := time.Now()
		r, err := Play(context.Background(), run)
		if err != nil { t.Fatal(err) }
		s, msg := uint64(0), uint64(0)
		for _, k := range r.Ranks { s += k.Segments; msg+=k.Messages }
		c := processorTime()-b
		fmt.Printf("%d peers: %v segs %d msgs %d events, %.2f cpu s, %.0f seg/s, %.1f us/msg %.2f wall\n", peers, s, msg, r.Events, c, float64(s)/c, c/float64(msg)*1e6, time.Since(w).Seconds())
		}
	}
}

func TestMem(t *testing.T) {
	p := membrane(4)
	p.N = [3]int{16,16,16}
	m := gigabit(64)
	run := runOf(t, m, p, solver.Synchronous(), 64)
	run.Solver.Tolerance=0
	run.Sweeps = 50
	run.check()
	e, err := newEngine(&run)
	if err != nil { t.Fatal(err) }
	var ms runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&ms)
	fmt.Println("after new", ms.HeapAlloc>>10, "KB", ms.HeapObjects)
	for rank := range e.hosts { e.queue.push(0, evStart, int32(rank)) }
	fmt.Println(e.loop(context.Background()))
	runtime.GC()
	runtime.ReadMemStats(&ms)
	fmt.Println("after run", ms.HeapAlloc>>10, "KB", ms.HeapObjects)
	f, _ := os.Create("/tmp/w2/vv.heap")
	pprof.WriteHeapProfile(f)
	f.Close()
	runtime.KeepAlive(e)
}
