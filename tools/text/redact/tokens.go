// Secrets that are known by their beginning. The forms are those that the services document, or that their own scanners
// look for.

package redact

import "strings"

// A class is a set of bytes.
type class [256]bool

// classOf makes a class of ranges like "az09" and single bytes.
func classOf(ranges, single string) *class {
	var c class
	for i := 0; i+1 < len(ranges); i += 2 {
		for b := int(ranges[i]); b <= int(ranges[i+1]); b++ {
			c[b] = true
		}
	}
	for i := range len(single) {
		c[single[i]] = true
	}
	return &c
}

var (
	alnum   = classOf("azAZ09", "")
	word    = classOf("azAZ09", "_")
	dashed  = classOf("azAZ09", "_-")
	dotted  = classOf("azAZ09", "_-.")
	capital = classOf("AZ09", "")
	hex     = classOf("afAF09", "")
)

// A token is a form: a prefix at the beginning of a word, and a run of a class behind it.
type token struct {
	kind, prefix string
	of           *class
	least        int
	most         int  // 0: any; only of a class without signs, so that no other match can shorten the run
	digit        bool // the run has one, which keeps words of examples out
}

var tokens = []token{
	{"aws key", "AKIA", capital, 16, 16, false},
	{"aws key", "ASIA", capital, 16, 16, false},
	{"github token", "ghp_", alnum, 36, 0, true},
	{"github token", "gho_", alnum, 36, 0, true},
	{"github token", "ghu_", alnum, 36, 0, true},
	{"github token", "ghs_", alnum, 36, 0, true},
	{"github token", "ghr_", alnum, 36, 0, true},
	{"github token", "github_pat_", word, 50, 0, true},
	{"gitlab token", "glpat-", dashed, 20, 0, true},
	{"gitlab token", "gldt-", dashed, 20, 0, true},
	{"gitlab token", "glrt-", dashed, 20, 0, true},
	{"gitlab token", "glcbt-", dashed, 20, 0, true},
	{"slack token", "xoxa-", dashed, 20, 0, true},
	{"slack token", "xoxb-", dashed, 20, 0, true},
	{"slack token", "xoxe-", dashed, 20, 0, true},
	{"slack token", "xoxo-", dashed, 20, 0, true},
	{"slack token", "xoxp-", dashed, 20, 0, true},
	{"slack token", "xoxr-", dashed, 20, 0, true},
	{"slack token", "xoxs-", dashed, 20, 0, true},
	{"slack token", "xapp-", dashed, 20, 0, true},
	{"google key", "AIza", dashed, 35, 0, true},
	{"google key", "ya29.", dashed, 20, 0, true},
	{"google key", "GOCSPX-", dashed, 20, 0, true},
	{"stripe key", "sk_live_", alnum, 16, 0, true},
	{"stripe key", "sk_test_", alnum, 16, 0, true},
	{"stripe key", "rk_live_", alnum, 16, 0, true},
	{"stripe key", "whsec_", alnum, 24, 0, true},
	{"anthropic key", "sk-ant-", dashed, 20, 0, true},
	{"openai key", "sk-proj-", dashed, 20, 0, true},
	{"openai key", "sk-svcacct-", dashed, 20, 0, true},
	{"openai key", "sk-admin-", dashed, 20, 0, true},
	{"openai key", "sk-or-v1-", dashed, 32, 0, true},
	{"openai key", "sk-", alnum, 32, 0, true},
	{"npm token", "npm_", alnum, 36, 0, true},
	{"pypi token", "pypi-", dashed, 50, 0, true},
	{"token", "hf_", alnum, 30, 0, true},
	{"token", "gsk_", alnum, 40, 0, true},
	{"token", "dckr_pat_", dashed, 20, 0, true},
	{"token", "dop_v1_", hex, 64, 0, true},
	{"token", "hvs.", dashed, 24, 0, true},
	{"token", "lin_api_", alnum, 32, 0, true},
	{"token", "shpat_", hex, 32, 0, true},
	{"token", "SG.", dotted, 60, 0, true},
	{"token", "AGE-SECRET-KEY-1", capital, 58, 0, false},
}

// byFirst are the tokens by the first byte of their prefixes.
var byFirst = func() (first [256][]token) {
	for _, t := range tokens {
		first[t.prefix[0]] = append(first[t.prefix[0]], t)
	}
	return first
}()

// seconds are the second bytes of what a first one can begin, so that most words are passed at the cost of two bytes.
var seconds = func() (second [256]class) {
	for _, t := range tokens {
		second[t.prefix[0]][t.prefix[1]] = true
	}
	second['e']['y'] = true
	return second
}()

// token returns the end and the kind of the token that begins at a place; end 0: none does. The place is the beginning of a
// word.
func (s *scanner) token(at int) (end int, kind string) {
	text := s.text
	if at+1 >= len(text) || !seconds[text[at]][text[at+1]] {
		return 0, ""
	}
	for i := range byFirst[text[at]] {
		t := &byFirst[text[at]][i]
		if !strings.HasPrefix(text[at:], t.prefix) {
			continue
		}
		begin := at + len(t.prefix)
		end := s.run(tokenRun, begin, t.of)
		n := end - begin
		if n >= t.least && (t.most == 0 || n <= t.most) && (!t.digit || s.digit(begin) < end) && !wordAt(text, end) {
			return end, t.kind
		}
	}
	if end := s.jwt(at); end > 0 {
		return end, kindJWT
	}
	return 0, ""
}

// jwtLeast are how long the parts of a JSON web token are at least: {"alg":1} is 13, and an encrypted one has five.
var jwtLeast = [...]int{10, 10, 8, 1, 1}

// jwt returns the end of the JSON web token that begins at a place: parts of base64 with dots between, the first an object.
func (s *scanner) jwt(at int) (end int) {
	if !strings.HasPrefix(s.text[at:], "eyJ") {
		return 0
	}
	begin := at
	for i, least := range jwtLeast {
		next := s.run(jwtRun+i, begin, dashed)
		if next-begin < least {
			break
		}
		if i >= 2 {
			end = next
		}
		if next == len(s.text) || s.text[next] != '.' {
			break
		}
		begin = next + 1
	}
	return end
}

func runEnd(text string, at int, of *class) int {
	for at < len(text) && of[text[at]] {
		at++
	}
	return at
}

func wordAt(text string, at int) bool { return at < len(text) && word[text[at]] }

func holdsDigit(text string) bool { return strings.ContainsAny(text, "0123456789") }
