package memory

// What each command does. The sentences are those of BetaLocalFilesystemMemoryTool in @anthropic-ai/sdk, so that a model finds what
// it was trained with; sdk_test.go compares them.

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/toold/toold/tools/fault"
	"github.com/toold/toold/tools/fs/memstore"
	"github.com/toold/toold/tools/fs/workspace/text"
	"github.com/toold/toold/tools/text/ellipsis"
)

// maxLines is how many lines a file may have that is shown.
const maxLines = 999_999

func notFound(name string) error {
	return fault.Failedf("memory_not_found", "The path %s does not exist. Please provide a valid path.", name)
}

func exists(format, name string) error {
	return fault.Failedf("memory_exists", format, name)
}

// lookUp describes a file or directory that must be there.
func lookUp(f *memstore.Files, name string) (fs.FileInfo, error) {
	info, err := f.Lstat(path.Clean(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(name)
	}
	return info, err
}

func view(f *memstore.Files, in Input) (*plan, error) {
	info, err := lookUp(f, in.Path)
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return viewDir(f, in.Path, info.Size())
	case !info.Mode().IsRegular():
		return nil, fault.Failedf("memory_path", "Unsupported file type for %s", in.Path)
	}
	raw, err := f.ReadFile(path.Clean(in.Path))
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.ToValidUTF8(string(raw), "\ufffd"), "\n")
	if len(lines) > maxLines {
		return nil, fault.Failedf("memory_lines", "File %s has too many lines (%d). Maximum is 999,999 lines.", in.Path, len(lines))
	}
	first := 0
	if len(in.ViewRange) == 2 {
		first, lines = cut(lines, in.ViewRange[0], in.ViewRange[1])
	}
	return &plan{text: fmt.Sprintf("Here's the content of %s with line numbers:\n%s", in.Path, numbered(lines, first))}, nil
}

// cut returns the lines of a range, and how many stand in front of them.
func cut(lines []string, from, to int64) (first int, some []string) {
	total := int64(len(lines))
	start := max(1, from) - 1
	switch {
	case to == -1:
		to = total
	case to < 0:
		to = max(0, total+to)
	}
	to = min(to, total)
	if start >= to {
		return 0, nil
	}
	return int(start), lines[start:to]
}

// numbered returns lines with their numbers; first is how many stand in front of them.
func numbered(lines []string, first int) string {
	shown := make([]string, len(lines))
	for i, line := range lines {
		shown[i] = fmt.Sprintf("%6d\t%s", first+i+1, line)
	}
	return strings.Join(shown, "\n")
}

// viewDir lists a directory and the directories in it.
func viewDir(f *memstore.Files, name string, size int64) (*plan, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "Here're the files and directories up to 2 levels deep in %s, excluding hidden items and node_modules:\n%s\t%s", name, sizeOf(size), name)
	var list func(dir string, depth int) error
	list = func(dir string, depth int) error {
		entries, err := f.ReadDir(path.Join(path.Clean(name), dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			info, err := e.Info()
			if err != nil || strings.HasPrefix(e.Name(), ".") || e.Name() == "node_modules" {
				continue
			}
			below := path.Join(dir, e.Name())
			switch {
			case info.IsDir():
				fmt.Fprintf(&b, "\n%s\t%s/%s/", sizeOf(info.Size()), name, below)
				if depth == 1 {
					if err := list(below, 2); err != nil {
						return err
					}
				}
			case info.Mode().IsRegular():
				fmt.Fprintf(&b, "\n%s\t%s/%s", sizeOf(info.Size()), name, below)
			}
		}
		return nil
	}
	err := list("", 1)
	return &plan{text: b.String()}, err
}

// sizeOf returns a number of bytes as the SDK writes it: 0B, 17B, 1.5K.
func sizeOf(bytes int64) string {
	size, unit := float64(bytes), 0
	for size >= 1024 && unit < 3 {
		size, unit = size/1024, unit+1
	}
	digits := 1
	if size == math.Trunc(size) {
		digits = 0
	}
	return strconv.FormatFloat(math.Floor(size*10+0.5)/10, 'f', digits, 64) + "BKMG"[unit:unit+1]
}

