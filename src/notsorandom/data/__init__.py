"""Where the samples live: in memory, on a device, on disk, or in an iterator of blocks."""
