// gRPC statuses, for what concerns a stream and never for one tool use. Each carries an ErrorInfo,
// and for a field a BadRequest.

package daemon
