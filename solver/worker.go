package solver

import "time"

// SKELETON of what runner, sim and the program rely on; the author of the package moves it to files by noun.

type Rank int
type Iteration uint64 // number of an iterate of one peer: u⁰ is 0

// Box is a half-open box of interior points, 0-based: lo ≤ i < hi per axis.
type Box struct{ Lo, Hi [3]int }

// Partition cuts the grid by planes (tensor product): Cuts[a] holds 0 = c₀ < c₁ < … = N[a].
type Partition struct{ Cuts [3][]int }

func Slabs(n [3]int, peers int, weights []float64) (Partition, error) { panic("skeleton") } // along the slowest used axis; weights nil: even
func Boxes(n [3]int, peers int) (Partition, error)                    { panic("skeleton") } // least surface
func GridOf(n [3]int, p [3]int) (Partition, error)                    { panic("skeleton") } // p[a] parts along a
func (p Partition) Peers() int                                        { panic("skeleton") }
func (p Partition) Box(r Rank) Box                                    { panic("skeleton") }
func (p Partition) Neighbours(r Rank) []Neighbour                     { panic("skeleton") } // in order: x−, x+, y−, y+, z−, z+

// Neighbour is a peer that shares a face.
type Neighbour struct {
	Rank      Rank
	Axis      int
	Side      int // −1: it lies on the low side, +1: on the high side
	FaceBytes int // 8 × points of the face
}

// Scheme of iteration. Admit: may relaxation k (which makes iterate k+1) read iterate v of neighbour q?
type Scheme interface {
	Name() string       // "sync", "async", "delay:3"
	Asynchronous() bool // communication mode of halo sessions
	Admit(k, v Iteration, q Rank) bool
	Slots() int // slots per face: iterate v travels in tag v mod Slots
}

func Synchronous() Scheme         { panic("skeleton") }
func Asynchronous() Scheme        { panic("skeleton") }
func BoundedDelay(max int) Scheme { panic("skeleton") }

type Order int

const (
	Jacobi Order = iota // every sub-block (plane) reads iterate k
	InTurn              // a plane reads the newest own planes
)

// Executor runs f(0..n-1), possibly on several threads, and returns when all have returned.
type Executor interface{ For(n int, f func(i int)) }
type Sequential struct{} // Executor on the caller's goroutine

type Config struct {
	Problem    *Problem
	Partition  Partition
	Rank       Rank
	Scheme     Scheme
	Order      Order
	Executor   Executor      // nil: Sequential
	Tolerance  float64       // relative VI residual
	MaxSweeps  Iteration     // 0: no bound
	CheckEvery Iteration     // 0: chosen; sync: residual of every such iterate
	Lag        Iteration     // c of SPEC §2; 0: chosen
	Repeat     time.Duration // asynchronous: faces are repeated at least this often
	Initial    []float64     // own box's starting values [z][y][x]; nil: the problem's
}

// OpKind: what the shell has to do next.
type OpKind int

const (
	OpRelax OpKind = iota + 1 // call w.Relax(op)
	OpSend                    // w.Pack(op, buf) into a buffer of op.Bytes bytes, send it on the halo session of op.To with op.Tag, op.Label
	OpAgree                   // send op.Message on the agreement session of op.To (op.Label grows); the slice is the shell's to keep
	OpWait                    // nothing to do before an arrival, or before op.Until (time since start; 0: no limit)
	OpDone                    // finished: see Outcome
)

type Op struct {
	Kind    OpKind
	Part    int
	Points  int // OpRelax: points in the part (cost models)
	To      Rank
	Tag     uint32
	Label   uint64
	Bytes   int
	Message []byte
	Until   time.Duration
}

// Worker is what one peer runs: pure reverse communication. Not safe for concurrent use.
type Worker struct{}

func NewWorker(c Config) (*Worker, error)   { panic("skeleton") }
func (w *Worker) Next(now time.Duration) Op { panic("skeleton") } // now: time since the run's start
func (w *Worker) Relax(op Op)               { panic("skeleton") }
func (w *Worker) Pack(op Op, dst []byte)    { panic("skeleton") }

// Halo tells that the slot of (neighbour, tag) now holds data (the whole face, little endian float64) of age label (its oldest segment).
// data is only read before the next call of Halo for the same slot: the shell keeps one buffer a slot and receives into it.
func (w *Worker) Halo(now time.Duration, q Rank, tag uint32, label uint64, data []byte) error {
	panic("skeleton")
}
func (w *Worker) Agree(now time.Duration, q Rank, msg []byte) error { panic("skeleton") } // an agreement message came; error: malformed (names q)
func (w *Worker) Stop(now time.Duration, why Reason)                { panic("skeleton") } // ask for an early end (interrupt, time): travels to the root, which ends the run with the best iterate
func (w *Worker) Outcome() Outcome                                  { panic("skeleton") }
func (w *Worker) Solution(dst []float64)                            { panic("skeleton") } // the agreed block [z][y][x] of the box, after OpDone (or the current one before)
func (w *Worker) Progress() Progress                                { panic("skeleton") }

type Reason int

const (
	Running Reason = iota
	Converged
	ReachedSweeps
	ReachedTime
	Interrupted
)

type Outcome struct {
	Reason    Reason
	Sweeps    Iteration // relaxations done by this peer
	Iterate   Iteration // of the answer (own block)
	Residual  float64   // relative, as agreed (the program recomputes it)
	Snapshots int
}
type Progress struct {
	Sweep    Iteration
	Residual float64 // last known relative residual of the whole (root) or own share; NaN: not yet
}

// Evaluate judges an assembled vector u of interior values [z][y][x]: the true VI residual of SPEC §1 etc.
type Evaluation struct {
	RelativeResidual, ResidualInf float64
	ErrorBound                    float64 // NaN: no bound known
	MaxError                      float64 // NaN: no exact solution
	ContactPoints                 int
	Sum                           float64
}

func Evaluate(p *Problem, u []float64, e Executor) (Evaluation, error) { panic("skeleton") }

// SolveSequential is the oracle and the one-peer reference: same order of operations, same check rule; bitwise what any partition gives synchronously.
type Sequence struct {
	U        []float64
	Sweeps   Iteration
	Residual float64
	Reason   Reason
}

func SolveSequential(p *Problem, order Order, tol float64, checkEvery, lag, maxSweeps Iteration) (Sequence, error) {
	panic("skeleton")
}
