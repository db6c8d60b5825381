package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/golang/protobuf/ptypes/wrappers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

type outcome struct {
	Call  string
	Code  string
	Text  string
	Bytes int
	Count int
}

const patience = time.Minute

func call(socket string) {
	limits := grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest))
	connection, err := grpc.Dial("unix://"+socket, grpc.WithInsecure(), grpc.WithBlock(), grpc.WithTimeout(patience), limits)
	fail(err)
	lines := json.NewEncoder(os.Stdout)
	unary := func(name, method, text string, limit time.Duration) {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		answer := new(wrappers.BytesValue)
		err := connection.Invoke(ctx, "/wire.Peer/"+method, &wrappers.BytesValue{Value: []byte(text)}, answer)
		failed := status.Convert(err)
		fail(lines.Encode(outcome{name, failed.Code().String(), failed.Message(), len(answer.Value), 0}))
	}
	for _, size := range []int{0, 1, 16383, 16384, 65535, 65536, 1 << 20, 3 << 20} {
		unary(fmt.Sprint("echo ", size), "Echo", strings.Repeat("e", size), patience)
	}
	unary("too long", "Echo", strings.Repeat("e", 5<<20), patience)
	unary("unknown", "Nothing", "", patience)
	for i, text := range []string{"plain", "100% of it", "two\nlines\r", "ü 日本 😀", "\t\"quoted\"", strings.Repeat("ü", 100000)} {
		unary(fmt.Sprint("fail ", i), "Fail", text, patience)
	}
	unary("deadline", "Sleep", "", 200*time.Millisecond)
	all(connection, lines)
	some(connection, lines)
	unary("at last", "Echo", "alive", patience)
}

func stream(ctx context.Context, connection *grpc.ClientConn) grpc.ClientStream {
	many, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/wire.Peer/Many")
	fail(err)
	fail(many.SendMsg(&wrappers.BytesValue{}))
	fail(many.CloseSend())
	return many
}

// all reads a stream to its end.
func all(connection *grpc.ClientConn, lines *json.Encoder) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	many := stream(ctx, connection)
	got := outcome{Call: "stream"}
	for {
		message := new(wrappers.BytesValue)
		err := many.RecvMsg(message)
		if err != nil {
			if err != io.EOF {
				got.Code = status.Code(err).String()
			}
			break
		}
		got.Count++
		got.Bytes += len(message.Value)
	}
	fail(lines.Encode(got))
}

// some has had enough after the first message.
func some(connection *grpc.ClientConn, lines *json.Encoder) {
	ctx, cancel := context.WithCancel(context.Background())
	many := stream(ctx, connection)
	fail(many.RecvMsg(new(wrappers.BytesValue)))
	cancel()
	var err error
	for err == nil {
		err = many.RecvMsg(new(wrappers.BytesValue))
	}
	fail(lines.Encode(outcome{Call: "cancelled stream", Code: status.Code(err).String()}))
}
