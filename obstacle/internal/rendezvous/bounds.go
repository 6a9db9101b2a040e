package rendezvous

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/p2pdc/p2pdc/solver/problem"
)

// span holds the least and the greatest value of an integer.
type span struct {
	least int64
	most  uint64
}

const (
	maxRank   = 1 << 20 // above every rank of a peer and of a spare one
	maxNumber = 1 << 31 // of epochs, time steps, captures, terms and other things that are counted one by one
	maxCount  = 1 << 53 // of sweeps, points, bytes and messages; a float64 holds it exactly
	maxMS     = 1 << 41 // 70 years; four of them fit a time.Duration
	maxTime   = 1 << 60 // nanoseconds, 36 years; seven of them fit a time.Duration
	maxPoint  = 1 << 31 // index of a grid point along an axis
)

// bounds returns the span of every integer of 64 bits in a message, by the name of its field. Sums and products of a few
// of them do not overflow. The elements of a list or map have the span of the field, keys that of a rank.
func bounds() map[string]span {
	ranks, orNone := span{0, maxRank}, span{-1, maxRank}
	number, count, point := span{0, maxNumber}, span{0, maxCount}, span{0, maxPoint}
	ms, time := span{0, maxMS}, span{0, maxTime}
	anything := span{0, math.MaxUint64}
	return map[string]span{
		"Rank": orNone, "Lost": orNone, "Peer": orNone, "Neighbours": ranks, "Others": count, "Own": count,
		"Parts": ranks, "Keepers": ranks, "Spares": ranks, "Threads": ranks, "Processors": ranks,
		"Version": number, "Pid": count, "PidSpace": count, "Phase": number, "Kind": number,
		"Order": {0, uint64(problem.InTurn)},

		"Epoch": number, "Step": number, "Steps": number, "After": number, "From": {-1, maxNumber}, "Newest": number,
		"Number": {-maxNumber, maxNumber}, "Round": number, "Term": count, "Snapshots": count,
		"Given": count, "Taken": count, "Reconfigurations": count,

		"Sweep": count, "Sweeps": count, "Iterate": count, "Iterates": count, "Relaxed": count, "Points": count,
		"MaxSweeps": anything, "Seed": anything, // compared and copied, never summed
		"Faces": count, "Sum": anything, "Ages": count, "StaleFaces": count, "Refused": count, "Dropped": count,
		"Messages": count, "Bytes": count, "Segments": count, "Replaced": count,
		"Overwritten": count, "Received": count, "MessagesSent": count, "MessagesReceived": count, "SegmentsSent": count,
		"SegmentsReceived": count, "Retransmitted": count,

		"MTU": number, "BlockBytes": number, "MessageBytes": number, "SegmentBytes": number, "FrameBytes": number, "Values": number,
		"BytesSent": count, "BytesReceived": count, "PeakBytes": {-1, maxCount}, "IdleBytes": {-1, maxCount},
		"ProblemBytes": {0, uint64(maxOffset)},

		"ElapsedMS": ms, "EveryMS": ms, "PeerTimeout": time, "Suspect": time, "MaxTime": time, "KeepEvery": time,

		"N": point, "Cuts": point, "Lo": point, "Hi": point, "First": point, "Stride": point, "Size": {0, MaxSample},

		"Overlap": number, "InnerCycles": number, "Coarse": {-maxNumber, maxCount}, "SweepsPerPass": number,
	}
}

var spans = bounds()

// maxSeconds is the bound of a time: of maxMS.
const maxSeconds = maxMS / 1000

// limits holds the greatest value of those floating-point numbers in a message that are not negative, by the name of the
// field. Others are at least −1.
var limits = map[string]float64{
	"Residual": math.MaxFloat64, "Tolerance": math.MaxFloat64, "Omega": 2, "Busy": maxSeconds, "Seconds": maxSeconds,
	"CPUSeconds": maxSeconds, "ReconfigurationSeconds": maxSeconds, "Relaxing": maxSeconds, "Waiting": maxSeconds,
	"RTTSeconds": maxSeconds, "PathRTT": maxSeconds, "PauseSeconds": maxSeconds, "PathLoss": math.MaxFloat64,
}

// spanOf returns the span of a field. Fields of JSON that a message holds as it is (see Nested) need none of their own.
func spanOf(field string, t reflect.Type) span {
	s, known := spans[field]
	switch {
	case known:
		return s
	case t == reflect.TypeFor[time.Duration]():
		return span{-1, maxTime}
	}
	return span{-1, maxCount}
}

// Nested decodes JSON that a message holds as it is. Its numbers have the bounds of those of messages, and its lists hold no null.
func Nested(text []byte, v any) error {
	err := json.Unmarshal(text, v)
	if err == nil {
		err = check("", reflect.ValueOf(v))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrMalformed, err)
	}
	return nil
}

// check returns an error that names the first number of a field that is out of its span. Floating-point numbers are
// finite in JSON; see limits.
func check(field string, v reflect.Value) error {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			f := v.Type().Field(i)
			if !f.IsExported() { // of an address
				continue
			}
			if err := check(f.Name, v.Field(i)); err != nil {
				return err
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			return check(field, v.Elem())
		}
	case reflect.Slice, reflect.Array:
		if !numeric(v.Type().Elem()) {
			return nil
		}
		for i := range v.Len() {
			if e := v.Index(i); e.Kind() == reflect.Pointer && e.IsNil() {
				return fmt.Errorf("element %d of %s is null", i, field)
			}
			if err := check(field, v.Index(i)); err != nil {
				return err
			}
		}
	case reflect.Map:
		for entry := v.MapRange(); entry.Next(); {
			if err := check("Rank", entry.Key()); err != nil {
				return err
			}
			if err := check(field, entry.Value()); err != nil {
				return err
			}
		}
	case reflect.Int, reflect.Int64:
		if s := spanOf(field, v.Type()); v.Int() < s.least || v.Int() > 0 && uint64(v.Int()) > s.most {
			return fmt.Errorf("%s is %d; it must be %d to %d", field, v.Int(), s.least, s.most)
		}
	case reflect.Uint, reflect.Uint64:
		if s := spanOf(field, v.Type()); v.Uint() > s.most {
			return fmt.Errorf("%s is %d; it must be at most %d", field, v.Uint(), s.most)
		}
	case reflect.Float64:
		if most, known := limits[field]; known && (v.Float() < 0 || v.Float() > most) {
			return fmt.Errorf("%s is %g; it must be 0 to %g", field, v.Float(), most)
		}
		if v.Float() < -1 {
			return fmt.Errorf("%s is %g; it must be at least −1", field, v.Float())
		}
	}
	return nil
}

// numeric reports whether values of a type can hold integers of 64 bits or floating-point numbers.
func numeric(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Uint8, reflect.String:
		return false
	}
	return true
}
