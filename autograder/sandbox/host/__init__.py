"""The trusted side: starts the guest, holds the clock and the limits, and believes nothing."""
