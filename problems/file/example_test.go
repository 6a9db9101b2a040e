package file_test

import (
	"errors"
	"fmt"

	"github.com/p2pdc/p2pdc/problems/file"
)

// A problem file is parsed, described, built on a grid, and marshalled for a peer.
func ExampleParse() {
	text := `
dimension: 1
domain: [[0, 1]]
obstacle: "0.3 - 2*(x - 0.5)^2"
f: -1
`
	s, err := file.Parse("hill.yaml", []byte(text), nil)
	if err != nil {
		panic(err)
	}
	p, err := s.BuildValid([]int{9})
	if err != nil {
		panic(err)
	}
	atPeer, err := file.UnmarshalSpec(nil, s.Marshal())
	if err != nil {
		panic(err)
	}
	fmt.Println(s.Describe().Equation)
	fmt.Println(p.Obstacle(p.At(5, 1, 1)), atPeer.Fingerprint() == s.Fingerprint())
	// Output:
	// u ≥ φ, −Δu ≥ f, complementary; φ the obstacle
	// 0.3 true
}

// Errors in a problem file have a file, a line, a key and a reason.
func ExampleError() {
	_, err := file.Parse("hill.yaml", []byte("dimension: 1\ndomain: [[0, 1]]\nobstacle: sin\n"), nil)
	var e *file.Error
	if errors.As(err, &e) {
		fmt.Println(e.Line, e.Key)
	}
	fmt.Println(err)
	// Output:
	// 3 obstacle
	// hill.yaml:3: obstacle: sin is a function: write sin(…), at character 1 of "sin"
}
