package shell
import ("testing";"os";"os/exec";"math/rand/v2";"strings";"fmt";"context";"time";"path/filepath")
func TestDiff(t *testing.T){
 frag := []string{"touch P", "touch P", "touch P", "\n", "\n", "\\\n", "\\", "'", "\"", "`", "$(", ")", "(", "{ ", "; }", "#", " # ", ";", " | ", " && ", " || ", "echo ", "echo a", "cat <<EOF\n", "cat <<'EOF'\n", "cat <<-EOF\n", "\nEOF\n", "EOF", "\t", "$'", "\\'", "\\\"", "${x:-", "}", "${x#", "$((", "))", "[[ ", " ]]", "[ ", " ]", "case x in x) ", ";; esac", "if true; then ", "fi", "for i in a; do ", "; done", "<(", "<<<", "2>&1", "&", "!", "a", "=", "{a,b}", "$x", "\"$x\"", "*", "~", "<", "EOF\n", " ", " ", "true", "$\"", "\\`", "[a]", "printf %s", "x", "-eq 1", "=~ ", "\\\\", "eval ", "bash -c ", "sh -c ", "xargs ", "find . ", "sed ", "awk ", "env ", "1", "while read -r l; do ", "time ", "!(", "@(", "?(", "|&", ">&2", "&>", "$[", "]", ",", "..", "%n", "s/a/", "w P", "{print > \"P\"}"}
 r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 1))
 dir := t.TempDir(); ro,n := 0,0
 end := time.Now().Add(100*time.Second)
 for time.Now().Before(end) {
  var b strings.Builder
  for range 2+r.IntN(14) { b.WriteString(frag[r.IntN(len(frag))]) }
  s := b.String(); n++
  if !strings.Contains(s, "P") && !strings.Contains(s, "<") { continue }
  a := Analyze(s)
  if !a.ReadOnly { continue }
  ro++
  ctx, c := context.WithTimeout(context.Background(), 2*time.Second)
  cmd := exec.CommandContext(ctx, "bash", "--noprofile","--norc","-c", s); cmd.Dir = dir; cmd.Env=[]string{"PATH=/usr/bin:/bin"}
  cmd.Run(); c()
  es, _ := os.ReadDir(dir)
  if len(es) > 0 { t.Errorf("DIFF %q made %v", s, es); for _, e := range es { os.RemoveAll(filepath.Join(dir,e.Name())) } }
 }
 fmt.Println("n",n,"ro",ro)
}
