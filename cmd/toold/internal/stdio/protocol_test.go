package stdio

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/toold/toold/daemon/contract"
)

// FuzzTake holds that whatever line a client sends, each line that answers it is JSON of the protocol, and the server lives.
func FuzzTake(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"x"}`, `{"jsonrpc":"2.0","id":"a","method":"ToolService/Execute","params":{"attach":{"roots":1}}}`,
		`{"jsonrpc":"2.0","method":"$/send","params":{"id":1,"message":{}}}`, `{"jsonrpc":"2.0","method":"$/cancel","params":[]}`, `[]`, `{`, `"`, `{"id":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var out bytes.Buffer
		s := &server{out: &writer{out: &out, broken: func() {}}, open: map[string]*exchange{}}
		if r, failed := parse(line); failed == nil && r.ID != nil && contract.Method(r.Method) != nil {
			if decode(r.Params, contract.New(contract.Method(r.Method).Input())) == nil {
				return // it would be sent to a daemon
			}
		}
		s.take(t.Context(), line)
		for text := range bytes.Lines(out.Bytes()) {
			var answer struct {
				JSONRPC string
				ID      any
				Method  string
				Error   *failure
			}
			if err := json.Unmarshal(text, &answer); err != nil || answer.JSONRPC != "2.0" || answer.Error == nil && answer.Method != methodError {
				t.Errorf("%q is answered by %s (%v)", line, text, err)
			}
		}
	})
}
