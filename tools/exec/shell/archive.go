// Programs of which a few uses only read, too plain for a list of flags: tar that
// lists an archive, openssl that shows a certificate, and yq. Sources: tar(1) of GNU
// tar 1.34, openssl-x509(1) of 3.0, and the manuals of both programs named yq.

package shell

import (
	"regexp"
	"slices"
	"strings"
)

// narrow judges a call of one of the programs here; ok is false when it is none of
// them, or asks only for the version.
func (a *listing) narrow(name string, args []Word) (why string, ok bool) {
	if len(args) == 1 && args[0].Literal && (args[0].dashed() || args[0].Text == "version") {
		return "", false
	}
	switch name {
	case "tar":
		if !a.lists(args) {
			why = "only `tar tf FILE`, with v, z, j or J, is known to only read"
		}
	case "openssl":
		why = a.certificate(args)
	case "yq":
		if !a.yq(args) {
			why = "only a plain path, as `.a.b[0]`, with -r, -P, -e or -c is known to only read"
		}
	default:
		return "", false
	}
	if why != "" {
		a.unlisted()
	}
	return why, true
}

// lists passes `tar tf FILE [MEMBER ...]`, whose file may be compressed: tar starts
// gzip and its like then. A name with a colon is on another machine.
func (a *listing) lists(args []Word) bool {
	if len(args) < 2 || !args[0].Literal {
		return false
	}
	letters := strings.TrimPrefix(args[0].Text, "-")
	if strings.Trim(letters, "tvzjJf") != "" || !strings.Contains(letters, "t") || !strings.HasSuffix(letters, "f") || strings.Count(letters, "f") != 1 {
		return false
	}
	if slices.ContainsFunc(args[1:], func(w Word) bool {
		return !w.Literal || strings.Contains(w.Text, ":") || len(w.Text) > 1 && w.Text[0] == '-'
	}) {
		return false
	}
	return a.readOperand(args[1]) == ""
}

// certificateFlags of openssl x509 show what is in a certificate.
const certificateFlags = " -noout -text -subject -issuer -dates -enddate -startdate -fingerprint -serial -pubkey -modulus -sha256 -sha1 -ocsp_uri -email -purpose "

func (a *listing) certificate(args []Word) (why string) {
	if len(args) == 0 || args[0].Text != "x509" {
		return "only `x509`, which shows a certificate, and `version` are known to only read"
	}
	for i := 1; i < len(args); i++ {
		switch w := args[i]; {
		case w.Text == "-in" && i+1 < len(args) && args[i+1].Literal && !strings.Contains(args[i+1].Text, ":"):
			i++
			if why := a.readOperand(args[i]); why != "" {
				return why
			}
		case !w.in(certificateFlags):
			return "`" + w.Text + "` is not among the flags of `x509` known to be harmless"
		}
	}
	return ""
}

// yqPath is an expression that only follows names and numbers.
var yqPath = regexp.MustCompile(`^(\.[A-Za-z0-9_-]*(\[[0-9]*\])*)+( \| (keys|length|type))?$`)

func (a *listing) yq(args []Word) bool {
	for len(args) > 0 && args[0].in(" -r -P -e -c ") {
		args = args[1:]
	}
	if len(args) == 0 || !args[0].Literal || !yqPath.MatchString(args[0].Text) {
		return false
	}
	for _, w := range args[1:] {
		if !w.Literal || w.dashed() || a.readOperand(w) != "" {
			return false
		}
	}
	return true
}
