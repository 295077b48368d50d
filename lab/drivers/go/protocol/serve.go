package protocol

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

const (
	exitBadPlan = 65
	exitSkip    = 77
)

// Transfers is a client that is ready for a plan: what does an item of each operation, how many items
// are done at once, and the configuration in effect.
type Transfers struct {
	Lanes     int
	Effective map[string]any
	// Get puts the item's bytes into the sink and returns how many the client says there were.
	Get func(lane int, item Item, into *Sink) (int64, error)
	// Put stores what the body holds as the item.
	Put func(lane int, item Item, body Body) error
	// List calls found with every key below the prefix and its object's size, in order.
	List func(prefix string, found func(key string, size int64)) error
}

// Body is what a PUT sends: a reader that clients can also read at any offset.
type Body interface {
	io.ReadSeeker
	io.ReaderAt
}

type sample struct {
	Type   string  `json:"type"`
	N      int     `json:"n"`
	Worker int     `json:"worker"`
	Start  int64   `json:"start_ns"`
	First  *int64  `json:"first_ns"`
	End    int64   `json:"end_ns"`
	Bytes  int64   `json:"bytes"`
	Error  *string `json:"error"`
	Keys   *int64  `json:"keys,omitempty"`
	Digest string  `json:"digest,omitempty"`
}

// Main is the whole of a driver: `describe`, or `run` with a plan on standard input.
func Main(about Description, open func(Plan) (*Transfers, error)) {
	if len(os.Args) != 2 || os.Args[1] != "describe" && os.Args[1] != "run" {
		stop(2, fmt.Errorf("usage: %s describe|run", filepath.Base(os.Args[0])))
	}
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	if os.Args[1] == "describe" {
		check(out.Encode(struct {
			Type     string `json:"type"`
			Protocol int    `json:"protocol"`
			Description
			Language string `json:"language"`
		}{"describe", Version, about, "go"}))
		return
	}
	input := bufio.NewReader(os.Stdin)
	line, err := input.ReadBytes('\n')
	if err == io.EOF && len(bytes.TrimSpace(line)) == 0 {
		stop(exitBadPlan, errors.New("standard input ended before a plan came"))
	}
	plan, err := parse(line, about)
	var transfers *Transfers
	if err == nil {
		transfers, err = open(plan)
	}
	var skip Skip
	switch {
	case errors.As(err, &skip):
		check(out.Encode(map[string]string{"type": "skip", "reason": string(skip)}))
		os.Exit(exitSkip)
	case err != nil:
		stop(exitBadPlan, err)
	}
	rounds(&runner{plan: plan, transfers: transfers, lanes: make([]lane, transfers.Lanes)}, input, out)
}

func rounds(runner *runner, input *bufio.Reader, out *json.Encoder) {
	runner.prepare()
	check(out.Encode(map[string]string{"type": "ready"}))
	for {
		line, err := input.ReadBytes('\n')
		if err == io.EOF {
			return
		}
		check(err)
		var order struct {
			Type   string `json:"type"`
			Round  int    `json:"round"`
			Verify bool   `json:"verify"`
		}
		if err := json.Unmarshal(line, &order); err != nil || order.Type != "go" {
			stop(exitBadPlan, fmt.Errorf("a line that is no go: %.200s", line))
		}
		start := Now()
		runner.run(order.Verify)
		end := Now()
		check(out.Encode(map[string]any{"type": "stopped", "round": order.Round}))
		runner.write(map[string]any{
			"type": "done", "round": order.Round, "start_ns": start, "end_ns": end,
			"effective": runner.transfers.Effective,
		})
		if order.Verify && runner.plan.Sink == "discard" {
			// What was kept for the digest is no part of a round that drops its bytes.
			clear(runner.lanes)
			debug.FreeOSMemory()
		}
	}
}

type runner struct {
	plan      Plan
	transfers *Transfers
	lanes     []lane
	body      []byte
	work      []Item
	samples   []sample
	next      atomic.Int64
}

func (runner *runner) prepare() {
	runner.work = runner.plan.Work
	runner.samples = make([]sample, len(runner.plan.Work))
	if runner.plan.Operation != "put" || runner.plan.Source == "file" {
		return
	}
	largest := int64(0)
	for _, item := range runner.plan.Work {
		largest = max(largest, item.Size)
	}
	runner.body = body(largest)
}

