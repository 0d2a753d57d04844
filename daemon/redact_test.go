package daemon_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/toold/toold/daemon"
)

// TestLogWithoutSecrets: whatever a secret is logged as, it is not written, and the rest of the line is.
func TestLogWithoutSecrets(t *testing.T) {
	t.Setenv("MY_TOKEN", "value-1-of-mine")
	dir := t.TempDir()
	user := filepath.Join(dir, "settings.json")
	write := func(text string) {
		if err := os.WriteFile(user, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{}`)
	var out bytes.Buffer
	config := zap.NewProductionEncoderConfig()
	config.TimeKey = ""
	core := zapcore.NewCore(zapcore.NewJSONEncoder(config), zapcore.AddSync(&out), zap.InfoLevel)
	log := daemon.Redacted(zap.New(core), user, filepath.Join(dir, "none"))
	jwt := "ey" + "JhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	for _, test := range []struct {
		log  func()
		want string
	}{
		{func() { log.Info("plain", zap.Int("n", 1), zap.Duration("d", time.Second)) }, `{"level":"info","msg":"plain","n":1,"d":1}`},
		{func() { log.Info("got " + jwt + " value-1-of-mine") }, `{"level":"info","msg":"got [redacted: jwt] [redacted: value]"}`},
		{func() { log.Warn("m", zap.String("text", "Authorization: Bearer abcdefgh")) }, `{"level":"warn","msg":"m","text":"Authorization: Bearer [redacted: authorization]"}`},
		{func() { log.Info("m", zap.String("password", "hunter22")) }, `{"level":"info","msg":"m","password":"[redacted: credential]"}`},
		{func() { log.Info("m", zap.Error(errors.New("dial x://u:hunter2@h\nno"))) }, `{"level":"info","msg":"m","error":"dial x://u:[redacted: password]@h\nno"}`},
		{func() { log.Info("m", zap.ByteString("b", []byte(jwt))) }, `{"level":"info","msg":"m","b":"[redacted: jwt]"}`},
		{func() { log.Info("m", zap.Strings("list", []string{"a", jwt})) }, `{"level":"info","msg":"m","list":["a","[redacted: jwt]"]}`},
		{func() {
			log.Info("m", zap.Any("any", map[string]any{"a": 1.5, "token": "hunter22", "in": []string{jwt}}))
		}, `{"level":"info","msg":"m","any":{"a":1.5,"in":["[redacted: jwt]"],"token":"[redacted: credential]"}}`},
		{func() { log.Info("m", zap.Any("none", make(chan int)), zap.Error(nil)) }, ``},
		{func() { log.With(zap.String("at", jwt)).Info("m") }, `{"level":"info","msg":"m","at":"[redacted: jwt]"}`},
		{func() { log.Debug(jwt) }, "-"},
		{func() { log.Info("ACME-1") }, `{"level":"info","msg":"ACME-1"}`},
		{func() {
			write(`{"redact": ["ACME-\\d"], "sandbox": {"credentials": {"envVars": ["INNER"]}}}`)
			log.Info("ACME-1")
		}, `{"level":"info","msg":"[redacted: pattern]"}`},
	} {
		out.Reset()
		test.log()
		got := strings.TrimSpace(out.String())
		switch {
		case test.want == "-" && got != "", test.want != "-" && !json.Valid([]byte(got)):
			t.Errorf("written is %s", got)
		case test.want != "" && test.want != "-" && got != test.want:
			t.Errorf("written is\n%s\nwant\n%s", got, test.want)
		}
	}
}
