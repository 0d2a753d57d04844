package settings

import (
	"crypto/sha256"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	maxScopes = 512  // kept; more than the sessions that a daemon has by default
	maxFiles  = 4096 // kept; enough for as many scopes of a root each
)

// SessionText is what the session's own settings are called in messages.
const SessionText = "options.settings_json"

// A Store reads settings files. It is safe for concurrent use, and runs nothing of its own. What is there it looks at each
// time; where nothing was, it has the kernel note that something has come, if it can. Close releases that.
type Store struct {
	sources Sources
	absence absence
	clock   func() time.Time
	managed watched[[]string] // the names in settings.d
	trust   watched[book]
	writing sync.Mutex // one writes at a time, of this process

	mu     sync.Mutex
	files  cache[place, *watched[facts]]
	scopes cache[scopeKey, *scoped]
}

// Open makes a store. It does not touch the files.
func Open(sources Sources) *Store { return open(sources, time.Now) }

// open makes a store that holds the times of files against a clock.
func open(sources Sources, clock func() time.Time) *Store {
	return &Store{
		sources: sources, clock: clock,
		managed: watched[[]string]{file: filepath.Join(sources.ManagedDir, "settings.d"), read: readDir, parse: parseNames, clock: clock},
		trust: watched[book]{file: sources.TrustFile, read: readFile, clock: clock, parse: func(data []byte) (*book, error) {
			return parseBook(sources.TrustFile, data)
		}},
		files: cache[place, *watched[facts]]{most: maxFiles}, scopes: cache[scopeKey, *scoped]{most: maxScopes},
	}
}

// Close releases what the kernel keeps for the store. Loads go on, and cost more.
func (s *Store) Close() { s.absence.shut() }

// A layer is a file as it counts for a scope.
type layer struct {
	place   place
	root    int  // index of the scope's root that it is a file of; only in level workspace
	silent  bool // it does not count, and is read only to warn of its rules
	stamp   stamp
	reading *reading[facts]
}

// A view is everything that a scope's settings are made of.
type view struct {
	layers  []layer // the highest first
	asked   bool    // a file sets whether Claude Code's files count
	imports bool    // they do
	trust   *reading[book]
	extra   *FileError // why there may be more managed files than could be read

	absent []string      // files and directories that are not there
	same   []func() bool // of each that is: it still is what it was
}

// note adds what was found of a file.
func note[T any](v *view, w *watched[T], found *reading[T], at stamp) {
	if at.absent() {
		v.absent = append(v.absent, w.file)
		return
	}
	v.same = append(v.same, func() bool {
		now, stamp := w.now()
		return now == found && stamp.device == at.device && stamp.inode == at.inode
	})
}

// unchanged reports whether all that was there still is what it was.
func (v *view) unchanged() bool {
	for _, same := range v.same {
		if !same() {
			return false
		}
	}
	return true
}

// equal reports whether nothing is different between two looks.
func (v *view) equal(o *view) bool {
	return v.trust == o.trust && v.extra == o.extra && slices.EqualFunc(v.layers, o.layers, func(a, b layer) bool {
		return a.place == b.place && a.reading == b.reading && a.stamp.device == b.stamp.device && a.stamp.inode == b.stamp.inode
	})
}

type scopeKey struct {
	roots   string
	session [sha256.Size]byte // of its text
	trusted bool
}

// scoped is what is kept of a scope.
type scoped struct {
	scope  Scope
	places []place // of the roots' files: rootFiles for each, and serversFile

	mu       sync.Mutex
	session  *layer // of the scope's own text
	view     view
	settings *Settings
	// generation is that of absence in which view was; 0: it would not be noticed if something came.
	generation uint64
}

// Load returns the settings that are in force for a scope now: a file that was saved before the call counts. As long as
// nothing is different it returns the same pointer.
func (s *Store) Load(scope Scope) *Settings { return s.load(s.scoped(scope)) }

// A Followed is a scope whose settings are loaded again and again.
type Followed struct {
	store *Store
	at    *scoped
}

// Follow returns the scope for loading. What Load keeps of it is shared.
func (s *Store) Follow(scope Scope) *Followed { return &Followed{s, s.scoped(scope)} }

// Load returns the settings of the scope as Store.Load does.
func (f *Followed) Load() *Settings { return f.store.load(f.at) }

func (s *Store) load(at *scoped) *Settings {
	at.mu.Lock()
	defer at.mu.Unlock()
	if at.session == nil {
		at.session, at.scope.Session = readSession(at.scope), "" // it can be long
	}
	var generation uint64
	if at.settings != nil { // most programs look once
		generation = s.absence.generation()
	}
	if generation != 0 && generation == at.generation && at.view.unchanged() {
		return at.settings
	}
	now := s.view(at)
	if at.settings == nil || !now.equal(&at.view) {
		at.settings = merge(at.scope, now, s.sources.Home)
	}
	at.view, at.generation = now, generation
	for _, path := range now.absent {
		if generation == 0 || !s.absence.cover(path) {
			at.generation = 0
			break
		}
	}
	return at.settings
}

// Read returns the settings as Load does, and keeps nothing of the scope.
func (s *Store) Read(scope Scope) *Settings { return s.load(newScoped(scope)) }