// The items are those of the plan, or those that are listed first.
func (runner *runner) run(verify bool) {
	runner.next.Store(0)
	if prefix := runner.plan.Listing; prefix != nil {
		if err := runner.find(*prefix); err != nil {
			runner.fail(err)
			return
		}
	}
	var workers sync.WaitGroup
	for worker := range runner.transfers.Lanes {
		workers.Go(func() {
			for {
				n := int(runner.next.Add(1) - 1)
				if n >= len(runner.work) {
					return
				}
				runner.samples[n] = runner.one(worker, n, verify)
			}
		})
	}
	workers.Wait()
}

func (runner *runner) find(prefix string) error {
	runner.work = runner.work[:0:0]
	err := runner.transfers.List(prefix, func(key string, size int64) {
		runner.work = append(runner.work, Item{Key: key, Size: size})
	})
	if err == nil && len(runner.work) != len(runner.plan.Work) {
		err = fmt.Errorf("%d objects are listed, not %d", len(runner.work), len(runner.plan.Work))
	}
	return err
}

// Every item ends with the error.
func (runner *runner) fail(err error) {
	text, now := err.Error(), Now()
	for n := range runner.samples {
		runner.samples[n] = sample{Type: "sample", N: n, Start: now, End: now, Error: &text}
	}
}

func (runner *runner) one(worker, n int, verify bool) sample {
	made := sample{Type: "sample", N: n, Worker: worker, Start: Now()}
	var digest uint32
	var err error
	switch runner.plan.Operation {
	case "get":
		digest, err = runner.get(worker, n, verify, &made)
	case "put":
		digest, err = runner.put(worker, n, verify, &made)
	default:
		digest, err = runner.list(n, verify, &made)
	}
	if made.End == 0 {
		made.End = Now()
	}
	if err != nil {
		text := err.Error()
		made.Error = &text
	} else if verify {
		made.Digest = fmt.Sprintf("%08x", digest)
	}
	return made
}

func (runner *runner) get(worker, n int, verify bool, made *sample) (uint32, error) {
	sink, err := runner.lanes[worker].sink(&runner.plan, n, runner.work[n].Bytes(), verify)
	if err != nil {
		return 0, err
	}
	item := runner.work[n]
	made.Bytes, err = runner.transfers.Get(worker, item, sink)
	err = errors.Join(err, sink.close())
	made.End = Now()
	if first := sink.first.Load(); first != 0 {
		made.First = &first
	}
	if err == nil && made.Bytes != item.Bytes() {
		err = fmt.Errorf("%d bytes came, not %d", made.Bytes, item.Bytes())
	}
	if err != nil || !verify {
		return 0, err
	}
	return sink.sum()
}

func (runner *runner) put(worker, n int, verify bool, made *sample) (digest uint32, err error) {
	item := runner.work[n]
	var from Body = bytes.NewReader(runner.body[:min(item.Size, int64(len(runner.body)))])
	if runner.plan.Source == "file" {
		file, err := os.Open(filepath.Join(*runner.plan.Folder, strconv.Itoa(n)))
		if err != nil {
			return 0, err
		}
		defer file.Close()
		from = file
	}
	if err := runner.transfers.Put(worker, item, from); err != nil {
		return 0, err
	}
	made.End, made.Bytes = Now(), item.Size
	if verify {
		whole := crc32.NewIEEE()
		_, err = io.Copy(whole, io.NewSectionReader(from, 0, item.Size))
		digest = whole.Sum32()
	}
	return digest, err
}

func (runner *runner) list(n int, verify bool, made *sample) (uint32, error) {
	keys := make([]string, 0, runner.work[n].Keys)
	found := func(key string, _ int64) { keys = append(keys, key) }
	err := runner.transfers.List(runner.work[n].Prefix, found)
	made.End = Now()
	count := int64(len(keys))
	made.Keys = &count
	if err != nil || !verify {
		return 0, err
	}
	return crc32.ChecksumIEEE([]byte(strings.Join(keys, "\n"))), nil
}

// One line for each item, in order, then the last: all written once the clock has stopped.
func (runner *runner) write(done map[string]any) {
	lines := bufio.NewWriterSize(os.Stdout, 1<<20)
	out := json.NewEncoder(lines)
	out.SetEscapeHTML(false)
	for n := range runner.samples {
		check(out.Encode(&runner.samples[n]))
	}
	check(out.Encode(done))
	check(lines.Flush())
}

func check(err error) {
	if err != nil {
		stop(1, err)
	}
}

func stop(status int, err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(status)
}
