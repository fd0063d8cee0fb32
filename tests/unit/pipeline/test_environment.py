"""What a manifest says of the machine."""

from pathlib import Path

from pipeline.environment import gpus, hardware, versions


def test_gpus_are_named_as_the_driver_lists_them(tmp_path: Path) -> None:
    for number, name in enumerate(("NVIDIA H200", "Tesla T4")):
        (tmp_path / f"0000:0{number}:00.0").mkdir()
        (tmp_path / f"0000:0{number}:00.0" / "information").write_text(f"Model: \t\t {name}\nIRQ:   \t\t 5\n")
    assert gpus(tmp_path) == ["NVIDIA H200", "Tesla T4"]
    assert gpus(tmp_path / "nothing") == []


def test_versions_and_hardware_say_what_runs_here() -> None:
    assert set(versions()) == {"python", "tfm", "torch", "tokenizers"}
    assert versions()["torch"] is not None
    assert hardware().keys() == {"cpus", "machine", "platform", "gpus"}
