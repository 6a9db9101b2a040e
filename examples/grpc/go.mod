module github.com/p2pdc/p2pdc/examples/grpc

go 1.26.0

require (
	github.com/p2pdc/p2pdc v0.0.0
	google.golang.org/grpc v1.76.0
)

require (
	github.com/mattn/go-colorable v0.1.14 // indirect
	github.com/mattn/go-isatty v0.0.20 // indirect
	github.com/rs/zerolog v1.35.1 // indirect
	golang.org/x/net v0.61.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20250804133106-a7a43d27e69b // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)

replace github.com/p2pdc/p2pdc => ../..
