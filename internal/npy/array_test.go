package npy

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/sbinet/npyio/npy"
	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"
	"pgregory.net/rapid"
)

// file builds a .npy file by hand.
func file(version byte, text string, data []byte) []byte {
	f := append([]byte(magic), version, 0)
	if version == 1 {
		f = binary.LittleEndian.AppendUint16(f, uint16(len(text)))
	} else {
		f = binary.LittleEndian.AppendUint32(f, uint32(len(text)))
	}
	return append(append(f, text...), data...)
}

func values(a Array) []float64 {
	v := make([]float64, a.Len())
	for i := range v {
		v[i] = a.At(i)
	}
	return v
}

func TestTypes(t *testing.T) {
	for _, c := range []struct {
		descr, name string
		data        []byte
		want        float64
	}{
		{"|b1", "bool", []byte{1}, 1},
		{"|i1", "int8", []byte{0xfe}, -2},
		{"|u1", "uint8", []byte{0xfe}, 254},
		{"<i2", "int16", []byte{0xfe, 0xff}, -2},
		{">i2", "int16", []byte{0xff, 0xfe}, -2},
		{"<u2", "uint16", []byte{1, 2}, 513},
		{"<i4", "int32", []byte{0xfe, 0xff, 0xff, 0xff}, -2},
		{">u4", "uint32", []byte{0, 0, 1, 0}, 256},
		{"<i8", "int64", []byte{0xfe, 255, 255, 255, 255, 255, 255, 255}, -2},
		{"<u8", "uint64", []byte{3, 0, 0, 0, 0, 0, 0, 0}, 3},
		{">f4", "float32", binary.BigEndian.AppendUint32(nil, math.Float32bits(-1.5)), -1.5},
		{"<f8", "float64", binary.LittleEndian.AppendUint64(nil, math.Float64bits(math.Pi)), math.Pi},
	} {
		a, err := Decode(file(1, "{'descr': '"+c.descr+"', 'fortran_order': False, 'shape': (1,), }\n", c.data))
		require.NoError(t, err, c.descr)
		require.Equal(t, c.name, a.Type)
		require.Equal(t, []float64{c.want}, values(a))
	}
}

func TestHeadersOfAllVersionsAndOrders(t *testing.T) {
	for version := byte(1); version <= 3; version++ {
		for _, text := range []string{
			"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   \n",
			`{"shape":(2,3,),"fortran_order":False,"descr":"|u1"}`,
			"{'shape': (2, 3), 'descr': '|u1', 'fortran_order': False}",
		} {
			a, err := Decode(file(version, text, []byte{1, 2, 3, 4, 5, 6}))
			require.NoError(t, err, text)
			require.Equal(t, []int{2, 3}, a.Shape)
			require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, values(a))
		}
	}
}

func TestRefusals(t *testing.T) {
	plain := func(s string) []byte { return file(1, s, []byte{1, 2, 3, 4, 5, 6}) }
	for _, c := range []struct {
		file []byte
		want string
	}{
		{nil, `this is not a .npy file: it does not start with \x93NUMPY`},
		{[]byte("PK\x03\x04"), "this is not a .npy file"},
		{[]byte(magic + "\x01"), "the file ends within its header"},
		{[]byte(magic + "\x04\x00\x00\x00"), "version 4.0 of the .npy format is not known"},
		{[]byte(magic + "\x02\x00\xff\xff\xff\xff{"), "the file ends within its header"},
		{plain("{}"), "is not the dictionary of a plain array"},
		{plain(""), "is not the dictionary of a plain array"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (,)}"), "is not the dictionary"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,6)}"), "is not the dictionary"},
		{plain("{'descr': '|u1', 'fortran_order': Maybe, 'shape': (6,)}"), "is not the dictionary"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (-6,)}"), "is not the dictionary"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (6,)} import"), "is not the dictionary"},
		{plain("{'descr': '|u1', 'descr': '|u1', 'fortran_order': False, 'shape': (6,)}"), "is not the dictionary"},
		{plain("{'descr': [('a', '<i2')], 'fortran_order': False, 'shape': (6,)}"), "the array has records"},
		{plain("{'descr': '<c16', 'fortran_order': False, 'shape': (6,)}"), `the type "<c16" is not one of bool, int8`},
		{plain("{'descr': '<f2', 'fortran_order': False, 'shape': (3,)}"), `the type "<f2" is not one of`},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (0, 3)}"), "the array of shape 0 × 3 is empty"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000, 4000000000, 4000000000)}"), "too large"},
		{plain("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3)}"),
			"the file is cut short: 2 × 3 of int16 needs 12 bytes of data and there are 6"},
		{plain("{'descr': '|u1', 'fortran_order': False, 'shape': (5,)}"),
			"1 bytes follow the 5 that 5 of uint8 needs"},
	} {
		_, err := Decode(c.file)
		require.ErrorContains(t, err, c.want)
	}
}

