package p2psap

import "fmt"

// declared is the length of the slot of that tag; -1: the session has none.
func (s *session) declared(tag Tag) int {
	for i := range s.options.Slots {
		if s.options.Slots[i].Tag == tag {
			return s.options.Slots[i].Length
		}
	}
	return -1
}

// fits tells why n bytes cannot be a message of that tag, whatever the composition.
func (s *session) fits(tag Tag, n int, synchronous bool) error {
	switch length := s.declared(tag); {
	case length < 0:
		return s.undeclared(tag)
	case synchronous && n > length:
		return fmt.Errorf("%w: session %q: %d bytes for tag %d, declared with %d at most", ErrSlot, s.options.Name, n, tag, length)
	case !synchronous && n != length:
		return fmt.Errorf("%w: session %q: %d bytes for tag %d, declared with %d", ErrSlot, s.options.Name, n, tag, length)
	}
	return nil
}

func (s *session) undeclared(tag Tag) error {
	return fmt.Errorf("%w: session %q does not declare tag %d: list it in OpenOptions.Slots at both ends", ErrSlot, s.options.Name, tag)
}
