// The bill of materials of a binary (CycloneDX 1.5), from what the Go linker has written into it.

package main

import (
	"debug/buildinfo"
	"encoding/json"
	"strings"
	"time"
)

type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type    string `json:"type"`
	Ref     string `json:"bom-ref"`
	Name    string `json:"name"`
	Version string `json:"version"`
	PURL    string `json:"purl,omitempty"`
}

// bill returns the bill of materials of a program. The modules are in the order of their names.
func (r *release) bill(program string) ([]byte, error) {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return nil, err
	}
	made := bill{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{
		Timestamp: r.made.Format(time.RFC3339), Component: component{Type: "application", Ref: "toold", Name: "toold", Version: r.version},
	}}
	compiler := strings.TrimPrefix(info.GoVersion, "go")
	made.Components = []component{module("stdlib", "v"+compiler)}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		made.Components = append(made.Components, module(m.Path, m.Version))
	}
	text, err := json.MarshalIndent(made, "", "  ")
	return append(text, '\n'), err
}

func module(path, version string) component {
	at := "pkg:golang/" + path + "@" + version
	return component{Type: "library", Ref: at, Name: path, Version: version, PURL: at}
}
