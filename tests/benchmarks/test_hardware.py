"""The machine's own limits are measured, not assumed."""

from __future__ import annotations

from newfound.benchmarks import hardware


def test_every_limit_of_the_machine_is_a_measured_rate_with_its_range_and_unit():
    limits = hardware.measure(repeats=2)
    assert [limit.name for limit in limits] == ["matrix product", "memory", "JPEG decoder", "encoder", "durable writes"]
    for limit in limits:
        assert 0 < limit.low <= limit.value <= limit.high
        assert limit.unit.endswith("/s")
        assert limit.detail
