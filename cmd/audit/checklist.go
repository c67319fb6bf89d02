package main

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"

	"gpuaudit/audit/checklist"
)

func checklistCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "checklist [STEP]",
		Short: "print the checklist, or one of its steps",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return usage(errors.New("give one step at most"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				fprint(cmd.OutOrStdout(), "%s", checklist.Overview())
				return nil
			}
			n, err := strconv.Atoi(args[0])
			if step, ok := checklist.ByNumber(n); err == nil && ok {
				fprint(cmd.OutOrStdout(), "%s", checklist.Text(step))
				return nil
			}
			if step, ok := checklist.ByCheck(args[0]); ok {
				fprint(cmd.OutOrStdout(), "%s", checklist.Text(step))
				return nil
			}
			return usage(errors.New("no step " + strconv.Quote(args[0]) + "; give a number from 1 to " + strconv.Itoa(len(checklist.All())) + " or a check's id"))
		},
	}
}
