package collect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
)

// maxCredential bounds what a plugin may print.
const maxCredential = 1 << 20

// runPlugin runs a kubeconfig's credentials plugin once, without a terminal,
// and puts what it gives in its place. At the deadline it is killed with all
// its children. Nothing of what it prints is ever repeated.
// Source: the client authentication API (client.authentication.k8s.io).
func runPlugin(ctx context.Context, cfg *rest.Config) error {
	p := cfg.ExecProvider
	fail := func(format string, args ...any) error {
		return &credentialsError{fmt.Errorf("credentials plugin %q "+format, append([]any{p.Command}, args...)...)}
	}
	info, err := json.Marshal(map[string]any{"apiVersion": p.APIVersion, "kind": "ExecCredential", "spec": map[string]any{"interactive": false}})
	if err != nil {
		return fail("cannot be told what is wanted: %w", err)
	}
	cmd := exec.CommandContext(ctx, p.Command, p.Args...)
	cmd.Env = append(os.Environ(), "KUBERNETES_EXEC_INFO="+string(info))
	for _, e := range p.Env {
		cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out := &limited{left: maxCredential}
	cmd.Stdout = out
	err = cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist):
		return fail("is not installed here; install it, or use a kubeconfig with a token")
	case ctx.Err() != nil:
		return fail("did not answer before the deadline; it may wait for a login: log in beforehand, or use a kubeconfig with a token")
	case err != nil:
		return fail("failed (%v); run it by hand to see why", exitWords(err))
	}
	var got struct {
		Status *struct {
			Token string `json:"token"`
			Cert  string `json:"clientCertificateData"`
			Key   string `json:"clientKeyData"`
		} `json:"status"`
	}
	if json.Unmarshal(out.Bytes(), &got) != nil || got.Status == nil {
		return fail("printed no ExecCredential; run it by hand to see what it prints")
	}
	if got.Status.Token == "" && got.Status.Cert == "" {
		return fail("gave neither a token nor a certificate; log in and try again")
	}
	cfg.ExecProvider = nil
	cfg.BearerToken = got.Status.Token
	if got.Status.Cert != "" {
		cfg.CertData, cfg.KeyData = []byte(got.Status.Cert), []byte(got.Status.Key)
	}
	return nil
}

func exitWords(err error) string {
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return fmt.Sprintf("exit code %d", exit.ExitCode())
	}
	return "it could not be started"
}

// limited keeps the first bytes and drops the rest.
type limited struct {
	bytes.Buffer
	left int
}

func (l *limited) Write(p []byte) (int, error) {
	n := min(len(p), l.left)
	l.left -= n
	l.Buffer.Write(p[:n])
	return len(p), nil
}
