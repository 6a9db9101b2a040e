// Package deadlines is a heap of deadlines.
package deadlines

import "github.com/p2pdc/p2pdc/microproto"

// Heap finds the first of many deadlines. What is due is named by a small number, its index. A node of the heap has
// four children. The zero value is empty.
type Heap struct {
	heap     []int32              // indices
	position []int32              // by index: its position in heap + 1; 0: no deadline
	deadline []microproto.Instant // by index
}

// First returns the first deadline, microproto.Never if there is none.
func (h *Heap) First() microproto.Instant {
	if len(h.heap) == 0 {
		return microproto.Never
	}
	return h.deadline[h.heap[0]]
}

// Take removes the first deadline and returns its index. There must be one.
func (h *Heap) Take() int32 {
	index := h.heap[0]
	h.Set(index, microproto.Never)
	return index
}

// Set sets the deadline of an index; microproto.Never: none.
func (h *Heap) Set(index int32, deadline microproto.Instant) {
	for int(index) >= len(h.position) {
		h.position, h.deadline = append(h.position, 0), append(h.deadline, microproto.Never)
	}
	if h.deadline[index] == deadline {
		return
	}
	h.deadline[index] = deadline
	i := int(h.position[index]) - 1
	switch {
	case i < 0:
		h.heap = append(h.heap, index)
		i = len(h.heap) - 1
	case deadline == microproto.Never:
		h.position[index] = 0
		last := len(h.heap) - 1
		index = h.heap[last]
		h.heap = h.heap[:last]
		if i == last {
			return
		}
	}
	h.place(i, index)
}

// place moves an index to its position in the heap, starting from i.
func (h *Heap) place(i int, index int32) {
	heap, deadline := h.heap, h.deadline[index]
	for i > 0 && deadline < h.deadline[heap[(i-1)/4]] {
		heap[i] = heap[(i-1)/4]
		h.position[heap[i]] = int32(i + 1)
		i = (i - 1) / 4
	}
	for {
		child := 4*i + 1
		if child >= len(heap) {
			break
		}
		least := child
		for c := child + 1; c < min(child+4, len(heap)); c++ {
			if h.deadline[heap[c]] < h.deadline[heap[least]] {
				least = c
			}
		}
		if h.deadline[heap[least]] >= deadline {
			break
		}
		heap[i] = heap[least]
		h.position[heap[i]] = int32(i + 1)
		i = least
	}
	heap[i], h.position[index] = index, int32(i+1)
}
