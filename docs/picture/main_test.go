package main

import (
	"encoding/xml"
	"io"
	"strings"
	"testing"
)

// TestDraw: the timeline becomes an image that is XML, with all its lines and nothing else of the output.
func TestDraw(t *testing.T) {
	output := "demo-1 ended\n\nThe turn over time, by batch:\nbatch  0──2 s\n  1  Read  a<b>  █  ✓ ok 1 ms\n  2  Bash  rm    ··  ✗ denied\n\n2 calls\n"
	var b strings.Builder
	if err := draw(strings.NewReader(output), &b, "The turn over time"); err != nil {
		t.Fatal(err)
	}
	image := b.String()
	for decoder := xml.NewDecoder(strings.NewReader(image)); ; {
		if _, err := decoder.Token(); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"batch", "a&lt;b&gt;", "#7ec97e", "#e07b7b", "denied"} {
		if !strings.Contains(image, part) {
			t.Errorf("no %q in\n%s", part, image)
		}
	}
	if strings.Contains(image, "demo-1") || strings.Contains(image, "2 calls") {
		t.Errorf("more than the timeline:\n%s", image)
	}
	b.Reset()
	if err := draw(strings.NewReader(output+"\nThe same:\nlast  0──1 s\n"), &b, "The turn", "The same"); err != nil {
		t.Fatal(err)
	}
	if image := b.String(); !strings.Contains(image, "by batch:") || !strings.Contains(image, "last") {
		t.Errorf("not both timelines with their headings:\n%s", image)
	}
	if err := draw(strings.NewReader("nothing"), io.Discard, "The turn over time"); err == nil {
		t.Error("an output without a timeline is drawn")
	}
}
