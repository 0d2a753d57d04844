// gRPC statuses, for what concerns a stream and never for one tool use. Each carries an ErrorInfo, and for a field a
// BadRequest. It does not know which mistakes there are: who finds one names it.

package daemon
