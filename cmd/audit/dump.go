package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"gpuaudit/audit/collect"
)

func dumpCommand() *cobra.Command {
	var p place
	var cluster, out string
	cmd := &cobra.Command{
		Use: "dump --cluster NAME --out DIR", Short: "write what a run would read of a cluster, as files that --from reads", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usage(errors.New("--out is missing: name a new folder"))
			}
			file, err := p.load()
			if err != nil {
				return err
			}
			var names []string
			if cluster != "" {
				names = []string{cluster}
			}
			list, err := targets(file, names)
			if err != nil {
				return err
			}
			if len(list) != 1 {
				return usage(fmt.Errorf("--cluster is missing: the configuration has %d clusters", len(list)))
			}
			gaps, err := collect.Dump(cmd.Context(), list[0], out, progress(cmd.ErrOrStderr()))
			if err != nil {
				return incomplete(err)
			}
			for _, g := range gaps {
				fprint(cmd.ErrOrStderr(), "not in the dump: %s\n", clean(g.Message))
			}
			fprint(cmd.OutOrStdout(), "%s\n", clean(out))
			if len(gaps) > 0 {
				return &codeError{code: exitIncomplete, quiet: true}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&p.config, "config", "c", "", "configuration `FILE`")
	cmd.Flags().StringVar(&cluster, "cluster", "", "the cluster to dump (`NAME` in the configuration, or a kubeconfig context)")
	cmd.Flags().StringVar(&out, "out", "", "the folder to write, `DIR`; it must be new or empty")
	return cmd
}