// Encoded arrays are decoded bit for bit, and another implementation reads the same values.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "shape")
		n := 1
		for _, s := range shape {
			n *= s
		}
		want := rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "values")
		f, err := binary.Append(Header(shape), binary.LittleEndian, want)
		require.NoError(t, err)
		a, err := Decode(f)
		require.NoError(t, err)
		require.Equal(t, len(shape), len(a.Shape))
		require.ElementsMatch(t, shape, a.Shape)
		require.Equal(t, want, values(a))
		require.Zero(t, (len(f)-8*n)%alignment)
		var other []float64
		require.NoError(t, npy.Read(bytes.NewReader(f), &other))
		require.Equal(t, want, other)
	})
}

// A Reader returns what Decode does, in parts of any length, or the same error.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := []int{rapid.IntRange(1, 4).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "columns")}
		n := shape[0] * shape[1]
		want := rapid.SliceOfN(rapid.Float64(), n, n).Draw(t, "values")
		f, err := binary.Append(Header(shape), binary.LittleEndian, want)
		require.NoError(t, err)
		r, err := NewReader(iotest.OneByteReader(bytes.NewReader(f)), int64(len(f)))
		require.NoError(t, err)
		require.Equal(t, shape, r.Shape)
		require.Equal(t, "float64", r.Type)
		var got []float64
		for len(got) < n {
			part := make([]float64, rapid.IntRange(1, n-len(got)).Draw(t, "part"))
			require.NoError(t, r.Read(part))
			got = append(got, part...)
		}
		require.Equal(t, want, got)
		require.ErrorContains(t, r.Read(make([]float64, 1)), "the file ended while it was read")
		cut := rapid.IntRange(0, len(f)-1).Draw(t, "cut")
		_, refused := Decode(f[:cut])
		_, err = NewReader(bytes.NewReader(f[:cut]), int64(cut))
		require.Equal(t, refused, err)
	})
	_, err := NewReader(iotest.ErrReader(io.ErrClosedPipe), 10)
	require.ErrorIs(t, err, io.ErrClosedPipe)
}

// An array in Fortran order has the values of the same array in C order, read at once or in parts.
func TestFortranOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shape := rapid.SliceOfN(rapid.IntRange(1, 5), 0, 4).Draw(t, "shape")
		want := []float64{0}
		for _, n := range shape {
			want = make([]float64, len(want)*n)
		}
		for i := range want {
			want[i] = float64(i)
		}
		data := make([]byte, 8*len(want))
		for i, v := range want { // entry i in C order has the index at, in which the first axis is fastest
			at, stride, rest := 0, 1, i
			index := make([]int, len(shape))
			for k := len(shape) - 1; k >= 0; k-- {
				index[k] = rest % shape[k]
				rest /= shape[k]
			}
			for k, n := range shape {
				at += index[k] * stride
				stride *= n
			}
			binary.LittleEndian.PutUint64(data[8*at:], math.Float64bits(v))
		}
		header := bytes.Replace(Header(shape), []byte("'fortran_order': False"), []byte("'fortran_order': True "), 1)
		a, err := Decode(append(header, data...))
		require.NoError(t, err)
		require.Equal(t, want, values(a))
		r, err := NewReader(bytes.NewReader(append(header, data...)), int64(len(header)+len(data)))
		require.NoError(t, err)
		got := make([]float64, len(want))
		cut := rapid.IntRange(0, len(want)).Draw(t, "cut")
		require.NoError(t, r.Read(got[:cut]))
		require.NoError(t, r.Read(got[cut:]))
		require.Equal(t, want, got)
		require.Error(t, r.Read(make([]float64, 1)))
	})
}

func TestReadsWhatAnotherImplementationWrites(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, npy.Write(&b, mat.NewDense(2, 3, []float64{1, 2, 3, 4, 5, 6})))
	a, err := Decode(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, []int{2, 3}, a.Shape)
	require.Equal(t, []float64{1, 2, 3, 4, 5, 6}, values(a))
	require.Equal(t, "a single number", ShapeString([]int{}))
}

func FuzzDecode(f *testing.F) {
	f.Add(append(Header([]int{2, 3}), make([]byte, 6*8)...))
	f.Add(file(1, "{'descr': '<i2', 'fortran_order': True, 'shape': (2,), }", []byte{1, 2, 3, 4}))
	f.Add(file(3, "{'shape': (), 'descr': '|b1', 'fortran_order': False}", []byte{1}))
	f.Add([]byte(magic + strings.Repeat("\xff", 20)))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Decode(b)
		r, refused := NewReader(bytes.NewReader(b), int64(len(b)))
		if err == nil && len(b) < HeaderBytes && refused != nil {
			t.Fatalf("a Reader refuses what Decode accepts: %v", refused)
		}
		if err != nil {
			if refused == nil {
				t.Fatalf("a Reader accepts what Decode refuses: %v", err)
			}
			return
		}
		if a.Len() < 1 || a.Len() > len(b) {
			t.Fatalf("%d entries from %d bytes", a.Len(), len(b))
		}
		if refused != nil {
			return
		}
		got := make([]float64, a.Len())
		if err := r.Read(got); err != nil {
			t.Fatal(err)
		}
		for i, v := range values(a) {
			if math.Float64bits(v) != math.Float64bits(got[i]) {
				t.Fatalf("entry %d: %g and %g", i, v, got[i])
			}
		}
	})
}
