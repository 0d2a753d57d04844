// Bounds on how often calls may begin.

package daemon_test

import (
	"strings"
	"testing"
)

// TestRate: calls over a bound wait for their place, or are told when to come back when that takes too long.
func TestRate(t *testing.T) {
	h := kit(t, 0, `, "limits": {"rate": {"Greet": "2/h", "mcp__kit__*": "1/h", "Change": "10/s"}}`)
	c := h.mixed(free())
	for _, id := range []string{"a", "b"} {
		c.use(id, "Greet", `{}`)
		c.until(id + " OK")
	}
	c.use("c", "Greet", `{}`)
	result := c.until("c ERROR rate_limited").GetToolResult()
	if message := result.GetError().GetMessage(); !strings.Contains(message, "2 times in 1h0m0s") || result.GetError().GetDetails().AsMap()["retry_after_seconds"].(float64) < 1000 {
		t.Errorf("told %q, %v", message, result.GetError().GetDetails())
	}
	c.use("look", "mcp__kit__look", `{}`)
	c.until("look OK")
	c.use("act", "mcp__kit__act", `{}`)
	c.until("act ERROR rate_limited")
	for i := range 12 { // two more than at once, which wait a fifth of a second
		id := string(rune('A' + i))
		c.use(id, "Change", `{}`)
		c.until(id + " OK")
	}
}
