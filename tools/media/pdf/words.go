// Messages to a model about a document that cannot be read.

package pdf

import (
	"errors"

	"github.com/toold/toold/tools/exec/sandbox"
	"github.com/toold/toold/tools/fault"
)

// Fault returns the fault for an error of Count or Text; it returns any other error unchanged.
// subject names the document; kind is the fault's kind if the document itself is the cause.
func Fault(err error, subject string, kind fault.Kind) error {
	var found *fault.Error
	if _, ok := errors.AsType[*sandbox.UnavailableError](err); ok {
		return fault.Failedf("sandbox_unavailable", "The reader of PDF was not started: %v.", err)
	}
	if _, ok := errors.AsType[*StartError](err); ok {
		return fault.Failedf("start_failed", "The reader of PDF could not be started: %v.", err)
	}
	if damaged, ok := errors.AsType[*DamagedError](err); ok {
		found = fault.Failedf("damaged_file", "%s cannot be read: %s. Get an undamaged copy, or try another program through Bash.", subject, damaged.Why)
	}
	if errors.Is(err, ErrEncrypted) {
		found = fault.Failedf("encrypted_file", "%s is encrypted and cannot be read without its password. Ask for a copy that is not; with the password, qpdf --decrypt makes one.", subject)
	}
	if found == nil {
		return err
	}
	found.Kind = kind
	return found
}
