"""Tools that all subpackages use: parameter checks, threads, progress bars, atomic files."""
