package main

import (
	"encoding/json"
	"fmt"
	"net"
	"path"
	"strings"
	"time"

	"github.com/golang/protobuf/ptypes/wrappers"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const largest = 64 << 20

// What a request asks for beside its method, as JSON.
type wish struct {
	Code  codes.Code
	Text  string
	Count int
	Size  int
}

// serve answers any service: what happens is decided by the method's last name.
func serve(socket string, streams uint32) {
	listener, err := net.Listen("unix", socket)
	fail(err)
	options := []grpc.ServerOption{
		grpc.UnknownServiceHandler(answer),
		grpc.MaxRecvMsgSize(largest),
		grpc.MaxSendMsgSize(largest),
	}
	if streams > 0 {
		options = append(options, grpc.MaxConcurrentStreams(streams))
	}
	fmt.Println("ready")
	fail(grpc.NewServer(options...).Serve(listener))
}

func answer(_ interface{}, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	request := new(wrappers.BytesValue)
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	send := func(bytes []byte) error { return stream.SendMsg(&wrappers.BytesValue{Value: bytes}) }
	if path.Base(method) == "Echo" {
		return send(request.Value)
	}
	var wanted wish
	if err := json.Unmarshal(request.Value, &wanted); err != nil {
		return status.Error(codes.InvalidArgument, err.Error())
	}
	switch path.Base(method) {
	case "Fail":
		return status.Error(wanted.Code, wanted.Text)
	case "FailLate":
		if err := send([]byte("first")); err != nil {
			return err
		}
		return status.Error(wanted.Code, wanted.Text)
	case "Many":
		for i := 0; i < wanted.Count; i++ {
			if err := send([]byte(strings.Repeat(string(rune('a'+i%26)), wanted.Size))); err != nil {
				return err
			}
		}
		return nil
	case "Sleep": // until the caller has had enough
		<-stream.Context().Done()
		return status.FromContextError(stream.Context().Err()).Err()
	case "Facts":
		facts, err := factsOf(stream)
		if err != nil {
			return err
		}
		return send(facts)
	}
	return status.Errorf(codes.Unimplemented, "unknown method %s", method)
}

// factsOf tells what the caller sent beside its message.
func factsOf(stream grpc.ServerStream) ([]byte, error) {
	fields, _ := metadata.FromIncomingContext(stream.Context())
	facts := map[string]interface{}{"fields": fields}
	if deadline, ok := stream.Context().Deadline(); ok {
		facts["leftMs"] = time.Until(deadline).Milliseconds()
	}
	return json.Marshal(facts)
}
