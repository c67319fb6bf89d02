package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gpuaudit/test/controlplane"
)

// TestReadme runs every command of README as it stands, in order, in a copy of
// the source, against a real API server. `make test` is what runs this test,
// so of it only its target and its place in CI are checked.
func TestReadme(t *testing.T) {
	t.Parallel()
	body, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	c := controlplane.Start(t, controlplane.Options{Name: "here"})
	c.Node(t, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: "Ready", Status: "True"}}}})
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	bin, err := program()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	ran := 0
	for _, line := range commands(string(body)) {
		where := dir
		switch {
		case line == "make test":
			ci, err := os.ReadFile("../../.ci/run")
			if err != nil || !strings.Contains(string(ci), "\nmake test\n") {
				t.Errorf(".ci/run does not call README's test command: %v", err)
			}
			continue
		case line == "make build", strings.HasPrefix(line, "go run"):
			where = root
		}
		cmd := exec.Command("sh", "-c", line)
		cmd.Dir = where
		cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Kubeconfig(t, "admin"), "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", line, err, out)
		}
		ran++
	}
	if ran < 10 {
		t.Errorf("README has %d commands that can be run; want its usual dozen", ran)
	}
}

// commands gives the lines of README's sh blocks, without comments.
func commands(text string) []string {
	var out []string
	in := false
	for _, row := range strings.Split(text, "\n") {
		switch {
		case strings.HasPrefix(row, "```sh"):
			in = true
		case strings.HasPrefix(row, "```"):
			in = false
		case in:
			line, _, _ := strings.Cut(row, " #")
			if line = strings.TrimSpace(line); line != "" {
				out = append(out, line)
			}
		}
	}
	return out
}
