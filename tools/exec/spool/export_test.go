package spool

// Write appends p to channel ch, also within a line of the other channel.
func (o *Output) Write(ch Channel, p []byte) error { return o.write(ch, p, o.append) }
