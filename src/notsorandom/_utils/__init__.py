"""Tools that every room uses: parameter checks, threads, progress bars, atomic files."""
