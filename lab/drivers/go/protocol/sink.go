package protocol

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
)

// Sink takes the bytes of one item where the plan wants them, by their offsets in the item (WriteAt) or
// in order (Write). It notes when the first of them came.
type Sink struct {
	first  atomic.Int64
	memory []byte
	file   *os.File
	path   string
	stream bool
	digest uint32
	hashed bool
}

// Memory is where the whole item goes, or nil when it goes elsewhere.
func (sink *Sink) Memory() []byte { return sink.memory }

// Came notes that bytes are there. Only the first call of an item counts.
func (sink *Sink) Came() {
	if sink.first.Load() == 0 {
		sink.first.CompareAndSwap(0, Now())
	}
}

// WriteAt takes bytes at their offset in the item.
func (sink *Sink) WriteAt(bytes []byte, at int64) (int, error) {
	sink.Came()
	switch {
	case sink.file != nil:
		return sink.file.WriteAt(bytes, at)
	case sink.memory != nil:
		if at < 0 || at+int64(len(bytes)) > int64(len(sink.memory)) {
			return 0, fmt.Errorf("bytes at %d of an item of %d", at+int64(len(bytes)), len(sink.memory))
		}
		return copy(sink.memory[at:], bytes), nil
	}
	return len(bytes), nil
}

// Write takes the next bytes of the item.
func (sink *Sink) Write(bytes []byte) (int, error) {
	sink.Came()
	if sink.file != nil {
		return sink.file.Write(bytes)
	}
	if sink.hashed {
		sink.digest = crc32.Update(sink.digest, crc32.IEEETable, bytes)
	}
	return len(bytes), nil
}

// Drain copies what comes in order through buffer, and says how much there was.
func (sink *Sink) Drain(body io.Reader, buffer []byte) (received int64, err error) {
	for {
		count, err := body.Read(buffer)
		if count > 0 {
			if _, failed := sink.Write(buffer[:count]); failed != nil {
				return received, failed
			}
			received += int64(count)
		}
		if err == io.EOF {
			return received, nil
		}
		if err != nil {
			return received, err
		}
	}
}

// Each lane has memory of its own, which is used again for every item and in every round.
type lane struct{ memory []byte }

func (lane *lane) of(size int64) []byte {
	if int64(cap(lane.memory)) < size || lane.memory == nil {
		lane.memory = make([]byte, size)
	}
	return lane.memory[:size]
}

// In a round that is verified, bytes that would be dropped are kept for the digest instead.
func (lane *lane) sink(plan *Plan, n int, size int64, verify bool) (*Sink, error) {
	sink := &Sink{hashed: verify, stream: plan.Sink == "stream"}
	switch plan.Sink {
	case "memory":
		sink.memory = lane.of(size)
	case "discard":
		if verify {
			sink.memory = lane.of(size)
		}
	case "file":
		sink.path = filepath.Join(*plan.Folder, strconv.Itoa(n))
		file, err := os.Create(sink.path)
		if err != nil {
			return nil, err
		}
		sink.file = file
	}
	return sink, nil
}

func (sink *Sink) close() error {
	if sink.file == nil {
		return nil
	}
	return sink.file.Close()
}

// The CRC-32 of the item's bytes, once it is closed.
func (sink *Sink) sum() (uint32, error) {
	switch {
	case sink.path != "":
		whole := crc32.NewIEEE()
		file, err := os.Open(sink.path)
		if err != nil {
			return 0, err
		}
		_, err = io.Copy(whole, file)
		return whole.Sum32(), errors.Join(err, file.Close())
	case sink.stream:
		return sink.digest, nil
	}
	return crc32.ChecksumIEEE(sink.memory), nil
}
