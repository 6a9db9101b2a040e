package calibration_test

import (
	"context"
	"fmt"
	"log"

	"github.com/p2pdc/p2pdc/internal/calibration"
)

// String returns the size of the block that each peer relaxes. ThisMachine measures with such blocks, and refuses a
// grid with fewer points along an axis than peers before it measures.
func ExampleWorkload() {
	fmt.Println(calibration.Workload{N: 64, Peers: 2})
	fmt.Println(calibration.Workload{N: 64, Peers: 8})
	_, err := calibration.ThisMachine(context.Background(), calibration.Workload{N: 2, Peers: 3})
	fmt.Println(err)
	// Output:
	// 64×64×32 points
	// 32×32×32 points
	// this-machine: a block of one of 3 peers at n = 2: want 2 to 1024 points a side, and 1 to n peers
}

// ThisMachine measures for one or two seconds. Its figures differ between machines, so this example has no fixed
// output.
func ExampleThisMachine() {
	d, err := calibration.ThisMachine(context.Background(), calibration.Workload{N: 64, Peers: 2})
	if err != nil {
		log.Fatal(err)
	}
	m, err := d.Model(2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("a peer relaxes %.3g points per second\n", m.Hosts[0].Relaxation)
	fmt.Println("sending a message of 1000 bytes takes", m.Hosts[0].Send.Of(1, 1000))
}
