"""The trusted side: it starts the guest, holds the clock and the limits, and believes nothing."""
