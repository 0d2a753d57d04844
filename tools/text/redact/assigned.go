// Values that are assigned to names of secrets: NAME=value, "name": "value", --name value, and the
// credentials of an Authorization header. Two principles decide whether a value is a secret. Code
// that only mentions passwords stays unchanged. And shell syntax is never part of a value: the
// reader of the text must see what would run.

package redact

import (
	"slices"
	"strings"
)

// A credibility is how reliable a name is.
type credibility uint8

const (
	notCredential  credibility = iota
	likeCredential             // a program's name, such as apiKey
	environmental              // an environment variable's, such as API_KEY
	authorization              // a header's
)

// nameEnds are the endings of credentials' names, in capitals and without signs.
var nameEnds = []string{
	"PASSWORD", "PASSWD", "PASSPHRASE", "SECRET", "TOKEN", "APIKEY", "ACCESSKEY", "SECRETKEY", "PRIVATEKEY", "SIGNINGKEY", "ENCRYPTIONKEY",
	"MASTERKEY", "AUTHKEY", "ACCOUNTKEY", "CREDENTIAL", "CREDENTIALS",
}

// environmentEnds are further endings for environment variables.
var environmentEnds = []string{"_KEY", "_PASS", "_PAT", "_PWD", "_COOKIE", "_DSN"}

// otherEnds are endings of names that are not a credential's after all.
var otherEnds = []string{
	"PUBLICKEY", "CACHEKEY", "PRIMARYKEY", "FOREIGNKEY", "SORTKEY", "PARTITIONKEY", "PAGETOKEN", "NEXTTOKEN", "SYNCTOKEN", "CANCELLATIONTOKEN",
	"CONTINUATIONTOKEN",
}

// lastOfNames are the last letters of all of them, in either case, so that most names are rejected
// quickly.
var lastOfNames = func() (c class) {
	for _, ends := range [][]string{nameEnds, environmentEnds, {"AUTHORIZATION"}} {
		for _, end := range ends {
			c[end[len(end)-1]] = true
			c[strings.ToLower(end)[len(end)-1]] = true
		}
	}
	return c
}()

// longestName is how much of a name is compared, from its end.
const longestName = 64

func credentialName(name string) credibility {
	if name == "" || !lastOfNames[name[len(name)-1]] {
		return notCredential
	}
	name = name[max(0, len(name)-longestName):]
	bare := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_-. ", r) {
			return -1
		}
		return r
	}, strings.ToUpper(name))
	switch {
	case strings.HasSuffix(bare, "AUTHORIZATION"):
		return authorization
	case endsIn(bare, otherEnds):
		return notCredential
	case name == strings.ToUpper(name) && !strings.ContainsAny(name, "-. ") && (endsIn(bare, nameEnds) || endsIn(name, environmentEnds)):
		return environmental
	case endsIn(bare, nameEnds):
		return likeCredential
	}
	return notCredential
}

func endsIn(name string, ends []string) bool {
	return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(name, end) })
}

var (
	inName     = classOf("azAZ09", "_-.")
	inFlag     = classOf("azAZ09", "_-")
	inScheme   = classOf("azAZ", "")
	inPlain    = classOf("azAZ09", "_.~%+/=!@#^*-")
	inBearer   = classOf("azAZ09", "._~+/=-")
	blank      = classOf("", " \t")
	endsPlain  = classOf("", " \t\r\n&;,)]}\"'|<>\\`")
	keptQuotes = classOf("", " \t\r\n$`")
)

// assigned finds the value of an assignment whose = or : is at a place.
func (s *scanner) assigned(at int) (find, bool) {
	begin, direct, is := operator(s.text, at)
	if !is {
		return find{}, false
	}
	name, quoted := s.nameBefore(at)
	says := credentialName(name)
	if says == notCredential {
		return find{}, false
	}
	v := s.value(begin)
	text := v.judged()
	switch {
	case says == authorization:
		return s.bearer(v)
	case v.quote != "":
		return s.credential(v, plausible(text) || says == environmental && direct && enough(text))
	case says == environmental && direct && !quoted && s.text[at] == '=':
		return s.credential(v, v.plain() && enough(text))
	}
	isCode := strings.Contains(text, ".") && !direct || s.text[at] == ':' && quoted
	return s.credential(v, v.plain() && !isCode && len(text) >= 12 && plausible(text))
}

// operator returns the position after an assignment sign, whether the value follows directly, and
// whether it is an assignment at all and not a comparison.
func operator(text string, at int) (begin int, direct, is bool) {
	begin = at + 1
	switch next := strings.TrimPrefix(text[at:min(len(text), at+2)], text[at:at+1]); {
	case text[at] == '=' && next == ">":
		begin++
	case next == "=", next == "~", next == ":": // :=, which is handled at the =, and comparisons
		return 0, false, false
	}
	if at > 0 && strings.IndexByte("=!<>+", text[at-1]) >= 0 {
		return 0, false, false
	}
	end := runEnd(text, begin, blank)
	return end, end == begin, true
}

