package main

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"gpuaudit/audit/inventory"
	"gpuaudit/cmd/audit/config"
)

func (f *runFlags) live(_ context.Context, _ *cobra.Command, _ *config.File) ([]*inventory.Cluster, time.Time, error) {
	return nil, time.Time{}, usage(errors.New("not yet"))
}
