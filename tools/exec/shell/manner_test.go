package shell

import (
	"fmt"
	"strings"
	"testing"
)

// TestManners lists what commands write by name: f fills, p places, r replaces, n is nested.
func TestManners(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"rm -r a":                                  "r a",
		"rm a/*":                                   "f a",
		"mv a b d":                                 "r a n d/a r b n d/b p d",
		"mv -t d a b":                              "f d r a r b",
		"cp a b":                                   "n b/a f b",
		"cp -r a b":                                "n b/a p b",
		"cp --remove-destination a b":              "p b",
		"ln -sf a b":                               "n b/a p b",
		"mkdir -p a/b":                             "p a/b",
		"touch a":                                  "f a",
		"touch -c a":                               "n a",
		"tee -a a":                                 "f a",
		"truncate -s 0 a":                          "f a",
		"sed -i.bak s/a/b/ a":                      "r a p a.bak",
		"sed -i 's/a/b/e' a":                       "r a",
		"sed 's/a/b/e' a":                          "",
		"perl -pi -e s/a/b/ a":                     "r a",
		"perl -ne s/a/b/ a":                        "",
		"chmod +x a":                               "f a",
		"chmod -x a":                               "f a",
		"chmod -R u=rw a b":                        "f a f b",
		"chown -R me:me a":                         "f a",
		"dd if=a of=b bs=1M":                       "f b",
		"install -m 755 a b":                       "p b",
		"install -t d a":                           "f d",
		"rsync -a --delete a/ b/":                  "p b/",
		"rsync -a a host:b":                        "",
		"patch -p1 a < p":                          "r a",
		"patch -d d -p1 < p":                       "f d",
		"tar xzf a.tgz -C d":                       "f d",
		"tar -C d -czf b.tgz a":                    "f b.tgz",
		"unzip -q a.zip -d d":                      "f d",
		"gzip -9 a":                                "r a",
		"sort -o a b":                              "f a",
		"sort -oa b":                               "f a",
		"curl -so a https://example.com":           "f a",
		"curl -s -o a https://example.com":         "f a",
		"curl --output=a https://example.com":      "f a",
		"gcc -O2 -o a b.c":                         "p a",
		"go build -o a ./cmd":                      "p a",
		"git clone https://example.com/x d":        "p d",
		"git clone https://example.com/x":          "",
		"git init d":                               "p d",
		"git worktree add -b x ../d":               "p ../d",
		"go test -coverprofile=a ./...":            "p a",
		"cargo build --target-dir d":               "p d",
		"python3 -m venv --clear d":                "p d",
		"python3 -m pip d":                         "",
		"git archive -o a.tar HEAD":                "p a.tar",
		"git format-patch -1 -o d":                 "p d",
		"npm pack --pack-destination d":            "f d",
		"make -C d all":                            "f d",
		"sqlite3 a 'select 1'":                     "p a",
		"echo x > a; rm a":                         "r a",
		"find a b -name '*.o' -delete":             "f a f b",
		"find a -type d -empty -delete":            "r a",
		"find -delete":                             "f .",
		"find a -fprintf b %p":                     "f b",
		"find a -name b":                           "",
		"cd d && touch a":                          "f d/a",
		"sudo rm a":                                "r a",
		"./rm a":                                   "",
		"ssh host rm a":                            "",
		"tar cf - a":                               "",
		"zip -r o.zip a":                           "p o.zip",
		"gofmt -l a":                               "",
		"gofmt -w a":                               "r a",
		"awk '{print > \"o\"}' a":                  "f o",
		"mkfifo a":                                 "p a",
		"install -d d/e":                           "p d/e",
		"frobnicate a":                             "",
		"split -b 1M a b":                          "p b",
		"openssl req -out a -keyout b":             "f a f b",
		"pip install -t d x":                       "p d",
		"wget -P d https://example.com/x":          "f d",
		"wget --directory-prefix=d https://a.test": "f d",
	} {
		var got []string
		for _, c := range Analyze(script).Commands {
			for _, path := range c.Writes {
				got = append(got, fmt.Sprintf("%s %s", [...]string{"n", "f", "p", "r"}[c.MannerOf(path)+1], path))
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n got %s\nwant %s", script, strings.Join(got, " "), want)
		}
	}
}
