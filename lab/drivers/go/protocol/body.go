package protocol

import "encoding/binary"

const period = 1_048_583

// body makes the bytes that every PUT sends: the test server's formula for the key "body", a table of
// pseudo-random words that repeats with a prime period, begun at a phase that the key decides.
func body(size int64) []byte {
	table := make([]byte, 0, period+8)
	for number := uint64(1); len(table) < period; number++ {
		word := number * 0x9E3779B97F4A7C15
		word = (word ^ word>>30) * 0xBF58476D1CE4E5B9
		word = (word ^ word>>27) * 0x94D049BB133111EB
		table = binary.LittleEndian.AppendUint64(table, word^word>>31)
	}
	table = table[:period]
	phase := uint64(0xCBF29CE484222325)
	for _, letter := range []byte("body") {
		phase = (phase ^ uint64(letter)) * 0x100000001B3
	}
	made := make([]byte, 0, size)
	for from := phase % period; int64(len(made)) < size; from = 0 {
		rest := table[from:]
		made = append(made, rest[:min(int64(len(rest)), size-int64(len(made)))]...)
	}
	return made
}
