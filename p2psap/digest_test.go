package p2psap

import (
	"fmt"
	"hash"
	"reflect"
	"strings"

	"github.com/p2pdc/p2pdc/microproto"
)

// digest adds values to a hash, through pointers and unexported fields: the state of a micro-protocol without
// its addresses.
type digest struct {
	sum  hash.Hash64
	seen []uintptr
}

func (d *digest) value(v reflect.Value, depth int) {
	if depth > 12 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		fmt.Fprint(d.sum, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		fmt.Fprint(d.sum, v.Int(), ",")
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		if v.Type() == reflect.TypeFor[microproto.TimerID]() {
			fmt.Fprint(d.sum, v.Uint() != 0)
			return
		}
		fmt.Fprint(d.sum, v.Uint(), ";")
	case reflect.Float32, reflect.Float64:
		fmt.Fprint(d.sum, v.Float())
	case reflect.String:
		fmt.Fprint(d.sum, v.String(), "\"")
	case reflect.Pointer:
		d.pointer(v, depth)
	case reflect.Interface:
		if !v.IsNil() {
			fmt.Fprint(d.sum, v.Elem().Type())
			d.value(v.Elem(), depth+1)
		}
	case reflect.Slice, reflect.Array:
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			_, _ = d.sum.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() != reflect.Pointer || !e.IsNil() {
				fmt.Fprint(d.sum, i, ":")
				d.value(e, depth+1)
			}
		}
	case reflect.Struct:
		t := v.Type()
		if t.PkgPath() == reflect.TypeFor[microproto.Message]().PkgPath() && strings.HasPrefix(t.Name(), "Attr") {
			return // where a field lies in a header
		}
		for i := range v.NumField() {
			fmt.Fprint(d.sum, "/")
			d.value(v.Field(i), depth+1)
		}
	}
}

func (d *digest) pointer(v reflect.Value, depth int) {
	if v.IsNil() {
		fmt.Fprint(d.sum, "nil")
		return
	}
	switch t := v.Type().Elem(); {
	case t == reflect.TypeFor[microproto.Message]():
		m := (*microproto.Message)(v.UnsafePointer())
		_, _ = d.sum.Write(m.Header())
		_, _ = d.sum.Write(m.Payload)
		return
	case t.PkgPath() == reflect.TypeFor[microproto.Message]().PkgPath():
		return // the kernel's own
	}
	for i, p := range d.seen {
		if p == v.Pointer() {
			fmt.Fprint(d.sum, "#", i)
			return
		}
	}
	d.seen = append(d.seen, v.Pointer())
	d.value(v.Elem(), depth+1)
}