// nameBefore returns the assigned name, and whether it is in quotes.
func (s *scanner) nameBefore(at int) (name string, quoted bool) {
	text, from := s.text, s.done
	if at > from && text[at] == '=' && text[at-1] == ':' {
		at--
	}
	for at > from && blank[text[at-1]] {
		at--
	}
	end := at
	for at > from && (text[at-1] == '"' || text[at-1] == '\'' || text[at-1] == '\\') && end-at < 2 {
		at--
	}
	quoted, end = at < end, at
	for at > from && inName[text[at-1]] && end-at <= longestName {
		at--
	}
	return strings.TrimLeft(text[at:end], "-."), quoted
}

// flag finds the value of --name value.
func (s *scanner) flag(at int) (find, bool) {
	if !strings.HasPrefix(s.text[at:], "--") || at > s.done && strings.IndexByte(" \t\n\"'[,", s.text[at-1]) < 0 {
		return find{}, false
	}
	end := runEnd(s.text, at+2, inFlag)
	begin := runEnd(s.text, end, blank)
	if begin == end || credentialName(s.text[at+2:end]) == notCredential {
		return find{}, false
	}
	v := s.value(begin)
	text := v.judged()
	return s.credential(v, (v.quote != "" || v.plain()) && plausible(text) && text[0] != '-')
}

// A value is what may be a secret.
type value struct {
	text       string
	start, end int
	quote      string // its quotes; empty: none
}

// longestJudged is how much of a value is examined: a text longer than any password is recognised
// soon.
const longestJudged = 256

func (v *value) judged() string { return v.text[v.start:min(v.end, v.start+longestJudged)] }

// value parses the value at a position. In quotes it is empty unless they are closed and no shell
// would expand anything in them.
func (s *scanner) value(at int) value {
	v := value{text: s.text, start: at, end: at}
	for _, quote := range []string{`"`, `'`, `\"`, `\'`} {
		if strings.HasPrefix(s.text[at:], quote) {
			v.quote = quote
			v.start += len(quote)
			v.end = v.start
			v.toQuote()
			return v
		}
	}
	v.end = s.run(plainRun, at, inPlain)
	return v
}

func (v *value) toQuote() {
	for end := v.start; end < len(v.text) && !keptQuotes[v.text[end]]; end++ {
		switch c := v.text[end]; {
		case strings.HasPrefix(v.text[end:], v.quote):
			v.end = end
			return
		case c == '"', c == '[' && strings.HasPrefix(v.text[end:], opening), c == '\'', c == '\\' && end+1 < len(v.text) && strings.IndexByte(`"'`, v.text[end+1]) >= 0:
			return
		case c == '\\' && end+1 < len(v.text) && !keptQuotes[v.text[end+1]]:
			end++
		}
	}
}

// plain reports whether a value without quotes ends where values do: it is not a call or an index.
func (v *value) plain() bool { return v.end == len(v.text) || endsPlain[v.text[v.end]] }

// credential returns the find of a value, if it is a secret, in its own form if it has one.
func (s *scanner) credential(v value, is bool) (find, bool) {
	if !is {
		return find{}, false
	}
	f := find{v.start, v.end, kindCredential}
	if end, kind := s.token(v.start); end == v.end {
		f.kind = kind
	}
	return f, true
}

// bearer finds the credentials after the scheme of an Authorization header.
func (s *scanner) bearer(v value) (find, bool) {
	at := v.start
	if scheme := runEnd(s.text, at, inScheme); scheme > at && scheme < len(s.text) && blank[s.text[scheme]] {
		at = runEnd(s.text, scheme, blank)
	}
	end := s.run(bearerRun, at, inBearer)
	if end-at < LeastValue || !(end == len(s.text) || endsPlain[s.text[end]]) || at == v.start && s.digit(at) >= end {
		return find{}, false
	}
	return find{at, end, kindAuthorization}, true
}

// plausible reports whether a text looks like a password or a token, and not like a word, a path,
// or a placeholder.
func plausible(text string) bool {
	return len(text) >= LeastValue && !standIn(text) && holdsDigit(text) && strings.ContainsFunc(text, isLetter) &&
		!strings.ContainsAny(text, " \t\r\n$`")
}

// enough is less strict than plausible: the value of an environment variable is probably not code.
func enough(text string) bool {
	return !standIn(text) && (len(text) >= LeastValue || len(text) >= 6 && holdsDigit(text)) && strings.ContainsFunc(text, isLetter)
}

func isLetter(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' }

// standIns are placeholders.
var standIns = []string{"undefined", "required", "optional", "changeme", "change-me", "disabled", "password", "placeholder", "replace-me", "your-token"}

// standIn reports whether a text is a path or a placeholder.
func standIn(text string) bool {
	if text == "" || strings.Trim(text, text[:1]) == "" || strings.IndexByte("{<%[(*", text[0]) >= 0 ||
		slices.ContainsFunc(standIns, func(word string) bool { return strings.EqualFold(word, text) }) {
		return true
	}
	for _, begin := range []string{"/", "./", "../", "~/", "file:", "http:", "https:"} {
		if strings.HasPrefix(text, begin) {
			// A secret key of AWS can begin with a slash: it has 40 characters, and a path of that length has an extension or a -.
			return !(begin == "/" && len(text) == 40 && runEnd(text, 0, base64) == 40 && holdsDigit(text))
		}
	}
	return false
}
