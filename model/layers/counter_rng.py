"""Random numbers without a generator's state: each is a hash of counters, such as (seed, step)."""

_UINT64_MASK = (1 << 64) - 1


def counter_hash(*numbers: int) -> int:
    """A well-spread 64-bit hash of some integers (splitmix64, Steele et al. 2014)."""
    state = 0
    for number in numbers:
        state = (state + number + 0x9E3779B97F4A7C15) & _UINT64_MASK
        state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _UINT64_MASK
        state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _UINT64_MASK
        state ^= state >> 31
    return state