func create(f *memstore.Files, in Input) (*plan, error) {
	name := path.Clean(in.Path)
	switch _, err := f.Lstat(name); {
	case err == nil:
		return nil, exists("File %s already exists", in.Path)
	case !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	return &plan{
		text: "File created successfully at: " + in.Path, diff: func() string { return text.Patch(name, "", *in.FileText) },
		do: func(f *memstore.Files) error { return f.Write(name, []byte(*in.FileText)) },
	}, nil
}

// content returns what a file holds that is to be edited.
func content(f *memstore.Files, name string) (string, error) {
	info, err := lookUp(f, name)
	switch {
	case err != nil:
		return "", err
	case !info.Mode().IsRegular():
		return "", fault.Failedf("memory_path", "The path %s is not a file.", name)
	}
	raw, err := f.ReadFile(path.Clean(name))
	return string(raw), err
}

// edited returns the plan of an edit.
func edited(name, old, next, result string) *plan {
	name = path.Clean(name)
	return &plan{
		text: result, diff: func() string { return text.Patch(name, old, next) },
		do: func(f *memstore.Files) error { return f.Write(name, []byte(next)) },
	}
}

// maxQuoted is how many bytes of old_str an error repeats.
const maxQuoted = 1000

func replace(f *memstore.Files, in Input) (*plan, error) {
	old, err := content(f, in.Path)
	if err != nil {
		return nil, err
	}
	wanted, shown := *in.OldStr, ellipsis.Bytes(*in.OldStr, maxQuoted)
	found := occurrences(old, wanted)
	switch len(found) {
	case 0:
		return nil, fault.Failedf("no_match", "No replacement was performed, old_str `%s` did not appear verbatim in %s.", shown, in.Path)
	case 1:
	default:
		return nil, fault.Failedf("multiple_matches", "No replacement was performed. Multiple occurrences of old_str `%s` in lines: %s. Please ensure it is unique", shown, joined(slices.Compact(found)))
	}
	var put string
	if in.NewStr != nil {
		put = *in.NewStr
	}
	next := strings.Replace(old, wanted, put, 1)
	lines := strings.Split(next, "\n")
	first, last := max(0, found[0]-3), min(len(lines), found[0]+2)
	result := "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n" + numbered(lines[first:last], first)
	return edited(in.Path, old, next, result), nil
}

// occurrences returns the numbers of the lines in which text has wanted, at most one more than an error names. An empty text is in
// each line once.
func occurrences(text, wanted string) (lines []int) {
	line := 1
	for {
		at := strings.Index(text, wanted)
		if wanted == "" {
			at = 0
		}
		if at < 0 {
			return lines
		}
		line += strings.Count(text[:at], "\n")
		if lines = append(lines, line); len(lines) > maxJoined {
			return lines
		}
		step := at + 1
		if wanted == "" {
			end := strings.IndexByte(text, '\n')
			if end < 0 {
				return lines
			}
			step = end + 1
		}
		line += strings.Count(text[at:step], "\n")
		text = text[step:]
	}
}

// maxJoined is how many line numbers an error names.
const maxJoined = 100

func joined(lines []int) string {
	texts := make([]string, 0, maxJoined)
	for _, line := range lines[:min(len(lines), maxJoined)] {
		texts = append(texts, strconv.Itoa(line))
	}
	if len(lines) > maxJoined {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

func insert(f *memstore.Files, in Input) (*plan, error) {
	old, err := content(f, in.Path)
	if err != nil {
		return nil, err
	}
	lines, at := strings.Split(old, "\n"), *in.InsertLine
	if at < 0 || at > int64(len(lines)) {
		return nil, fault.Failedf("memory_lines", "Invalid `insert_line` parameter: %d. It should be within the range of lines of the file: [0, %d]", at, len(lines))
	}
	next := strings.Join(append(lines[:at:at], append([]string{strings.TrimSuffix(*in.InsertText, "\n")}, lines[at:]...)...), "\n")
	return edited(in.Path, old, next, fmt.Sprintf("The file %s has been edited.", in.Path)), nil
}

func remove(f *memstore.Files, in Input) (*plan, error) {
	name := path.Clean(in.Path)
	if name == memstore.Root {
		return nil, fault.Failedf("memory_path", "Cannot delete the /memories directory itself")
	}
	if _, err := f.Lstat(name); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("memory_not_found", "The path %s does not exist", in.Path)
	} else if err != nil {
		return nil, err
	}
	return &plan{text: "Successfully deleted " + in.Path, do: func(f *memstore.Files) error { return f.Remove(name) }}, nil
}

func rename(f *memstore.Files, in Input) (*plan, error) {
	from, to := path.Clean(in.OldPath), path.Clean(in.NewPath)
	if from == memstore.Root {
		return nil, fault.Failedf("memory_path", "Cannot rename the /memories directory itself")
	}
	if _, err := f.Lstat(to); err == nil {
		return nil, exists("The destination %s already exists", in.NewPath)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if _, err := f.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Failedf("memory_not_found", "The path %s does not exist", in.OldPath)
	} else if err != nil {
		return nil, err
	}
	if strings.HasPrefix(to, from+"/") {
		return nil, fault.Failedf("memory_path", "The directory %s cannot be moved to %s, which is in it.", in.OldPath, in.NewPath)
	}
	return &plan{
		text: fmt.Sprintf("Successfully renamed %s to %s", in.OldPath, in.NewPath),
		do:   func(f *memstore.Files) error { return f.Rename(from, to) },
	}, nil
}
