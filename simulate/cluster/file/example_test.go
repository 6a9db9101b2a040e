package file_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/p2pdc/p2pdc/simulate/cluster/file"
)

// text describes machines of one class at one site.
const text = `about: The PCs of one room.
machines:
  pc: {cores: 2, relaxation: 0.2 Gpoint/s}
networks:
  gigabit: {kind: ether, rate: 1 Gbit/s, latency: 20 us, queue: 128 KiB, mtu: 1500 B, frame: 38 B}
sites:
  room: {network: gigabit, machines: [{class: pc, count: 8}]}
`

// Parse reads a description, Explain describes it in words, and Model returns its machines.
func ExampleParse() {
	f, err := file.Parse("room.yaml", []byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	site := file.Explain(&f.Description).Entries[0]
	fmt.Printf("%s: %s\n", site.Key, site.Text)
	m, err := f.Model(8)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s has %d machines\n", m.Name, len(m.Hosts))
	// Output:
	// site room: 8 × pc; network gigabit
	// room has 8 machines
}

// The error of an invalid description has the file, the line, the key and the reason.
func ExampleParse_invalid() {
	_, err := file.Parse("room.yaml", []byte(strings.Replace(text, "cores: 2", "cores: -2", 1)))
	var e *file.Error
	fmt.Println(errors.As(err, &e))
	fmt.Println(err)
	// Output:
	// true
	// room.yaml:3: machines.pc.cores: -2: there should be 1 to 65536
}

// A built-in description is opened by its name.
func ExampleOpen() {
	fmt.Println(file.Builtins())
	f, err := file.Open("graphene-ib")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Builtin, f.Networks[0].Kind, f.Networks[0].Latency)
	// Output:
	// [graphene-eth graphene-ib grid-0.1ms grid-10ms grid-18ms grid-4ms]
	// true ib 2µs
}
