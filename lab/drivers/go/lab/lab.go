// Package lab is what the Go drivers share: the workload's flags, the clocks around a round, and the JSON
// that comes out. It holds no client.
package lab

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// Workload is one object, read in ranges.
type Workload struct {
	Endpoint, Bucket, Key, Region string
	AccessKey, SecretKey          string
	Size, Part                    int64
	Connections                   int
}

type round struct {
	Seconds  float64 `json:"seconds"`
	Bytes    int64   `json:"bytes"`
	Objects  int64   `json:"objects"`
	Requests int64   `json:"requests"`
	User     float64 `json:"user_s"`
	System   float64 `json:"system_s"`
	Peak     int64   `json:"peak_rss_bytes"`
}

// Main reads the flags, makes the client once, and runs a round for every "go" on standard input, or one.
func Main(client func(Workload) (fetch func() (int64, error), err error)) {
	var work Workload
	flag.StringVar(&work.Endpoint, "endpoint", "", "server, as https://HOST:PORT")
	flag.StringVar(&work.Bucket, "bucket", "", "bucket of the object")
	flag.StringVar(&work.Key, "key", "", "key of the object")
	flag.Int64Var(&work.Size, "size", 0, "bytes of the object")
	flag.Int64Var(&work.Part, "part", 8<<20, "bytes of a range")
	flag.IntVar(&work.Connections, "connections", 16, "requests in flight")
	step := flag.Bool("step", false, "print ready, then run one round for each go")
	flag.Parse()
	work.AccessKey, work.SecretKey = os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY")
	work.Region = "us-east-1"
	fetch, err := client(work)
	stop(err)
	if !*step {
		fmt.Println(one(work, fetch))
		return
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if lines.Text() != "go" {
			stop(fmt.Errorf("standard input takes lines that say go"))
		}
		fmt.Println(one(work, fetch))
	}
}

func one(work Workload, fetch func() (int64, error)) string {
	before, start := usage(), time.Now()
	received, err := fetch()
	seconds, after := time.Since(start).Seconds(), usage()
	stop(err)
	if received != work.Size {
		stop(fmt.Errorf("received %d bytes, not %d", received, work.Size))
	}
	line, err := json.Marshal(round{
		seconds, received, 1, (work.Size + work.Part - 1) / work.Part,
		between(before.Utime, after.Utime), between(before.Stime, after.Stime), peak(),
	})
	stop(err)
	return string(line)
}

func usage() (now syscall.Rusage) {
	stop(syscall.Getrusage(syscall.RUSAGE_SELF, &now))
	return now
}

func between(before, after syscall.Timeval) float64 {
	return float64(after.Nano()-before.Nano()) / 1e9
}

func peak() (bytes int64) {
	status, err := os.ReadFile("/proc/self/status")
	stop(err)
	for _, line := range strings.Split(string(status), "\n") {
		if rest, found := strings.CutPrefix(line, "VmHWM:"); found {
			fmt.Sscanf(rest, "%d kB", &bytes)
		}
	}
	return bytes * 1024
}

func stop(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
