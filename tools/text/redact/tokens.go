// Secrets that are recognised by their beginning. The forms are those that the services document, or
// that their own scanners look for.

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
	noDigit = classOf("\x00/:\xff", "")
)

// A token is a form: a prefix at the beginning of a word, and a run of a class after it.
type token struct {
	kind, prefix string
	of           *class
	least        int
	most         int  // 0: any; only of a class without signs, so that no other match can shorten the run
	digit        bool // the run has one, unlike most words of examples
}

// forms of tokens, each with its prefixes. The first one that fits counts.
var tokenForms = []token{
	{"aws key", "AKIA ASIA", capital, 16, 16, false},
	{"github token", "ghp_ gho_ ghu_ ghs_ ghr_", alnum, 36, 0, true},
	{"github token", "github_pat_", word, 50, 0, true},
	{"gitlab token", "glpat- gldt- glrt- glcbt-", dashed, 20, 0, true},
	{"slack token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xapp-", dashed, 20, 0, true},
	{"google key", "AIza", dashed, 35, 0, true},
	{"google key", "ya29. GOCSPX-", dashed, 20, 0, true},
	{"stripe key", "sk_live_ sk_test_ rk_live_", alnum, 16, 0, true},
	{"stripe key", "whsec_", alnum, 24, 0, true},
	{"anthropic key", "sk-ant-", dashed, 20, 0, true},
	{"openai key", "sk-proj- sk-svcacct- sk-admin-", dashed, 20, 0, true},
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

// byFirst are the forms, one for each prefix, by its first byte. seconds are the second bytes of what
// a first one can begin, so that most words are passed at the cost of two bytes.
var byFirst, seconds = func() (first [256][]token, second [256]class) {
	for _, t := range tokenForms {
		for prefix := range strings.FieldsSeq(t.prefix) {
			t.prefix = prefix
			first[prefix[0]] = append(first[prefix[0]], t)
			second[prefix[0]][prefix[1]] = true
		}
	}
	second['e']['y'] = true // of a JSON web token
	return first, second
}()

// token returns the end and the kind of the token that begins at a position, which is the beginning
// of a word; end 0: there is none.
func (s *scanner) token(at int) (end int, kind string) {
	text := s.text
	if at+1 >= len(text) || !seconds[text[at]][text[at+1]] {
		return 0, ""
	}
	for _, t := range byFirst[text[at]] {
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

// jwtLeast are the least lengths of the parts of a JSON web token: {"alg":1} has 13, and an encrypted
// token has five parts.
var jwtLeast = [...]int{10, 10, 8, 1, 1}

// jwt returns the end of the JSON web token that begins at a position: parts of base64 with dots
// between them, the first of which is an object. 0: there is none.
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
