// Exit codes that are an answer and not a failure.

package shell

// Benign reports whether the exit code of a command whose last program is last
// (see [Analysis.Last]) is an answer rather than a failure, and which answer.
// printed is the number of bytes on standard output: find answers 1 also when
// it found nothing at all for want of permission, which is a failure.
func Benign(last string, code int, printed int64) (meaning string, ok bool) {
	if code != 1 {
		return "", false
	}
	switch last {
	case "grep", "rg", "egrep", "fgrep", "zgrep", "git grep":
		return "no match", true
	case "diff", "cmp", "git diff":
		return "they differ", true
	case "test", "[", "[[":
		return "false", true
	case "find":
		return "some directories could not be read", printed > 0
	case "pgrep":
		return "no such process", true
	case "jq -e":
		return "the last value was false or null", true
	case "which", "command -v", "type":
		return "not found", true
	}
	return "", false
}
