// Package protocol is the lab's driver protocol, version 1, for drivers written in Go: what a driver
// says of itself, the plan it is given, the clock, and a sample for each item. It holds no client,
// and never tells one how to do its work.
package protocol

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Version is the one this package speaks.
const Version = 1

// Description is what a driver says of itself.
type Description struct {
	Name       string            `json:"name"`
	Client     string            `json:"client"`
	Version    string            `json:"version"`
	Components map[string]string `json:"components"`
	Operations []string          `json:"operations"`
	Sinks      []string          `json:"sinks"`
	Sources    []string          `json:"sources"`
	Settings   []string          `json:"settings"`
	TLS        bool              `json:"tls"`
}

// Plan is what a driver is told to do. Concurrency (operations, or requests of one large object, in
// flight), PartSize (bytes) and Checksums are nil where the client's own default is wanted.
type Plan struct {
	Type        string  `json:"type"`
	Version     int     `json:"version"`
	Operation   string  `json:"operation"`
	Sink        string  `json:"sink"`
	Source      string  `json:"source"`
	Concurrency *int    `json:"concurrency"`
	PartSize    *int64  `json:"part_size"`
	Checksums   *bool   `json:"checksums"`
	Endpoint    string  `json:"endpoint"`
	Region      string  `json:"region"`
	Bucket      string  `json:"bucket"`
	PathStyle   bool    `json:"path_style"`
	CAFile      *string `json:"ca_file"`
	Folder      *string `json:"folder"`
	// Listing is a prefix to list first, within the clock: what it finds are the items.
	Listing *string `json:"listing"`
	Work    []Item  `json:"work"`
}

// Item is one object, one range of an object, or one listing.
type Item struct {
	Key  string `json:"key"`
	Size int64  `json:"size"`
	// Range is the first byte and the one after the last, or nil for the whole object.
	Range  *[2]int64 `json:"range"`
	Prefix string    `json:"prefix"`
	Keys   int64     `json:"keys"`
}

// Bytes is how many of them the item moves.
func (item Item) Bytes() int64 {
	if item.Range != nil {
		return item.Range[1] - item.Range[0]
	}
	return item.Size
}

// HTTPRange is the item's range as a request's header says it, or empty.
func (item Item) HTTPRange() string {
	if item.Range == nil {
		return ""
	}
	return fmt.Sprintf("bytes=%d-%d", item.Range[0], item.Range[1]-1)
}

// Lanes says how a plan's concurrency is shared by a client that does items in lanes: as many lanes as
// there are items, and for each the requests that it may have in flight.
func (plan Plan) Lanes(byDefault int) (requests []int, total int) {
	total = Or(plan.Concurrency, byDefault)
	requests = make([]int, min(total, len(plan.Work)))
	for lane := range requests {
		requests[lane] = total / len(requests)
		if lane < total%len(requests) {
			requests[lane]++
		}
	}
	return requests, total
}

// UploadPart is the part size of an upload, of which the client makes none below least. The error is
// a Skip where the plan wants smaller ones.
func (plan Plan) UploadPart(byDefault, least int64) (int64, error) {
	part := Or(plan.PartSize, byDefault)
	for _, item := range plan.Work {
		if part < least && item.Size > part {
			return 0, Skip(fmt.Sprintf("it uploads no parts below %d bytes", least))
		}
	}
	return max(part, least), nil
}

// Or is what the plan says, or the client's default.
func Or[T any](said *T, byDefault T) T {
	if said == nil {
		return byDefault
	}
	return *said
}

// Skip is an error that says why a plan can't be done by this client.
type Skip string

func (reason Skip) Error() string { return string(reason) }

func parse(line []byte, about Description) (Plan, error) {
	var plan Plan
	if err := json.Unmarshal(line, &plan); err != nil {
		return plan, fmt.Errorf("the plan's line can't be read: %w", err)
	}
	if plan.Type != "plan" {
		return plan, fmt.Errorf("the first line's type is %q, not \"plan\"", plan.Type)
	}
	if plan.Version != Version {
		return plan, fmt.Errorf("the plan's version is %d, this driver speaks %d", plan.Version, Version)
	}
	if err := plan.wellFormed(); err != nil {
		return plan, err
	}
	return plan, plan.within(about)
}

func (plan Plan) wellFormed() error {
	switch {
	case plan.Endpoint == "" || plan.Bucket == "" || plan.Operation == "":
		return errors.New("the plan names no endpoint, no bucket or no operation")
	case len(plan.Work) == 0:
		return errors.New("the plan has no work")
	case plan.Concurrency != nil && *plan.Concurrency < 1:
		return fmt.Errorf("the plan's concurrency is %d", *plan.Concurrency)
	case plan.PartSize != nil && *plan.PartSize < 1:
		return fmt.Errorf("the plan's part size is %d", *plan.PartSize)
	case plan.needsFolder() && plan.Folder == nil:
		return errors.New("the plan has files and names no folder")
	}
	for n, item := range plan.Work {
		if plan.Operation != "list" && item.Key == "" {
			return fmt.Errorf("item %d of the plan has no key", n)
		}
		if item.Size < 0 || item.Keys < 0 {
			return fmt.Errorf("item %d of the plan has a negative size", n)
		}
		if r := item.Range; r != nil && (r[0] < 0 || r[0] >= r[1] || r[1] > item.Size) {
			return fmt.Errorf("item %d of the plan has the range [%d, %d) of %d bytes", n, r[0], r[1], item.Size)
		}
	}
	return nil
}

func (plan Plan) needsFolder() bool {
	return plan.Operation == "get" && plan.Sink == "file" || plan.Operation == "put" && plan.Source == "file"
}

func (plan Plan) within(about Description) error {
	if !slices.Contains(about.Operations, plan.Operation) {
		return Skip(fmt.Sprintf("%s has no operation %q", about.Client, plan.Operation))
	}
	if plan.Listing != nil && !slices.Contains(about.Settings, "listing") {
		return Skip(about.Client + " lists nothing")
	}
	if plan.Operation == "get" && !slices.Contains(about.Sinks, plan.Sink) {
		return Skip(fmt.Sprintf("%s has no sink %q", about.Client, plan.Sink))
	}
	if plan.Operation == "put" && plan.Source != "" && !slices.Contains(about.Sources, plan.Source) {
		return Skip(fmt.Sprintf("%s has no source %q", about.Client, plan.Source))
	}
	return nil
}
