// The bound over a whole analysis, whatever is nested in what: how many words it
// walks. Each part of the analyzer counts what it is about to do. It counts
// instead of measuring time, so that a script always gets the same answer.

package shell

// maxWords is how many words an analysis walks, those of nested texts and of each
// reading of a wrapper's words included. A command counts as a few words more than
// it has, a text as one for every bytesOfWord bytes. The parser takes longest where
// it fails, deep inside what never ends: each byte of a nested text that does not
// parse counts as wordsOfFailure more. A script of 10,000 characters has about
// 4,000 words; the bound is reached after about 20 ms.
const (
	maxWords          = 40_000
	wordsOfCommand    = 4
	wordsOfAssignment = 2
	bytesOfWord       = 8
	wordsOfFailure    = 2
)

// walk counts n more words, and reports whether the analysis may go on. At the
// bound it fails with ErrTooInvolved, once; what is walked next returns at once,
// and what has been listed stays.
func (a *findings) walk(n int) bool {
	if a.walked > maxWords {
		return false
	}
	if a.walked += n; a.walked > maxWords {
		a.fail(ErrTooInvolved)
		return false
	}
	return true
}

// walkText does so for a text that is about to be parsed or searched.
func (a *findings) walkText(text string) bool { return a.walk(1 + len(text)/bytesOfWord) }
