// Command audit is a read-only, scheduled audit of GPU Kubernetes clusters.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set at build time with -ldflags "-X main.version=v1.2.3".
var version = "dev"

// Exit codes, as the contract sets them.
const (
	exitOK         = 0
	exitFinding    = 1
	exitUsage      = 2
	exitIncomplete = 3
)

// codeError carries an exit code; quiet ones were reported already.
type codeError struct {
	code  int
	err   error
	quiet bool
}

func (e *codeError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *codeError) Unwrap() error { return e.err }

func usage(err error) error { return &codeError{code: exitUsage, err: err} }

func incomplete(err error) error { return &codeError{code: exitIncomplete, err: err} }

func main() { os.Exit(mainCode()) }

func mainCode() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo})))
	silenceKubernetes()
	root := rootCommand()
	out := &output{File: os.Stdout}
	root.SetOut(out)
	err := root.ExecuteContext(ctx)
	if out.err != nil && (err == nil || errors.Is(err, plainError(out.err))) {
		// Whoever reads the result did not get it, so this was no success, nor a slip of usage.
		err = incomplete(fmt.Errorf("write to standard output: %w", plainError(out.err)))
	}
	if err == nil {
		return exitOK
	}
	var coded *codeError
	if errors.As(err, &coded) {
		if !coded.quiet && coded.err != nil {
			fmt.Fprintln(os.Stderr, "audit: "+clean(coded.err.Error()))
		}
		return coded.code
	}
	fmt.Fprintln(os.Stderr, "audit: "+clean(err.Error()))
	return exitUsage
}

// output is standard output that remembers the first error of a write.
type output struct {
	*os.File
	err error
}

func (o *output) Write(b []byte) (int, error) {
	n, err := o.File.Write(b)
	if o.err == nil {
		o.err = err
	}
	return n, err
}

func (o *output) WriteString(s string) (int, error) { return o.Write([]byte(s)) }

func rootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "audit",
		Short:         "A read-only audit of GPU Kubernetes clusters: what of the free cards a workload can really get, and why not the rest",
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return cmd.Help()
		},
	}
	root.AddCommand(
		runCommand(), ackCommand(), checklistCommand(), reportsCommand(), dumpCommand(), digestCommand(), historyCommand(), scheduleCommand(), evidenceCommand(), verifyCommand(), keygenCommand(), doctorCommand(), demoCommand(), versionCommand(),
	)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage(fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
	})
	return root
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "print the program's version", Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
		_, err := fmt.Fprintln(cmd.OutOrStdout(), "audit "+version)
		return err
	}}
}

// oneOf checks a flag's value.
func oneOf(flag, value string, options ...string) error {
	for _, o := range options {
		if value == o {
			return nil
		}
	}
	return usage(fmt.Errorf("--%s is %q, want one of %s", flag, value, strings.Join(options, ", ")))
}
