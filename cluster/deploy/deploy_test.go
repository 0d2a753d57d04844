// Package deploy_test checks the manifests of this directory and the commands of docs/cluster.md: by the types of
// Kubernetes, by the command's own flags, and by the parser of NATS.
package deploy_test

import (
	"bytes"
	"crypto/tls"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/toold/toold/cluster/identity"
)

// A sandbox is the part that is used of a Sandbox of agent-sandbox, whose module brings a controller with it.
type sandbox struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		PodTemplate          corev1.PodTemplateSpec         `json:"podTemplate"`
		VolumeClaimTemplates []corev1.PersistentVolumeClaim `json:"volumeClaimTemplates"`
	} `json:"spec"`
}

// makers return a pointer to an object of a kind, and the pods that it makes.
var makers = map[string]func() (object any, pods *corev1.PodTemplateSpec){
	"apps/v1 Deployment":                 func() (any, *corev1.PodTemplateSpec) { o := &appsv1.Deployment{}; return o, &o.Spec.Template },
	"apps/v1 StatefulSet":                func() (any, *corev1.PodTemplateSpec) { o := &appsv1.StatefulSet{}; return o, &o.Spec.Template },
	"agents.x-k8s.io/v1beta1 Sandbox":    func() (any, *corev1.PodTemplateSpec) { o := &sandbox{}; return o, &o.Spec.PodTemplate },
	"v1 Service":                         func() (any, *corev1.PodTemplateSpec) { return &corev1.Service{}, nil },
	"policy/v1 PodDisruptionBudget":      func() (any, *corev1.PodTemplateSpec) { return &policyv1.PodDisruptionBudget{}, nil },
	"networking.k8s.io/v1 NetworkPolicy": func() (any, *corev1.PodTemplateSpec) { return &networkingv1.NetworkPolicy{}, nil },
}

