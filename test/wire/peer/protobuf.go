package main

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"github.com/golang/protobuf/proto"
	"github.com/golang/protobuf/ptypes/wrappers"
	"google.golang.org/genproto/googleapis/api/metric"
	"google.golang.org/genproto/protobuf/ptype"
)

var kinds = map[string]func() proto.Message{
	"Type":        func() proto.Message { return new(ptype.Type) },
	"Metric":      func() proto.Message { return new(metric.Metric) },
	"Int32Value":  func() proto.Message { return new(wrappers.Int32Value) },
	"Int64Value":  func() proto.Message { return new(wrappers.Int64Value) },
	"UInt32Value": func() proto.Message { return new(wrappers.UInt32Value) },
	"UInt64Value": func() proto.Message { return new(wrappers.UInt64Value) },
	"DoubleValue": func() proto.Message { return new(wrappers.DoubleValue) },
}

func readMessages() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 16<<20)
	out := bufio.NewWriter(os.Stdout)
	for lines.Scan() {
		again, err := rewritten(lines.Text())
		if err != nil {
			fmt.Fprintln(out, "error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Fprintln(out, hex.EncodeToString(again))
		}
		fail(out.Flush())
	}
	fail(lines.Err())
}

// rewritten has the fields that are known, in their order.
func rewritten(line string) ([]byte, error) {
	kind, text, _ := cut(line)
	bytes, err := hex.DecodeString(text)
	if err != nil {
		return nil, err
	}
	make, ok := kinds[kind]
	if !ok {
		return nil, fmt.Errorf("no type %s", kind)
	}
	message := make()
	if err := proto.Unmarshal(bytes, message); err != nil {
		return nil, err
	}
	proto.DiscardUnknown(message)
	return proto.Marshal(message)
}

func cut(line string) (string, string, bool) {
	at := strings.IndexByte(line, ' ')
	if at < 0 {
		return line, "", false
	}
	return line[:at], line[at+1:], true
}
