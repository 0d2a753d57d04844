package settings

// Traces is where spans of calls are sent. It is read when the daemon starts.
type Traces struct {
	Endpoint string // an http or https URL; empty: what the environment says
	Content  bool   // spans have inputs and outputs
}

// collector is the address of an OpenTelemetry collector.
func collector(field *string) scalar[string] {
	return scalar[string]{
		parse: simple("an http or https URL without user name or password", func(n *node) (string, bool) {
			u := webURL(n.word)
			return n.word, n.kind == text && u != nil && u.Hostname() != "" && u.User == nil
		}),
		text: func(url string) string { return url },
		set:  func(v value[string]) { *field = v.is },
	}
}