// pods decodes the manifests strictly, and returns the pods that they make by the names of those that make them.
func pods(t *testing.T) map[string]*corev1.PodTemplateSpec {
	t.Helper()
	all := map[string]*corev1.PodTemplateSpec{}
	for _, name := range []string{"gateway.yaml", "node.yaml", "sandbox.yaml"} {
		for document := range bytes.SplitSeq(read(t, name), []byte("\n---\n")) {
			var head struct {
				metav1.TypeMeta   `json:",inline"`
				metav1.ObjectMeta `json:"metadata"`
			}
			if err := yaml.Unmarshal(document, &head); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			make, known := makers[head.APIVersion+" "+head.Kind]
			if !known {
				t.Fatalf("%s: the kind %s %s is not known", name, head.APIVersion, head.Kind)
			}
			object, template := make()
			if err := yaml.UnmarshalStrict(document, object); err != nil {
				t.Errorf("%s, %s %s: %v", name, head.Kind, head.Name, err)
			}
			if head.Namespace != "toold" {
				t.Errorf("%s, %s %s is in the namespace %q", name, head.Kind, head.Name, head.Namespace)
			}
			if template != nil {
				all[head.Name] = template
			}
		}
	}
	return all
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// The manifests are objects of Kubernetes with no unknown field, and every volume that is mounted is there.
func TestManifests(t *testing.T) {
	for name, pod := range pods(t) {
		there := map[string]bool{"data": name != "toold-gateway"} // from a claim
		for _, volume := range pod.Spec.Volumes {
			there[volume.Name] = true
		}
		for _, container := range pod.Spec.Containers {
			for _, mount := range container.VolumeMounts {
				if !there[mount.Name] {
					t.Errorf("%s mounts the volume %s, which it does not have", name, mount.Name)
				}
			}
		}
		if strings.HasPrefix(name, "toold-node") {
			checkNode(t, name, &pod.Spec)
		}
	}
}

// checkNode checks what a container needs of its pod.
func checkNode(t *testing.T, name string, pod *corev1.PodSpec) {
	security, own := pod.SecurityContext, pod.Containers[0].SecurityContext
	if pod.HostUsers == nil || *pod.HostUsers || *own.ProcMount != corev1.UnmaskedProcMount ||
		security.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined || security.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined ||
		!*security.RunAsNonRoot || len(own.Capabilities.Add) > 0 {
		t.Errorf("in a pod of %s no container can be made, or it has more than it needs", name)
	}
	if *pod.TerminationGracePeriodSeconds <= 60 {
		t.Errorf("a pod of %s is killed before it has given its workspaces up", name)
	}
}

// The values of NATS name a version that is not older than the one that is tested, and have it sync.
func TestNATSValues(t *testing.T) {
	var values struct {
		Container struct{ Image struct{ Tag string } }
		Config    struct {
			Cluster   struct{ Replicas int }
			JetStream struct {
				Merge map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(read(t, "nats-values.yaml"), &values); err != nil {
		t.Fatal(err)
	}
	if values.Config.JetStream.Merge["sync_interval"] != "always" || values.Config.Cluster.Replicas != 3 || values.Container.Image.Tag != server.VERSION+"-alpine" {
		t.Errorf("the values are %+v; the tested server is %s", values, server.VERSION)
	}
}

// The command accepts the arguments of the manifests, and the commands of docs/cluster.md.
func TestCommands(t *testing.T) {
	program := filepath.Join(t.TempDir(), "toold-cluster")
	if output, err := exec.Command("go", "build", "-o", program, "../cmd/toold-cluster").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	accepts := func(where string, args []string) {
		if output, err := exec.Command(program, append(args, "--help")...).CombinedOutput(); err != nil || !bytes.Contains(output, []byte("toold-cluster "+args[0])) {
			t.Errorf("%s: toold-cluster %v: %v\n%s", where, args, err, output)
		}
	}
	for name, pod := range pods(t) {
		accepts(name, pod.Spec.Containers[0].Args)
	}
	found := 0
	for _, line := range commands(t) {
		command, _, _ := strings.Cut(line, " >")
		accepts("docs/cluster.md", strings.Fields(command))
		found++
	}
	if found < 10 {
		t.Errorf("docs/cluster.md has %d commands", found)
	}
}

// commands returns the arguments of the commands that docs/cluster.md names, in blocks of code and between backquotes.
func commands(t *testing.T) (all []string) {
	for _, block := range blocks(t) {
		for _, match := range regexp.MustCompile(`(?m)^toold-cluster (.*)$`).FindAllStringSubmatch(strings.ReplaceAll(block, "\\\n", " "), -1) {
			all = append(all, match[1])
		}
	}
	for _, match := range regexp.MustCompile("`toold-cluster ([^`]+)`").FindAllSubmatch(read(t, "../../docs/cluster.md"), -1) {
		all = append(all, string(match[1]))
	}
	return all
}

// blocks returns the blocks of code of docs/cluster.md.
func blocks(t *testing.T) (all []string) {
	for _, match := range regexp.MustCompile("(?ms)^```\\w*\n(.*?)^```$").FindAllSubmatch(read(t, "../../docs/cluster.md"), -1) {
		all = append(all, string(match[1]))
	}
	return all
}

// A server with the configuration of docs/cluster.md syncs every write, and lets in only who has a certificate of the
// cluster.
func TestNATSConfiguration(t *testing.T) {
	certs := t.TempDir()
	if _, err := identity.Init(certs, identity.Subject{Role: identity.NATS, Name: "a", Hosts: []string{"127.0.0.1"}}, identity.Subject{Role: identity.Admin, Name: "me"}); err != nil {
		t.Fatal(err)
	}
	o := natsOptions(t, certs)
	if !o.SyncAlways || o.Cluster.TLSConfig == nil || o.Cluster.TLSConfig.ClientAuth != tls.RequireAndVerifyClientCert || len(o.Routes) != 3 {
		t.Fatalf("sync always %t, routes %v", o.SyncAlways, o.Routes)
	}
	o.Host, o.Port, o.Cluster, o.Routes, o.HTTPHost, o.HTTPPort, o.NoSigs, o.NoLog = "127.0.0.1", -1, server.ClusterOpts{}, nil, "", 0, true, true
	s, err := server.NewServer(o)
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	defer func() { s.Shutdown(); s.WaitForShutdown() }()
	me, err := identity.Load(certs, identity.Admin, "me")
	if err != nil {
		t.Fatal(err)
	}
	url := "tls://" + s.Addr().String()
	conn, err := nats.Connect(url, nats.Secure(me.NATSClientTLS()))
	if err != nil {
		t.Fatalf("with a certificate: %v", err)
	}
	conn.Close()
	if conn, err = nats.Connect(url, nats.RootCAs(filepath.Join(certs, "ca.pem"))); err == nil {
		conn.Close()
		t.Error("a client without a certificate was let in")
	}
}

// natsOptions reads the configuration, with other directories.
func natsOptions(t *testing.T, certs string) *server.Options {
	for _, block := range blocks(t) {
		if !strings.HasPrefix(block, "server_name:") {
			continue
		}
		block = strings.NewReplacer("/etc/toold-cluster", certs, "/var/lib/nats", t.TempDir()).Replace(block)
		file := filepath.Join(t.TempDir(), "nats.conf")
		if err := os.WriteFile(file, []byte(block), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := server.ProcessConfigFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	t.Fatal("docs/cluster.md has no configuration of NATS")
	return nil
}
