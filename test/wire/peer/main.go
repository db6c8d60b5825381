// A peer for tests of the wire, on the libraries that runtimes and plugins use: grpc-go and Go's protobuf.
//
//	peer serve SOCKET [STREAMS]   a gRPC server; with a limit of streams
//	peer call SOCKET              calls a gRPC server; one line of JSON for each call
//	peer protobuf                 reads "TYPE HEX" lines, writes each message anew, or why it is none
package main

import (
	"fmt"
	"os"
	"strconv"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("serve, call or protobuf?"))
	}
	switch args := os.Args[2:]; {
	case os.Args[1] == "serve" && len(args) == 1:
		serve(args[0], 0)
	case os.Args[1] == "serve" && len(args) == 2:
		streams, err := strconv.Atoi(args[1])
		fail(err)
		serve(args[0], uint32(streams))
	case os.Args[1] == "call" && len(args) == 1:
		call(args[0])
	case os.Args[1] == "protobuf":
		readMessages()
	default:
		fail(fmt.Errorf("what is %q?", os.Args[1:]))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
