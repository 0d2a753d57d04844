package mirror

// MovedKey is the key under which the program that builds a session's journal in another place notes, as the JSON of a
// [Moved], that the session could not be moved whole. The daemon that serves it there tells the client, and the model with the
// result of its next call.
const MovedKey = "moved"

// Moved is what a session has lost on its way to another place.
type Moved struct {
	Code    string // of the notice, and of the results of calls that were under way; lower_snake_case
	Message string // whole sentences, for the user and the model
}