// Forget drops what Load has kept of a scope with a session's own text, which can be long: a later Load reads it again.
// Other scopes belong to no session, and stay.
func (s *Store) Forget(scope Scope) {
	if scope.Session == "" {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes.remove(keyOf(scope))
}

func keyOf(scope Scope) scopeKey {
	return scopeKey{strings.Join(scope.Roots, "\x00"), sha256.Sum256([]byte(scope.Session)), scope.Trusted}
}

func (s *Store) scoped(scope Scope) *scoped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.scopes.get(keyOf(scope), func() *scoped { return newScoped(scope) })
}

func newScoped(scope Scope) *scoped {
	at := &scoped{scope: scope}
	at.scope.Roots = unique(scope.Roots)
	for _, root := range at.scope.Roots {
		for _, name := range rootFiles {
			at.places = append(at.places, place{file: filepath.Join(root, name), base: root, level: workspace, claude: isClaude(name)})
		}
		at.places = append(at.places, place{file: filepath.Join(root, serversFile), base: root, level: workspace, servers: true})
	}
	return at
}

// unique returns the clean paths of roots, each once, in their order.
func unique(roots []string) []string {
	var out []string
	for _, root := range roots {
		if root = filepath.Clean(root); !slices.Contains(out, root) {
			out = append(out, root)
		}
	}
	return out
}

// readSession returns the layer of a scope's own text.
func readSession(scope Scope) *layer {
	l := &layer{place: place{file: SessionText, level: session}, reading: noFile}
	if len(scope.Roots) > 0 {
		l.place.base = scope.Roots[0]
	}
	if scope.Session == "" {
		return l
	}
	l.reading = &reading[facts]{err: tooLarge(SessionText)}
	if len(scope.Session) <= maxBytes {
		good, err := readFacts(l.place, []byte(scope.Session))
		if l.reading = (&reading[facts]{good: good}); err != nil {
			l.reading.err = asFileError(SessionText, "read", err)
		}
	}
	return l
}

// view looks at the files of a scope, the highest first.
func (s *Store) view(at *scoped) view {
	v := view{layers: make([]layer, 0, max(len(at.view.layers), len(at.places)+4))}
	imports := s.addManaged(&v)
	own := s.layer(&v, place{file: s.sources.User, base: filepath.Dir(s.sources.User), level: user})
	if imports == nil && own.reading.good != nil {
		imports = own.reading.good.flag(keyImport)
	}
	v.asked, v.imports = imports != nil, isOn(imports)
	v.layers = append(v.layers, *at.session)
	for i, p := range at.places {
		l := s.layer(&v, p)
		l.root, l.silent = i/(len(rootFiles)+1), p.claude && !v.imports
		v.layers = append(v.layers, l)
	}
	v.layers = append(v.layers, own)
	if v.imports && s.sources.ClaudeDir != "" {
		dir := s.sources.ClaudeDir
		v.layers = append(v.layers, s.layer(&v, place{file: filepath.Join(dir, "settings.json"), base: dir, level: user, claude: true}))
	}
	if s.sources.TrustFile != "" {
		var stamp stamp
		v.trust, stamp = s.trust.now()
		note(&v, &s.trust, v.trust, stamp)
	}
	return v
}

// addManaged adds the administrator's files, and returns whether they import Claude Code's; nil: they do not set it.
func (s *Store) addManaged(v *view) (imports *value[bool]) {
	dir := s.sources.ManagedDir
	if dir == "" {
		return nil
	}
	files := []string{filepath.Join(dir, "settings.json")}
	listing, stamp := s.managed.now()
	note(v, &s.managed, listing, stamp)
	v.extra = listing.err
	if listing.good != nil {
		for _, name := range *listing.good {
			files = append(files, filepath.Join(s.managed.file, name))
		}
	}
	for _, file := range files {
		l := s.layer(v, place{file: file, base: filepath.Dir(file), level: managed})
		v.layers = append(v.layers, l)
		if good := l.reading.good; good != nil && imports == nil {
			imports = good.flag(keyImport)
		}
	}
	return imports
}

// layer looks at the file of a place. A place without a file is an absent one.
func (s *Store) layer(v *view, p place) layer {
	if p.file == "" {
		return layer{place: p, reading: noFile}
	}
	s.mu.Lock()
	w := s.files.get(p, func() *watched[facts] {
		return &watched[facts]{file: p.file, read: readFile, clock: s.clock, parse: func(data []byte) (*facts, error) { return readFacts(p, data) }}
	})
	s.mu.Unlock()
	reading, stamp := w.now()
	note(v, w, reading, stamp)
	return layer{place: p, stamp: stamp, reading: reading}
}

var noFile = &reading[facts]{}

// A cache keeps values by their keys. When it has grown to most, it forgets those that were not used since it was half as large.
type cache[K comparable, V any] struct {
	most       int
	young, old map[K]V
}

// get returns the value of a key, which build makes if it is not there.
func (c *cache[K, V]) get(key K, build func() V) V {
	if v, ok := c.young[key]; ok {
		return v
	}
	v, ok := c.old[key]
	if !ok {
		v = build()
	}
	if c.young == nil || len(c.young) >= c.most/2 {
		c.old, c.young = c.young, map[K]V{}
	}
	c.young[key] = v
	return v
}

func (c *cache[K, V]) remove(key K) {
	delete(c.young, key)
	delete(c.old, key)
}
