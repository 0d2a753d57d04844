package bash
import ("testing";"io";"os/exec";"time";"slices";"fmt";"github.com/toold/toold/tools/sandbox";"github.com/toold/toold/tools/shell")
func TestZZ(t *testing.T){
 s:=newSession(t)
 action,_:=Tool().Parse([]byte(`{"command":"true"}`))
 serial,_:=Tool().Parse([]byte(`{"command":"umask 22"}`))
 env:=s.room.Env(action)
 bashp,_:=findBash()
 args:=[]string{"bash","--noprofile","--norc","-c","true"}
 cut:=sandbox.Environ(shell.ReadOnlyEnv(env.Environ,nil),fixed...)
 n:=0
 variants:=map[string]func(){
  "exec":func(){ exec.Command(bashp,args[1:]...).CombinedOutput() },
  "execcut":func(){ c:=exec.Command(bashp,args[1:]...); c.Env=cut; c.Dir=env.Dir; c.CombinedOutput() },
  "sandbox":func(){ p,_:=env.Runner.Start(sandbox.Command{ID:"x",Path:bashp,Args:args,Dir:env.Dir,Env:cut,Stdout:io.Discard,Stderr:io.Discard}); p.Wait() },
  "call":func(){ n++; e:=*env; e.CallID=fmt.Sprint("c",n); action.Run(t.Context(),&e) },
  "serial":func(){ n++; e:=*env; e.CallID=fmt.Sprint("c",n); serial.Run(t.Context(),&e) },
 }
 times:=map[string][]time.Duration{}
 for i:=0;i<600;i++ { for n,f:=range variants { s:=time.Now(); f(); times[n]=append(times[n],time.Since(s)) } }
 for n,d:=range times { slices.Sort(d); fmt.Println(n, "p10",d[len(d)/10],"p50",d[len(d)/2]) }
}
